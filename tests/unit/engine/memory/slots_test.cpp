// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/slots.h"

#include <gtest/gtest.h>

#include <set>

#include "profiler/base/log.h"
#include "tests/unit/engine/memory/fixture.h"

namespace offload::model {
namespace {

struct SlotsTest : testing::TestWithParam<bool> {
  SlotsTest()
      : parts(late), slots(std::make_unique<Slots>(parts.port, *parts.streams, *parts.statistics)) {
    set_log_sink([](std::string_view) {});
    parts.streams->lane(Lane::kOut);
  }
  void start(uint64_t limit_granules, uint32_t largest, uint64_t chunk_granules = 1) {
    ASSERT_EQ(slots->initialise(kGranularity, limit_granules * kGranularity, largest,
                                chunk_granules * kGranularity, GetParam()),
              Status::kOk);
  }
  // As the engine does it: pins what is lacking, and looks again.
  Slot* take(uint32_t granules, bool for_restore) {
    for (;;) {
      Lacking lacking;
      Slot* slot = slots->take(granules, for_restore, &lacking);
      if (slot != nullptr || lacking.granules == 0) return slot;
      Slots::Growth growth;
      if (!slots->begin(lacking, &growth)) continue;
      slots->pin(&growth);
      slots->end(&growth);
    }
  }
  // A point on the lane out that has not passed.
  Fence pending() {
    Fence fence;
    fence.add(parts.streams->advance_lane(parts.streams->lane(Lane::kOut)));
    return fence;
  }
  Late late{Late::First::kOut};
  Parts parts;
  std::unique_ptr<Slots> slots;
};

TEST_P(SlotsTest, TheReserveIsForRestores) {
  start(10, 2);  // reserve: 3
  std::vector<Slot*> taken;
  while (Slot* slot = take(1, false)) taken.push_back(slot);
  EXPECT_EQ(taken.size(), 7u);
  EXPECT_EQ(slots->free_bytes(), 3 * kGranularity);
  Slot* large = take(2, true);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(large->granules, 2u);
  ASSERT_NE(take(1, true), nullptr);
  EXPECT_EQ(take(1, true), nullptr);
  EXPECT_EQ(slots->available_bytes(), 0u);
  // What comes back is the reserve's first.
  slots->put(taken[0], {});
  slots->put(taken[1], {});
  slots->put(taken[2], {});
  EXPECT_EQ(take(1, false), nullptr);
  slots->put(taken[3], {});
  EXPECT_NE(take(1, false), nullptr);
}

TEST_P(SlotsTest, SlotsDoNotOverlapAndTheLimitHolds) {
  start(20, 4, 4);
  std::set<Address> granules;
  for (const uint32_t size : {1u, 2u, 4u, 1u, 4u}) {
    Slot* slot = take(size, true);
    ASSERT_NE(slot, nullptr);
    EXPECT_EQ(slot->granules, size);
    for (uint32_t i = 0; i < size; ++i) {
      EXPECT_TRUE(granules.insert(slot->home + i * kGranularity).second);
      EXPECT_NE(parts.device.memory().shown_at(slot->home + i * kGranularity), 0u);
    }
  }
  EXPECT_LE(slots->pinned_bytes(), 20 * kGranularity);
  EXPECT_EQ(slots->used_bytes(), 12 * kGranularity);
}

TEST_P(SlotsTest, FreeSlotsOfOtherSizesGiveWay) {
  start(8, 4, 8);
  std::vector<Slot*> small;
  while (Slot* slot = take(1, true)) small.push_back(slot);
  EXPECT_EQ(small.size(), 8u);
  for (Slot* slot : small) slots->put(slot, {});
  Slot* a = take(4, true);
  Slot* b = take(4, true);
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(take(1, true), nullptr);
  slots->put(a, {});
  for (int i = 0; i < 4; ++i) EXPECT_NE(take(1, true), nullptr) << i;
}

TEST_P(SlotsTest, ASlotKeepsTheFenceOfItsCopy) {
  start(4, 1);
  Slot* slot = take(1, true);
  const Fence fence = pending();
  slots->put(slot, fence);
  Slot* again = nullptr;
  for (int i = 0; i < 4 && again != slot; ++i) again = take(1, true);
  ASSERT_EQ(again, slot);
  ASSERT_FALSE(slot->fence.empty());
  EXPECT_EQ(slot->fence.begin()->position, fence.begin()->position);
}

TEST_P(SlotsTest, WaitingForCopiesHelpsWhenTheyBlock) {
  start(4, 4, 4);
  std::vector<Slot*> small;
  while (Slot* slot = take(1, true)) small.push_back(slot);
  for (Slot* slot : small) slots->put(slot, pending());
  Fence fence;
  EXPECT_TRUE(slots->blocked(&fence));
  if (GetParam()) {
    EXPECT_EQ(take(4, true), nullptr);
  }
  parts.device.run_all();
  EXPECT_FALSE(slots->blocked(&fence));
  EXPECT_NE(take(4, true), nullptr);
}

TEST_P(SlotsTest, ASystemThatRefusesIsAskedAgainNowAndThen) {
  start(8, 1);
  const Call call = GetParam() ? Call::kCreate : Call::kPin;
  parts.port.fail_call(call, 1, Status::kOutOfMemory);
  EXPECT_EQ(take(1, false), nullptr);
  const uint64_t calls = parts.port.calls(call);
  EXPECT_EQ(take(1, false), nullptr);
  EXPECT_EQ(parts.port.calls(call), calls);
  Slot* slot = nullptr;
  for (int i = 0; i < 200 && slot == nullptr; ++i) slot = take(1, false);
  EXPECT_NE(slot, nullptr);
}

// The limit is far, but the system gives no more than this.
TEST_P(SlotsTest, FreeSlotsOfOtherSizesGiveWayWhereTheSystemRefuses) {
  if (!GetParam()) GTEST_SKIP() << "pinned blocks are cut and joined";
  start(64, 4);
  std::vector<Slot*> small;
  for (int i = 0; i < 8; ++i) small.push_back(take(1, true));
  for (Slot* slot : small) slots->put(slot, {});
  const uint64_t given = slots->pinned_bytes();
  parts.port.fail_call(Call::kCreate, 1, Status::kOutOfMemory);
  EXPECT_NE(take(4, true), nullptr);
  EXPECT_LE(slots->pinned_bytes(), given);
}

INSTANTIATE_TEST_SUITE_P(Mode, SlotsTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& mode) {
                           return mode.param ? "mappable" : "pinned";
                         });

}  // namespace
}  // namespace offload::model
