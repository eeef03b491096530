// SPDX-License-Identifier: Apache-2.0
// Registration by hand: what the code that nvcc generates does, on a fat binary made here.

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/simgpu/runtime/tests/support.h"

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
}

namespace simgpu::test {
namespace {

constexpr const char* kText =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry one(.param .u64 out) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [out];\n"
    " st.global.u32 [%rd1], 1; ret; }\n";

// A fat binary with one plain PTX entry, and its wrapper.
class Image {
 public:
  explicit Image(std::string text) {
    text.resize((text.size() + 8) / 8 * 8);  // ends with a zero byte
    bytes_.resize(16 + 0x40 + text.size());
    put(0, uint32_t{0xba55ed50});
    put(4, uint16_t{1});
    put(6, uint16_t{16});
    put(8, uint64_t{0x40 + text.size()});
    put(16, uint16_t{1});
    put(16 + 4, uint32_t{0x40});
    put(16 + 8, uint64_t{text.size()});
    put(16 + 0x1c, uint32_t{80});
    std::memcpy(bytes_.data() + 16 + 0x40, text.data(), text.size());
    wrapper_.fatbin = bytes_.data();
  }
  void* wrapper() { return &wrapper_; }

 private:
  template <class T>
  void put(size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(value));
  }

  struct {
    uint32_t magic = 0x466243b1;
    uint32_t version = 1;
    const void* fatbin = nullptr;
    const void* more = nullptr;
  } wrapper_;
  std::vector<unsigned char> bytes_;
};

void** register_function(Image* image, const void* host_function, const char* name) {
  void** handle = __cudaRegisterFatBinary(image->wrapper());
  __cudaRegisterFunction(handle, static_cast<const char*>(host_function), nullptr, name, -1,
                         nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterFatBinaryEnd(handle);
  return handle;
}

cudaError_t launch(const void* host_function, int* out) {
  void* arguments[] = {&out};
  return cudaLaunchKernel(host_function, dim3(1), dim3(1), arguments, 0, nullptr);
}

TEST(Registry, AFunctionLivesFromRegisteringToUnregistering) {
  Image image(kText);
  char host_function = 0;
  Buffer<int> out(1);
  EXPECT_EQ(launch(&host_function, out.data()), cudaErrorInvalidDeviceFunction);
  void** handle = register_function(&image, &host_function, "one");
  EXPECT_CUDA(launch(&host_function, out.data()));
  EXPECT_EQ(out.get()[0], 1);
  __cudaUnregisterFatBinary(handle);
  EXPECT_EQ(launch(&host_function, out.data()), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
}

TEST(Registry, AnImageWithoutTheFunctionHasNone) {
  Image image(kText);
  char host_function = 0;
  void** handle = register_function(&image, &host_function, "two");
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(__cudaGetKernel(&kernel, &host_function), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
  __cudaUnregisterFatBinary(handle);
}

TEST(Registry, ABrokenImageIsFoundOutAtTheFirstLaunchOnly) {
  Image image("this is no PTX");
  char host_function = 0;
  void** handle = register_function(&image, &host_function, "one");
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  cudaKernel_t kernel = nullptr;
  EXPECT_NE(__cudaGetKernel(&kernel, &host_function), cudaSuccess);
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
  __cudaUnregisterFatBinary(handle);
}

TEST(Registry, AnUnknownVariableIsAnInvalidSymbol) {
  int variable = 0;
  void* address = nullptr;
  EXPECT_EQ(cudaGetSymbolAddress(&address, &variable), cudaErrorInvalidSymbol);
  EXPECT_EQ(cudaMemcpyToSymbol(&variable, &variable, 4, 0, cudaMemcpyHostToDevice),
            cudaErrorInvalidSymbol);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidSymbol);
}

}  // namespace
}  // namespace simgpu::test
