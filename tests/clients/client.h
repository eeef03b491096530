// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the scenarios share: a context, kernels, launches in every style, and words that are known
// on the host too. A scenario computes on the GPU, more than fits under the cap it is run with, and
// compares every word with its own account.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/clients/entries.h"

namespace clients {

constexpr uint32_t kWords = 64 << 10;  // of one buffer
constexpr size_t kBytes = kWords * sizeof(uint32_t);

// Ends the process with status 1.
[[noreturn]] void fail(const char* file, int line, const std::string& what);
#define CHECK(condition) ((condition) ? void() : ::clients::fail(__FILE__, __LINE__, #condition))
#define CHECK_CUDA(call) ::clients::expect_result(__FILE__, __LINE__, #call, (call), CUDA_SUCCESS)
#define CHECK_RESULT(call, wanted) \
  ::clients::expect_result(__FILE__, __LINE__, #call, (call), (wanted))
void expect_result(const char* file, int line, const char* call, CUresult result, CUresult wanted);

enum class Style { kParameters, kExtra, kEx, kCooperative };

class Client {
 public:
  explicit Client(const Cuda& entries);

  Cuda cuda;
  Style style = Style::kParameters;
  CUstream stream = nullptr;  // where launches go
  CUdevice device = 0;
  CUcontext context = nullptr;

  void start(int ordinal = 0);  // context and module
  CUfunction function(const char* name);
  CUmodule load();                           // the kernels once more
  void load_kernels() { module_ = load(); }  // into another context
  void launch(CUfunction function, std::vector<void*> arguments, std::vector<size_t> sizes);

  CUdeviceptr allocate(size_t bytes = kBytes);
  void free(CUdeviceptr at);

  void fill(CUdeviceptr to, uint32_t seed, uint32_t words = kWords);
  void mix(CUdeviceptr to, CUdeviceptr from);
  std::vector<uint32_t> read(CUdeviceptr from, uint32_t words = kWords);
  // Waits, and compares.
  void expect(CUdeviceptr at, const std::vector<uint32_t>& wanted);

  // More buffers than fit, each filled with its own number, all of them still alive: the oldest
  // have left.
  std::vector<CUdeviceptr> crowd(size_t count);
  void disperse(const std::vector<CUdeviceptr>& buffers);

 private:
  CUmodule module_ = nullptr;
};

// Any entry, by the name that runtimes ask for it by.
template <typename Function>
Function* entry(const Client& client, const char* base) {
  void* const found = client.cuda.other(base);
  if (found == nullptr) fail(__FILE__, __LINE__, std::string("no ") + base);
  return reinterpret_cast<Function*>(found);
}
#define ENTRY_OF(client, name) ::clients::entry<decltype(::name)>((client), #name)

// Pinned memory that the device reads at the same address.
void* host_page(const Client& client);
// What lies at `from` is mixed into `to` by a kernel whose arguments do not name it.
void mix_hidden(Client& client, CUdeviceptr to, CUdeviceptr from);

// The kernels' code, of which a module or library can be made.
std::string kernel_code();

// The host's account.
std::vector<uint32_t> filled(uint32_t seed, uint32_t words = kWords);
void mix_on_host(std::vector<uint32_t>& to, const std::vector<uint32_t>& from);

struct Scenario {
  const char* name;
  void (*run)(Client& client);
};
extern const std::vector<Scenario> kStashScenarios, kTableScenarios, kCopyScenarios,
    kMemoryScenarios, kWaitScenarios, kLifeScenarios, kAccidentScenarios, kEndScenarios,
    kCaptureScenarios, kGraphScenarios, kSharingScenarios, kShortageScenarios,
    kSurroundingScenarios, kLibraryScenarios, kContextScenarios, kDeviceScenarios,
    kDeviceCopyScenarios, kCrossingScenarios, kEarlyFlagScenarios, kMappingScenarios,
    kForeignTableScenarios, kMoreCopyScenarios, kMoreWaitScenarios, kNodeScenarios, kRoomScenarios,
    kCommandedScenarios;

}  // namespace clients
