// SPDX-License-Identifier: Apache-2.0
// The kernels as g++ compiles them: the twins' library that the simulated GPU loads.

#include <initializer_list>
#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/simgpu/twin.h"
#include "tests/workloads/kernels/all.cuh"

namespace {

// What kernels.def says with READS, WRITES and their extents.
struct Account {
  SimgpuAccessSink sink;
  void* context;

  template <typename T>
  void access(const T* array, std::initializer_list<int64_t> extents, bool reads,
              bool writes) const {
    if (array == nullptr) return;
    size_t bytes = sizeof(T);
    for (const int64_t extent : extents) bytes *= size_t(extent);
    if (reads) sink(context, array, bytes, 0);
    if (writes) sink(context, array, bytes, 1);
  }
};

int chunks(int rows, int chunk_rows) {
  return (rows + chunk_rows - 1) / chunk_rows;
}
double causal_pairs(int sequence) {
  return 0.5 * sequence * (sequence + 1.0);
}

#define READS(array, ...) account.access(array, {__VA_ARGS__}, true, false);
#define WRITES(array, ...) account.access(array, {__VA_ARGS__}, false, true);
#define READS_WRITES(array, ...) account.access(array, {__VA_ARGS__}, true, true);

// access_<name>(account, parameters...) and flops_<name>(parameters...), one pair a kernel.
#define FIRST_PARAMETER(...) (const Account& account, __VA_ARGS__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define GPT_KERNEL(name, parameters, reads_and_writes, operations) \
  void access_##name FIRST_PARAMETER parameters {                  \
    reads_and_writes                                               \
  }                                                                \
  double flops_##name parameters {                                 \
    return operations;                                             \
  }
#include "tests/workloads/kernels/kernels.def"
#undef GPT_KERNEL
#pragma GCC diagnostic pop

template <typename T>
T translate(const SimgpuLaunch* launch, T value) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<T>(simgpu_pointer(launch, value));
  } else {
    return value;
  }
}

template <auto body, auto accesses, auto operations, typename Body>
struct TwinParts;

template <auto body, auto accesses, auto operations, typename... Parameters>
struct TwinParts<body, accesses, operations, void (*)(Place, Parameters...)> {
  static constexpr int kCount = sizeof...(Parameters);
  static constexpr size_t kSize[kCount] = {sizeof(Parameters)...};
  struct Offsets {
    size_t value[kCount];
  };
  // A parameter buffer is laid out as a struct of the parameters.
  static constexpr Offsets kOffset = [] {
    Offsets offsets{};
    constexpr size_t kAlign[kCount] = {alignof(Parameters)...};
    size_t end = 0;
    for (int i = 0; i < kCount; ++i) {
      end = (end + kAlign[i] - 1) / kAlign[i] * kAlign[i];
      offsets.value[i] = end;
      end += kSize[i];
    }
    return offsets;
  }();

  // Calls function with the parameters' values, as the program passed them.
  template <typename Function, size_t... i>
  static auto apply(Function function, void* const* arguments, std::index_sequence<i...>) {
    return function(*static_cast<const Parameters*>(arguments[i])...);
  }
  template <typename Function>
  static auto apply(Function function, void* const* arguments) {
    return apply(function, arguments, std::index_sequence_for<Parameters...>());
  }

  static void run(const SimgpuLaunch* launch, void* const* arguments) {
    const int groups = int(launch->grid[0] * launch->block[1]);
    apply(
        [&](Parameters... parameter) {
          const std::tuple<Parameters...> translated(translate(launch, parameter)...);
          for (int z = 0; z < int(launch->grid[2]); ++z) {
            for (int y = 0; y < int(launch->grid[1]); ++y) {
              for (int x = 0; x < groups; ++x) {
                std::apply([&](auto... value) { body(Place{x, y, z}, value...); }, translated);
              }
            }
          }
        },
        arguments);
  }
  static void access(const SimgpuLaunch*, void* const* arguments, SimgpuAccessSink sink,
                     void* context) {
    const Account account{sink, context};
    apply([&](Parameters... parameter) { accesses(account, parameter...); }, arguments);
  }
  static double flops(const SimgpuLaunch*, void* const* arguments) {
    return apply(operations, arguments);
  }
};

template <auto body, auto accesses, auto operations>
constexpr SimgpuTwin twin(const char* name) {
  using Parts = TwinParts<body, accesses, operations, decltype(body)>;
  return {name,        Parts::kCount,  Parts::kOffset.value, Parts::kSize,
          &Parts::run, &Parts::access, &Parts::flops};
}

constexpr SimgpuTwin kTwins[] = {
#define GPT_KERNEL(name, parameters, access, flops) \
  twin<&name, &access_##name, &flops_##name>(#name),
#include "tests/workloads/kernels/kernels.def"
#undef GPT_KERNEL
};
constexpr SimgpuTwinTable kTable = {SIMGPU_TWIN_VERSION, int(std::size(kTwins)), kTwins};

}  // namespace

extern "C" [[gnu::visibility("default")]] const SimgpuTwinTable* simgpu_twins() {
  return &kTable;
}
