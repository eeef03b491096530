// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/slabs.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/engine/arena_heap.h"

namespace offload::model {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(SlabClasses, EverySizeFitsAndAtMostAnEighthIsWasted) {
  uint32_t previous = 0;
  for (uint64_t bytes = 1; bytes <= 4 * kMiB; bytes += bytes < 70000 ? 1 : 511) {
    const uint32_t size_class = Slabs::class_of(bytes);
    const uint64_t block = Slabs::class_bytes(size_class);
    ASSERT_GE(block, bytes);
    ASSERT_EQ(block % Slabs::kSmallest, 0u);
    ASSERT_GE(size_class, previous);
    if (bytes > 8 * Slabs::kSmallest) {
      ASSERT_LE((block - bytes) * 8, bytes) << bytes;
    } else {
      ASSERT_LT(block - bytes, Slabs::kSmallest);
    }
    previous = size_class;
  }
}

TEST(SlabClasses, AClassServesItsOwnSize) {
  for (uint32_t size_class = 0; size_class < 100; ++size_class) {
    EXPECT_EQ(Slabs::class_of(Slabs::class_bytes(size_class)), size_class);
    EXPECT_EQ(Slabs::class_of(Slabs::class_bytes(size_class) + 1), size_class + 1);
  }
}

TEST(SlabClasses, ASlabWastesAtMostAnEighthAtItsEnd) {
  for (uint64_t bytes = 512; bytes < 4 * kMiB; bytes += 4096) {
    const uint64_t block = Slabs::class_bytes(Slabs::class_of(bytes));
    const uint64_t slab = Slabs::slab_granules(block, 2 * kMiB, 16) * 2 * kMiB;
    ASSERT_GE(slab, block);
    ASSERT_LE(slab % block * 8, slab) << block;
  }
}

struct SlabsTest : testing::Test {
  ~SlabsTest() override {
    slabs = Slabs();
    free_own_heap();
  }
  Slab* add(uint32_t size_class, Address at, uint64_t bytes, const Fence& fence = {}) {
    return slabs.add(size_class, at, 1, {}, bytes, fence);
  }
  static bool any(const Block&) { return true; }
  Slabs slabs;
};

TEST_F(SlabsTest, GivesOutEveryBlockOnce) {
  BlockAt at;
  EXPECT_FALSE(slabs.take(1, any, &at));
  add(1, 0x10000, 4096);
  std::set<Address> seen;
  while (slabs.take(1, any, &at)) {
    EXPECT_TRUE(at.block().live);
    EXPECT_TRUE(seen.insert(at.address()).second);
    EXPECT_EQ((at.address() - 0x10000) % 1024, 0u);
    EXPECT_EQ(Slabs::find(*at.slab, at.address() + 1023).index, at.index);
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(SlabsTest, PrefersABlockThatSuitsElseTheLatest) {
  Slab* slab = add(0, 0x10000, 4 * 512);
  BlockAt blocks[4];
  for (BlockAt& block : blocks) ASSERT_TRUE(slabs.take(0, any, &block));
  for (BlockAt& block : blocks) slabs.put(block);
  BlockAt at;
  ASSERT_TRUE(slabs.take(
      0, [&](const Block& block) { return &block == &slab->blocks[1]; }, &at));
  EXPECT_EQ(at.index, 1u);
  ASSERT_TRUE(slabs.take(
      0, [](const Block&) { return false; }, &at));
  EXPECT_EQ(at.index, 3u);
}

TEST_F(SlabsTest, OnlyASlabWithoutLiveBlocksIsTaken) {
  add(0, 0x10000, 1024);
  BlockAt at;
  ASSERT_TRUE(slabs.take(0, any, &at));
  EXPECT_EQ(slabs.take_empty(), nullptr);
  slabs.put(at);
  Slab* empty = slabs.take_empty();
  ASSERT_NE(empty, nullptr);
  EXPECT_FALSE(slabs.take(0, any, &at));
  slabs.forget(empty);
}

TEST_F(SlabsTest, BlocksBeginWithTheFenceOfTheirExtents) {
  Fence fence;
  fence.add({3, 7});
  add(0, 0x10000, 1024, fence);
  BlockAt at;
  ASSERT_TRUE(slabs.take(0, any, &at));
  ASSERT_FALSE(at.block().fence.empty());
  EXPECT_EQ(at.block().fence.begin()->position, 7u);
}

}  // namespace
}  // namespace offload::model
