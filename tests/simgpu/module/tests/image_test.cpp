// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/simgpu/module/fatbin.h"
#include "tests/simgpu/module/tests/device.h"

namespace simgpu::test {
namespace {

const char* const kTwo =
    ".version 7.0 .target sm_80 .address_size 64\n"
    ".entry fill(.param .u64 a, .param .u32 b) { trap; }\n"
    ".entry fill_undeclared(.param .u64 a, .param .u32 b) { trap; }\n"
    ".entry other(.param .u64 a) { ret; }\n";

TEST(Image, ATwinWinsOverPtx) {
  const auto image = load_text(kTwo);
  const Kernel* kernel = image->find("fill");
  ASSERT_NE(kernel, nullptr);
  Device device(64);
  ASSERT_TRUE(device.run(*kernel, device.launch(1, 1), device.address(16), 3));
  EXPECT_EQ(device.get<float>(16 + 8), 2.5F);
  EXPECT_EQ(device.accesses, (std::vector<Access>{{device.address(16), 12, true}}));
  EXPECT_FALSE(kernel->access_unknown());
  uintptr_t address = device.address();
  int count = 7;
  void* arguments[] = {&address, &count};
  EXPECT_EQ(kernel->flops(device.launch(1, 1), arguments), 7.0);
}

TEST(Image, ARefusedTwinDoesNotRun) {
  const auto image = load_text(kTwo);
  Device device(64);
  EXPECT_FALSE(device.run(*image->find("fill"), device.launch(1, 1), device.address(), 17));
  EXPECT_EQ(device.get<float>(0), 0.0F);
}

TEST(Image, ATwinThatDeclaresNothingSaysSo) {
  const auto image = load_text(kTwo);
  const Kernel* kernel = image->find("fill_undeclared");
  ASSERT_NE(kernel, nullptr);
  EXPECT_TRUE(kernel->access_unknown());
  Device device(64);
  EXPECT_TRUE(device.run(*kernel, device.launch(1, 1), device.address(), 2));
  EXPECT_EQ(device.get<float>(4), 1.5F);
  EXPECT_TRUE(device.accesses.empty());
}

TEST(Image, FindsKernelsAndTwinsButNothingElse) {
  const auto image = load_text(kTwo);
  EXPECT_EQ(image->kernels().size(), 3U);
  EXPECT_NE(image->find("twin_only"), nullptr);
  EXPECT_EQ(image->find("nonsense"), nullptr);
  EXPECT_EQ(image->find("other"), image->find("other"));
}

TEST(Image, FindsTheTwinsBesideTheExecutable) {
  const auto image = load_text(kTwo);
  const Kernel* kernel = image->find("beside_executable");
  ASSERT_NE(kernel, nullptr);
  Device device(64);
  ASSERT_TRUE(device.run(*kernel, device.launch(1, 1), device.address(8)));
  EXPECT_EQ(device.get<int>(8), 77);
}

TEST(Image, RefusesWhatIsNoCode) {
  std::string error;
  EXPECT_EQ(load_image("no code at all", &error), nullptr);
  EXPECT_NE(error.find(".version"), std::string::npos) << error;
}

// --- what nvcc makes of sample.cu, in every container ---

std::string read_sample(const std::string& name) {
  const char* folder = std::getenv("SIMGPU_TEST_SAMPLES");
  if (folder == nullptr) return {};
  std::ifstream file(std::string(folder) + "/" + name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Sample : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    code_ = read_sample(GetParam());
    if (code_.empty()) GTEST_SKIP() << "no nvcc";
    std::string error;
    image_ = load_image(code_.c_str(), &error);
    ASSERT_NE(image_, nullptr) << error;
  }
  bool has_ptx() const { return !std::string(GetParam()).ends_with(".cubin"); }

  std::string code_;
  std::shared_ptr<const Image> image_;
};

TEST_P(Sample, ListsItsKernels) {
  EXPECT_EQ(image_->kernels().size(), 7U);
}

TEST_P(Sample, KnowsParameterLayouts) {
  const auto layout_of = [&](const char* name) {
    std::vector<std::pair<size_t, size_t>> out;
    const Kernel* kernel = image_->find(name);
    if (kernel == nullptr) return out;
    for (const auto& parameter : kernel->parameters()) {
      out.emplace_back(parameter.offset, parameter.size);
    }
    return out;
  };
  using Layout = std::vector<std::pair<size_t, size_t>>;
  EXPECT_EQ(layout_of("saxpy"), (Layout{{0, 4}, {8, 8}, {16, 8}, {24, 4}}));
  EXPECT_EQ(layout_of("layout"), (Layout{{0, 1}, {8, 16}, {24, 2}, {32, 8}}));
  EXPECT_EQ(layout_of("large"), (Layout{{0, 20000}, {20000, 8}}));
}

TEST_P(Sample, RunsWhatHasPtx) {
  const Kernel* kernel = image_->find("saxpy");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->access_unknown(), !has_ptx());
  if (!has_ptx()) return;
  Device device(4096);
  for (unsigned i = 0; i < 100; ++i) {
    device.set(i * 4, static_cast<float>(i));
    device.set(2048 + i * 4, 1.0F);
  }
  ASSERT_TRUE(device.run(*kernel, device.launch(4, 32), 0.5F, device.address(0),
                         device.address(2048), 100));
  EXPECT_EQ(device.get<float>(2048 + 99 * 4), 50.5F);
  EXPECT_EQ(device.get<float>(2048 + 100 * 4), 0.0F);
}

TEST_P(Sample, SumsInSharedMemory) {
  if (!has_ptx()) return;
  Device device(4096);
  float expected[2] = {7, 7};  // seven rounds halve 128 threads to one
  for (unsigned i = 0; i < 256; ++i) {
    device.set(i * 4, static_cast<float>(i % 10));
    expected[i / 128] += static_cast<float>(i % 10);
  }
  ASSERT_TRUE(device.run(*image_->find("block_sum"), device.launch(2, 128, 512), device.address(0),
                         device.address(2048)));
  EXPECT_EQ(device.get<float>(2048), expected[0]);
  EXPECT_EQ(device.get<float>(2052), expected[1]);
}

TEST_P(Sample, KeepsLocalArraysApart) {
  if (!has_ptx()) return;
  Device device(256);
  for (unsigned i = 0; i < 10; ++i) device.set(i * 4, static_cast<int>(i));
  ASSERT_TRUE(device.run(*image_->find("local_array"), device.launch(1, 2), device.address(0),
                         device.address(128), 10));
  EXPECT_EQ(device.get<long long>(128), 202010101010101LL);
  EXPECT_EQ(device.get<long long>(136), device.get<long long>(128) + 1);
}

TEST_P(Sample, LargeStructsArriveWhole) {
  if (!has_ptx()) return;
  struct Large {
    unsigned char bytes[20000];
  } large{};
  large.bytes[19999] = 42;
  Device device(64);
  ASSERT_TRUE(device.run(*image_->find("large"), device.launch(1, 1), large, device.address()));
  EXPECT_EQ(device.get<int>(0), 42);
}

TEST_P(Sample, WarpOperationsMakeAKernelUnknown) {
  const Kernel* kernel = image_->find("warp_sum");
  ASSERT_NE(kernel, nullptr);
  EXPECT_TRUE(kernel->access_unknown());
  Device device(64);
  EXPECT_TRUE(device.run(*kernel, device.launch(1, 32), device.address()));
  EXPECT_NE(device.bytes(), std::vector<unsigned char>(64));
}

INSTANTIATE_TEST_SUITE_P(Containers, Sample,
                         testing::Values("sample.ptx", "sample.cubin", "relocatable.cubin",
                                         "sample_none.fatbin", "sample_size.fatbin",
                                         "sample_speed.fatbin", "sample_balance.fatbin"));

TEST(Wrapper, LeadsToItsFatBinary) {
  const std::string code = read_sample("sample_size.fatbin");
  if (code.empty()) GTEST_SKIP() << "no nvcc";
  struct {
    uint32_t magic = kFatbinWrapperMagic;
    uint32_t version = 1;
    const void* data;
    const void* more = nullptr;
  } wrapper;
  wrapper.data = code.data();
  std::string error;
  const auto image = load_image(&wrapper, &error);
  ASSERT_NE(image, nullptr) << error;
  EXPECT_EQ(image->kernels().size(), 7U);
}

}  // namespace
}  // namespace simgpu::test
