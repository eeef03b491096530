// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/tests/twin_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "tests/workloads/kernels/dialect.h"
#include "tests/workloads/random.h"
#include "tests/workloads/tests/threads_runner.h"

namespace gpt {

const SimgpuTwin& find_twin(const std::string& name) {
  const SimgpuTwinTable* table = simgpu_twins();
  for (int i = 0; i < table->count; ++i) {
    if (name == table->twins[i].name) return table->twins[i];
  }
  throw std::runtime_error("no twin " + name);
}

SimgpuLaunch host_launch(Groups groups) {
  SimgpuLaunch launch{};
  launch.grid[0] = unsigned(round_up_quotient(groups.x, kGroupsPerBlock));
  launch.grid[1] = unsigned(groups.y);
  launch.grid[2] = unsigned(groups.z);
  launch.block[0] = kLanes;
  launch.block[1] = kGroupsPerBlock;
  launch.block[2] = 1;
  return launch;
}

void run_checked(const std::string& name, Groups groups, std::vector<void*> arguments,
                 const std::vector<Array>& arrays) {
  using Access = std::tuple<const void*, size_t, int>;
  std::multiset<Access> expected, claimed;
  for (const Array& array : arrays) {
    if (array.is_read) expected.insert({array.data, array.bytes, 0});
    if (array.is_written) expected.insert({array.data, array.bytes, 1});
  }
  const SimgpuLaunch launch = host_launch(groups);
  const SimgpuTwin& twin = find_twin(name);
  ASSERT_EQ(size_t(twin.parameter_count), arguments.size()) << name;
  twin.access(
      &launch, arguments.data(),
      [](void* context, const void* address, size_t bytes, int write) {
        static_cast<std::multiset<Access>*>(context)->insert({address, bytes, write});
      },
      &claimed);
  EXPECT_EQ(claimed, expected) << name;

  // What it writes, it writes to copies on the threads' side.
  std::vector<Floats> copies;
  std::vector<void*> pointers;
  std::vector<const float*> originals;
  copies.reserve(arrays.size());
  pointers.reserve(arrays.size());
  std::vector<void*> threads_arguments = arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (const Array& array : arrays) {
      if (!array.is_written || twin.parameter_size[i] != sizeof(void*) ||
          *static_cast<void**>(arguments[i]) != array.data) {
        continue;
      }
      const auto* data = static_cast<const float*>(array.data);
      originals.push_back(data);
      copies.emplace_back(data, data + array.bytes / sizeof(float));
      pointers.push_back(copies.back().data());
      threads_arguments[i] = &pointers.back();
    }
  }
  twin.run(&launch, arguments.data());
  run_on_threads(name, launch, threads_arguments.data());
  for (size_t a = 0; a < copies.size(); ++a) {
    for (size_t i = 0; i < copies[a].size(); ++i) {
      const double value = double(originals[a][i]);
      ASSERT_NEAR(double(copies[a][i]), value, 1e-5 * (1.0 + std::abs(value)))
          << name << " as threads, array " << a << ", element " << i;
    }
  }
}

Floats random_floats(int64_t count, uint64_t seed) {
  Random random(seed);
  Floats x(static_cast<size_t>(count));
  for (float& value : x) value = float(random.below(1 << 20)) * 0x1p-19f - 1.0f;
  return x;
}

double dot(const Floats& a, const Floats& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

void expect_gradient(Floats& x, const Floats& gradient, const std::function<double()>& function,
                     double tolerance, float step) {
  ASSERT_EQ(x.size(), gradient.size());
  const Floats origin = x;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Floats direction = random_floats(int64_t(x.size()), 1000 + seed);
    const auto shifted = [&](float by) {
      for (size_t i = 0; i < x.size(); ++i) x[i] = origin[i] + by * direction[i];
      return function();
    };
    const double measured = (shifted(step) - shifted(-step)) / (2.0 * double(step));
    const double claimed = dot(gradient, direction);
    // The slope along a random direction is small against the gradient's length, by chance.
    EXPECT_NEAR(measured, claimed, tolerance * (std::sqrt(dot(gradient, gradient)) + 1e-3))
        << "direction " << seed;
    EXPECT_GT(dot(gradient, gradient), 0.0);
  }
  x = origin;
}

}  // namespace gpt
