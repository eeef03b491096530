// SPDX-License-Identifier: Apache-2.0
// What the twins say about themselves: parameter layouts and access sets.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tests/workloads/tests/twin_runner.h"

namespace gpt {
namespace {

struct Access {
  const void* address;
  size_t bytes;
  int write;
  bool operator==(const Access&) const = default;
};

template <typename... Arguments>
std::vector<Access> accesses_of(const std::string& name, Groups groups, Arguments... arguments) {
  void* pointers[] = {&arguments...};
  const SimgpuLaunch launch = host_launch(groups);
  std::vector<Access> accesses;
  find_twin(name).access(
      &launch, pointers,
      [](void* context, const void* address, size_t bytes, int write) {
        static_cast<std::vector<Access>*>(context)->push_back({address, bytes, write});
      },
      &accesses);
  return accesses;
}

TEST(TwinTable, is_complete_and_names_are_unique) {
  const SimgpuTwinTable* table = simgpu_twins();
  ASSERT_EQ(table->version, SIMGPU_TWIN_VERSION);
  std::set<std::string> names;
  for (int i = 0; i < table->count; ++i) {
    const SimgpuTwin& twin = table->twins[i];
    EXPECT_TRUE(names.insert(twin.name).second) << twin.name;
    EXPECT_NE(twin.run, nullptr);
    EXPECT_NE(twin.access, nullptr);
    EXPECT_NE(twin.flops, nullptr);
  }
  EXPECT_EQ(names.size(), 23u);
}

TEST(TwinTable, parameters_lie_as_in_a_struct) {
  struct Adamw {
    float *weight, *grad, *first, *second;
    float values[6];
    int64_t count;
  };
  const SimgpuTwin& twin = find_twin("gpt_adamw");
  ASSERT_EQ(twin.parameter_count, 11);
  EXPECT_EQ(twin.parameter_offset[3], 24u);
  EXPECT_EQ(twin.parameter_offset[9], offsetof(Adamw, values) + 20);
  EXPECT_EQ(twin.parameter_offset[10], offsetof(Adamw, count));
  EXPECT_EQ(twin.parameter_size[9], 4u);
  EXPECT_EQ(twin.parameter_size[10], 8u);

  struct Fill {
    float* out;
    float value;
    int64_t count;  // behind a gap of four bytes
  };
  EXPECT_EQ(find_twin("gpt_fill").parameter_offset[2], offsetof(Fill, count));
}

TEST(TwinTable, access_sets_are_whole_arrays_and_skip_null_pointers) {
  const Floats a(5 * 16), b(16 * 32);
  Floats out(5 * 32);
  const float* none = nullptr;
  const std::vector<Access> expected = {
      {a.data(), 5 * 16 * 4, 0}, {b.data(), 16 * 32 * 4, 0}, {out.data(), 5 * 32 * 4, 1}};
  EXPECT_EQ(
      accesses_of("gpt_matmul", Groups{1, 1}, a.data(), b.data(), none, out.data(), 5, 32, 16),
      expected);
}

TEST(TwinTable, chunks_round_up_and_updates_are_read_and_written) {
  const Floats a(10 * 16), b(10 * 32);
  Floats out(3 * 16 * 32);
  EXPECT_EQ(accesses_of("gpt_matmul_transposed", Groups{2, 1, 3}, a.data(), b.data(), out.data(),
                        10, 32, 16, 4)
                .back(),
            (Access{out.data(), 3 * 16 * 32 * 4, 1}));
  const auto into = accesses_of("gpt_add_into", Groups{1}, out.data(), a.data(), int64_t{7});
  const std::vector<Access> expected = {
      {out.data(), 28, 0}, {out.data(), 28, 1}, {a.data(), 28, 0}};
  EXPECT_EQ(into, expected);
}

TEST(TwinTable, operations_are_counted) {
  const float* p = nullptr;
  float* q = nullptr;
  int rows = 10, columns = 32, inner = 16;
  void* arguments[] = {&p, &p, &p, &q, &rows, &columns, &inner};
  const SimgpuLaunch launch = host_launch({2, 1});
  EXPECT_EQ(find_twin("gpt_matmul").flops(&launch, arguments), 2.0 * 10 * 32 * 16);
}

// Device addresses are translated before use, and reported as the program knows them.
TEST(TwinTable, pointers_inside_the_device_window_are_translated) {
  Floats memory(32, 1.0f);
  const uintptr_t window = 0x500000000000;
  const ptrdiff_t delta = ptrdiff_t(reinterpret_cast<uintptr_t>(memory.data())) - ptrdiff_t(window);
  SimgpuLaunch launch = host_launch({1});
  launch.window_begin = window;
  launch.window_end = window + 4096;
  launch.pointer_delta = delta;
  auto* to = reinterpret_cast<float*>(window);
  const auto* from = reinterpret_cast<const float*>(window + 64);
  int64_t count = 16;
  void* arguments[] = {&to, &from, &count};
  find_twin("gpt_add_into").run(&launch, arguments);
  EXPECT_EQ(memory[0], 2.0f);
  EXPECT_EQ(memory[15], 2.0f);
  EXPECT_EQ(memory[16], 1.0f);
}

}  // namespace
}  // namespace gpt
