// SPDX-License-Identifier: Apache-2.0
// hook_cost [--batches N] [--calls N]: what liboffload adds to a call of the driver. To be run with
// liboffload preloaded and the null driver as libcuda.so.1. Prints one line per measure, its name
// and nanoseconds; what is called "added" is over the bare driver's call.
//
// hook_cost --count MEASURE --calls N --way hooked|bare: makes just those calls, for who counts
// instructions.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/null_driver/null_driver.h"
#include "tests/bench/timing.h"

namespace {

constexpr size_t kMovable = 4ull << 20;  // OFFLOAD_MIN_SIZE
constexpr size_t kSmall = 100'000;       // from a slab
constexpr size_t kStructBytes = 32 << 10;
constexpr size_t kBuffers = 110;         // as many as PyTorch's foreach kernels take
constexpr size_t kWordsPerPointer = 10;  // the others are sizes and the like

const NullDriverEntries kExported = {
    .launch_kernel = &cuLaunchKernel,
    .mem_alloc = &cuMemAlloc_v2,
    .mem_free = &cuMemFree_v2,
    .mem_alloc_async = &cuMemAllocAsync,
    .mem_free_async = &cuMemFreeAsync,
    .memcpy_dtod_async = &cuMemcpyDtoDAsync_v2,
    .event_record = &cuEventRecord,
};

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "hook_cost: %s failed with error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

struct Request {
  bench::Effort effort;
  std::string count;  // the one measure whose calls are to be made; empty: all are timed
  bool bare = false;
};

class HookCost {
 public:
  explicit HookCost(const Request& request) : request_(request) {
    check(cuInit(0), "cuInit");
    CUcontext context = nullptr;
    check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    for (CUdeviceptr& buffer : buffers_) check(cuMemAlloc_v2(&buffer, kMovable), "cuMemAlloc");
  }

  void launches() {
    for (const size_t pointers : {size_t{0}, size_t{10}, size_t{100}}) {
      std::vector<void*> parameters;
      for (size_t i = 0; i < pointers; ++i) parameters.push_back(&buffers_[i]);
      char name[64];
      std::snprintf(name, sizeof(name), "launch_%zu_pointers_added_ns", pointers);
      launch(name, {pointers, sizeof(CUdeviceptr)}, parameters);
    }
    std::vector<uint64_t> words(kStructBytes / sizeof(uint64_t));
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = i % kWordsPerPointer == 0 ? buffers_[i / kWordsPerPointer % kBuffers] : i;
    }
    std::vector<void*> parameters = {words.data()};
    launch("launch_struct_32k_added_ns", {1, kStructBytes}, parameters);
  }

  void allocations() {
    const auto on_stream = [this](size_t bytes) {
      return [this, bytes](const NullDriverEntries& driver) {
        CUdeviceptr address = 0;
        driver.mem_alloc_async(&address, bytes, stream_);
        driver.mem_free_async(address, stream_);
      };
    };
    measure("malloc_free_parked_ns", false, on_stream(kMovable));
    measure("malloc_free_parked_sync_ns", false, [](const NullDriverEntries& driver) {
      CUdeviceptr address = 0;
      driver.mem_alloc(&address, kMovable);
      driver.mem_free(address);
    });
    measure("malloc_free_slab_ns", false, on_stream(kSmall));
  }

  void copies_and_events() {
    measure("copy_added_ns", true, [this](const NullDriverEntries& driver) {
      driver.memcpy_dtod_async(buffers_[0], buffers_[1], kMovable, stream_);
    });
    measure("event_record_added_ns", true,
            [this](const NullDriverEntries& driver) { driver.event_record(event_, stream_); });
  }

 private:
  void launch(const char* name, const NullKernel& kernel, std::vector<void*>& parameters) {
    // The caller of the driver keeps its functions.
    auto* function = reinterpret_cast<CUfunction>(new NullKernel(kernel));
    void** arguments = parameters.data();
    measure(name, true, [=, this](const NullDriverEntries& driver) {
      driver.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr);
    });
  }

  // `over_bare`: the bare driver's call is taken off.
  template <typename Call>
  void measure(const char* name, bool over_bare, Call call) const {
    const NullDriverEntries& exported = kExported;
    const NullDriverEntries& bare = *null_driver_entries();
    if (!request_.count.empty()) {
      if (request_.count != name) return;
      for (uint64_t i = 0; i < request_.effort.calls; ++i) call(request_.bare ? bare : exported);
      return;
    }
    const bench::Cost cost = bench::compare(
        request_.effort, [&] { call(exported); }, [&] { call(bare); });
    std::printf("%s %.2f\n", name, over_bare ? cost.added_ns() : cost.hooked_ns);
    std::fflush(stdout);
  }

  const Request request_;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr buffers_[kBuffers] = {};
};

}  // namespace

int main(int count, char** arguments) {
  Request request;
  for (int i = 1; i + 1 < count; i += 2) {
    const uint64_t number = std::strtoull(arguments[i + 1], nullptr, 10);
    if (std::strcmp(arguments[i], "--batches") == 0) request.effort.batches = number;
    if (std::strcmp(arguments[i], "--calls") == 0) request.effort.calls = number;
    if (std::strcmp(arguments[i], "--count") == 0) request.count = arguments[i + 1];
    if (std::strcmp(arguments[i], "--way") == 0)
      request.bare = std::strcmp(arguments[i + 1], "bare") == 0;
  }
  if (kExported.launch_kernel == null_driver_entries()->launch_kernel) {
    std::fprintf(stderr, "hook_cost: nothing stands before the driver; preload liboffload.so\n");
    return 1;
  }
  // A process with one thread gets cheaper locks than any training has.
  std::thread([] {
    for (;;) pause();
  }).detach();
  HookCost cost(request);
  cost.launches();
  cost.allocations();
  cost.copies_and_events();
  return 0;
}
