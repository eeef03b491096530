// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs twins on host memory, and checks gradients against differences.

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/simgpu/twin.h"
#include "tests/workloads/kernels/launchers.h"
#include "tests/workloads/ops/grids.h"

namespace gpt {

using Floats = std::vector<float>;

const SimgpuTwin& find_twin(const std::string& name);

// The launch that launch_<name> would make of `groups`, over host memory.
SimgpuLaunch host_launch(Groups groups);

// An array handed to a kernel, and what the kernel's access set must say about it.
struct Array {
  const void* data;
  size_t bytes;
  bool is_read;
  bool is_written;
};
// `count` elements of it; 0: all.
template <typename T>
Array read(const std::vector<T>& x, size_t count = 0) {
  return {x.data(), (count == 0 ? x.size() : count) * sizeof(T), true, false};
}
inline Array written(Floats& x) {
  return {x.data(), x.size() * sizeof(float), false, true};
}
inline Array updated(Floats& x) {
  return {x.data(), x.size() * sizeof(float), true, true};
}
inline Array null() {
  return {nullptr, 0, false, false};
}

// Expects the twin's access set to be exactly these arrays, runs it, and expects that the kernel's
// CUDA side, run on host threads, computes the same but for rounding.
void run_checked(const std::string& name, Groups groups, std::vector<void*> arguments,
                 const std::vector<Array>& arrays);

inline const void* argument_value(const Array& array, std::vector<Array>& arrays) {
  arrays.push_back(array);
  return array.data;
}
template <typename T>
T argument_value(T value, std::vector<Array>&) {
  return value;
}

// Runs a twin. `arguments` are Arrays where the kernel takes pointers, else exactly the kernel's
// types.
template <typename... Arguments>
void run_twin(const std::string& name, Groups groups, Arguments... arguments) {
  std::vector<Array> arrays;
  std::tuple values{argument_value(arguments, arrays)...};
  std::apply([&](auto&... value) { run_checked(name, groups, {(void*)&value...}, arrays); },
             values);
}

// Uniform in [-1, 1), the same for the same seed.
Floats random_floats(int64_t count, uint64_t seed);

// For outputs: a value that no kernel writes.
inline Floats unwritten(int64_t count) {
  return Floats(static_cast<size_t>(count), -99.0f);
}

inline double at(const Floats& x, int64_t i) {
  return double(x[static_cast<size_t>(i)]);
}

double dot(const Floats& a, const Floats& b);

// Expects `gradient` to be that of function() with respect to x, along random directions.
// `function` reads x, returns a double, and is smooth within `step` of x.
void expect_gradient(Floats& x, const Floats& gradient, const std::function<double()>& function,
                     double tolerance = 2e-3, float step = 1.0f / 128);

}  // namespace gpt
