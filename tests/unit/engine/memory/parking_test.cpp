// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/parking.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/arena_heap.h"

namespace offload::model {
namespace {

bool any(const Buffer&) {
  return true;
}

struct ParkingTest : testing::Test {
  ~ParkingTest() override {
    parking = Parking();
    free_own_heap();
  }
  Buffer* park(uint32_t granules) {
    Buffer* buffer = own_new<Buffer>();
    buffer->granules = granules;
    parking.put(buffer);
    return buffer;
  }
  Parking parking;
};

TEST_F(ParkingTest, ServesTheSameSizeOrAnEighthMore) {
  for (uint32_t wanted = 1; wanted <= 64; ++wanted) {
    for (uint32_t parked = 1; parked <= 80; ++parked) {
      Buffer* buffer = park(parked);
      const bool fits = parked >= wanted && (parked - wanted) * 8 <= wanted;
      EXPECT_EQ(parking.take(wanted, any), fits ? buffer : nullptr) << wanted << " of " << parked;
      EXPECT_EQ(parking.take_oldest(any), fits ? nullptr : buffer);
    }
  }
  EXPECT_EQ(parking.granules(), 0u);
}

TEST_F(ParkingTest, PrefersTheNearestSizeThenOneThatSuitsThenTheLatest) {
  Buffer* larger = park(9);
  Buffer* first = park(8);
  Buffer* second = park(8);
  EXPECT_EQ(parking.take(8, [&](const Buffer& buffer) { return &buffer == first; }), first);
  EXPECT_EQ(parking.take(8, [](const Buffer&) { return false; }), second);
  EXPECT_EQ(parking.take(8, any), larger);
  EXPECT_EQ(parking.take(8, any), nullptr);
}

TEST_F(ParkingTest, TheOldestGoesFirst) {
  Buffer* a = park(4);
  Buffer* b = park(2);
  Buffer* c = park(4);
  EXPECT_EQ(parking.granules(), 10u);
  EXPECT_EQ(parking.take_oldest([&](const Buffer& buffer) { return &buffer != a; }), b);
  parking.put(b);  // now the latest
  EXPECT_EQ(parking.take_oldest(any), a);
  EXPECT_EQ(parking.take_oldest(any), c);
  EXPECT_EQ(parking.take_oldest(any), b);
  EXPECT_EQ(parking.take_oldest(any), nullptr);
}

TEST_F(ParkingTest, VisitsOldestFirst) {
  Buffer* a = park(1);
  Buffer* b = park(5);
  Buffer* c = park(1);
  std::vector<const Buffer*> seen;
  parking.for_each([&](const Buffer& buffer) { seen.push_back(&buffer); });
  EXPECT_EQ(seen, (std::vector<const Buffer*>{a, b, c}));
}

}  // namespace
}  // namespace offload::model
