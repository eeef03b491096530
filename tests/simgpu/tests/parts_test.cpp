// SPDX-License-Identifier: Apache-2.0
// The driver's inner parts by themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/simgpu/check/access_map.h"
#include "tests/simgpu/check/vector_clock.h"
#include "tests/simgpu/driver/handle_pool.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/exec/range_set.h"
#include "tests/simgpu/exec/stream.h"
#include "tests/simgpu/exec/timeline.h"
#include "tests/simgpu/memory/allotments.h"
#include "tests/simgpu/memory/physical.h"
#include "tests/simgpu/memory/range_allocator.h"
#include "tests/simgpu/memory/sparse_copy.h"

namespace simgpu {
namespace {

TEST(RangeAllocator, LastInFirstOutThenLowest) {
  RangeAllocator ranges(1000, 2000);
  EXPECT_EQ(ranges.allocate(100, 1), 1000U);
  EXPECT_EQ(ranges.allocate(100, 1), 1100U);
  EXPECT_EQ(ranges.allocate(50, 64), 1216U);
  ranges.release(1000, 100);
  ranges.release(1100, 100);
  EXPECT_EQ(ranges.allocate(100, 1), 1100U);
  EXPECT_EQ(ranges.allocate(30, 1), 1000U);
  EXPECT_EQ(ranges.allocate(100, 1), 1266U);
  EXPECT_EQ(ranges.allocate(5000, 1), RangeAllocator::kNone);
}

TEST(RangeAllocator, NeighboursMerge) {
  RangeAllocator ranges(0, 300);
  for (int i = 0; i < 3; ++i) ranges.allocate(100, 1);
  EXPECT_TRUE(ranges.free_ranges().empty());
  ranges.release(0, 100);
  ranges.release(200, 100);
  EXPECT_EQ(ranges.free_ranges().size(), 2U);
  ranges.release(100, 100);
  EXPECT_EQ(ranges.free_ranges().size(), 1U);
  EXPECT_EQ(ranges.allocate(300, 1), 0U);
  ranges.release(0, 300);
  EXPECT_TRUE(ranges.allocate_at(50, 100));
  EXPECT_FALSE(ranges.allocate_at(149, 10));
  EXPECT_TRUE(ranges.allocate_at(150, 10));
}

TEST(HandlePool, FindsOnlyWhatIsAlive) {
  HandlePool<int> pool;
  int* a = pool.create();
  int* b = pool.create();
  EXPECT_EQ(pool.find(a), a);
  pool.destroy(a);
  EXPECT_EQ(pool.find(a), nullptr);
  EXPECT_EQ(pool.find(b), b);
  EXPECT_EQ(pool.find(reinterpret_cast<char*>(b) + 1), nullptr);
  int elsewhere = 0;
  EXPECT_EQ(pool.find(&elsewhere), nullptr);
  EXPECT_EQ(pool.create(), a);
}

TEST(VectorClock, JoinsAndCovers) {
  VectorClock a;
  VectorClock b;
  a.raise(0, 5);
  b.raise(2, 7);
  EXPECT_FALSE(a.covers(b));
  a.join(b);
  EXPECT_TRUE(a.covers(b));
  EXPECT_TRUE(a.covers(0, 5));
  EXPECT_FALSE(a.covers(0, 6));
  EXPECT_FALSE(a.covers(1, 1));
  a.lower(2, 3);
  EXPECT_EQ(a.at(2), 3U);
}

TEST(AccessMap, SplitsAndMerges) {
  AccessMap map;
  Access first;
  first.write = {1, 1, 1};
  map.assign(0, 100, first);
  map.assign(100, 200, first);
  EXPECT_EQ(map.size(), 1U);
  int visits = 0;
  map.update(50, 60, [&](uint64_t begin, uint64_t end, Access& access) {
    ++visits;
    EXPECT_EQ(begin, 50U);
    EXPECT_EQ(end, 60U);
    access.reads.push_back({2, 1, 2});
  });
  EXPECT_EQ(visits, 1);
  EXPECT_EQ(map.size(), 3U);
  uint64_t covered = 0;
  map.update(40, 260, [&](uint64_t begin, uint64_t end, Access&) { covered += end - begin; });
  EXPECT_EQ(covered, 220U);  // the gap past 200 as well
  Access second;
  second.write = {3, 1, 3};
  map.assign(0, 260, second);
  EXPECT_EQ(map.size(), 1U);
}

TEST(RangeSet, GathersRunsInAnyOrder) {
  RangeSet set;
  for (uintptr_t lane = 0; lane < 40; ++lane) {
    for (uintptr_t i = 0; i < 10; ++i) set.add(lane * 1000 + i * 4, lane * 1000 + i * 4 + 4);
  }
  EXPECT_TRUE(set.contains(39000, 39040));
  EXPECT_TRUE(set.contains(3004, 3036));
  EXPECT_FALSE(set.contains(3004, 3044));
  EXPECT_EQ(set.finish().size(), 40U);
  RangeSet backwards;
  for (uintptr_t i = 100; i > 0; --i) backwards.add(i * 8, i * 8 + 8);
  EXPECT_EQ(backwards.finish().size(), 1U);
}

// Against a byte each: short runs by chance, and long ones among them, over several chunks.
TEST(RangeSet, KeepsWhatWasAddedAndNothingElse) {
  constexpr uintptr_t kBytes = 400'000;
  std::mt19937 chance(7);
  for (int round = 0; round < 20; ++round) {
    RangeSet set;
    std::vector<bool> known(kBytes);
    const uintptr_t longest = round % 2 == 0 ? 300 : 150'000;
    for (int i = 0; i < 200; ++i) {
      const uintptr_t begin = chance() % (kBytes - 1);
      const uintptr_t end = std::min(kBytes, begin + 1 + chance() % longest);
      set.add(begin, end);
      std::fill(known.begin() + static_cast<long>(begin), known.begin() + static_cast<long>(end),
                true);
      const uintptr_t at = chance() % (kBytes - 200);
      const uintptr_t until = at + 1 + chance() % 200;
      const auto asked = known.begin() + static_cast<long>(at);
      EXPECT_EQ(set.contains(at, until),
                std::all_of(asked, known.begin() + static_cast<long>(until), std::identity{}));
    }
    std::vector<bool> found(kBytes);
    uintptr_t last = 0;
    for (const auto& [begin, end] : set.finish()) {
      EXPECT_TRUE(begin > last || last == 0) << "neighbours are one range";
      last = end;
      std::fill(found.begin() + static_cast<long>(begin), found.begin() + static_cast<long>(end),
                true);
    }
    EXPECT_TRUE(found == known);
  }
}

TEST(SparseCopy, LeavesHolesAlone) {
  constexpr size_t kMiB = 1 << 20;
  PhysicalMemory a(0, "a", 64 * kMiB, 4096);
  PhysicalMemory b(1, "b", 64 * kMiB, 4096);
  const uint64_t at_a = a.allocate(16 * kMiB);
  const uint64_t at_b = b.allocate(16 * kMiB);
  a.at(at_a)[5 * kMiB] = std::byte{7};
  b.at(at_b)[9 * kMiB] = std::byte{1};  // must become zero
  sparse_copy({&b, at_b, b.at(at_b)}, {&a, at_a, a.at(at_a)}, 16 * kMiB);
  EXPECT_FALSE(is_touched(b, at_b, 16 * kMiB));
  EXPECT_TRUE(is_touched(b, at_b + 5 * kMiB, 4096));
  EXPECT_FALSE(is_touched(b, at_b + 6 * kMiB, 4096));
  EXPECT_EQ(b.at(at_b)[5 * kMiB], std::byte{7});
  EXPECT_EQ(b.at(at_b)[9 * kMiB], std::byte{0});
}

TEST(PhysicalMemory, CountsAndRefuses) {
  PhysicalMemory memory(0, "memory", 1 << 20, 4096);
  const uint64_t a = memory.allocate(1 << 19);
  EXPECT_NE(memory.allocate(1 << 19), PhysicalMemory::kNone);
  EXPECT_EQ(memory.allocate(4096), PhysicalMemory::kNone);
  memory.free(a, 1 << 19);
  EXPECT_EQ(memory.used(), size_t{1} << 19);
  EXPECT_EQ(memory.peak(), size_t{1} << 20);
}

TEST(Timeline, SharesLinksOnlyWhileBothRun) {
  Timeline timeline(true, {1e9, 1e9, 0.5});
  Stream up;
  Stream down;
  timeline.start(&up, {Resource::kHostToDevice, 1e6, 0}, 0);  // 1 ms alone
  EXPECT_EQ(timeline.next_end_ns(), 1000000);
  EXPECT_FALSE(timeline.is_free(Resource::kHostToDevice));
  EXPECT_TRUE(timeline.is_free(Resource::kCompute));
  timeline.start(&down, {Resource::kDeviceToHost, 1e6, 0}, 500000);
  EXPECT_EQ(timeline.next_end_ns(), 1500000);  // the second half at half speed
  EXPECT_EQ(timeline.take_finished(1400000), nullptr);
  EXPECT_EQ(timeline.take_finished(1500000), &up);
  EXPECT_EQ(timeline.next_end_ns(), 2000000);  // alone again
  EXPECT_EQ(timeline.take_finished(2000000), &down);
  EXPECT_EQ(timeline.next_end_ns(), -1);
}

TEST(Allotments, IsDeadUntilSomethingNewIsThere) {
  Allotments all;
  all.add(1000, 100);
  EXPECT_FALSE(all.is_dead(1050));
  all.remove(1000);
  EXPECT_TRUE(all.is_dead(1000));
  EXPECT_TRUE(all.is_dead(1099));
  EXPECT_FALSE(all.is_dead(1100));
  EXPECT_FALSE(all.is_dead(999));
  all.add(1090, 50);
  EXPECT_FALSE(all.is_dead(1095));
  EXPECT_EQ(all.find(1139)->number, 2U);
  EXPECT_EQ(all.find(1140), nullptr);
}

TEST(Options, TheReadmeListsThemAll) {
  std::ifstream file(SIMGPU_README);
  const std::string text(std::istreambuf_iterator<char>(file), {});
#define SIMGPU_OPTION(type, field, name, preset, help)                                  \
  EXPECT_NE(text.find("| `SIMGPU_" #name "` | " + std::string(*preset ? preset : "–") + \
                      " | " help " |"),                                                 \
            std::string::npos)                                                          \
      << #name;
#include "tests/simgpu/driver/options.def"
#undef SIMGPU_OPTION
}

TEST(Options, SizesAndSchedules) {
  size_t bytes = 0;
  EXPECT_TRUE(detail::parse_option(std::string("1.5GiB"), &bytes));
  EXPECT_EQ(bytes, size_t{3} << 29);
  EXPECT_TRUE(detail::parse_option(std::string("2GB"), &bytes));
  EXPECT_EQ(bytes, 2000000000U);
  EXPECT_FALSE(detail::parse_option(std::string("-1"), &bytes));
  EXPECT_FALSE(detail::parse_option(std::string("12parsecs"), &bytes));
  ScheduleOption schedule;
  EXPECT_TRUE(detail::parse_option(std::string("random:77"), &schedule));
  EXPECT_EQ(schedule.seed, 77U);
  EXPECT_FALSE(detail::parse_option(std::string("randomly"), &schedule));
}

}  // namespace
}  // namespace simgpu
