// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/address_space.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/unit/engine/memory/fixture.h"

namespace offload::model {
namespace {

constexpr uint64_t kLow = uint64_t{1} << 32;

TEST(AddressSpace, TakesTheSmallestRangeThatFits) {
  Eager eager;
  Parts parts(eager);
  AddressSpace space;
  ASSERT_EQ(space.reserve(parts.port, 100 * kGranularity, kGranularity, 0), Status::kOk);
  const Address a = space.take(10);
  const Address b = space.take(3);
  const Address c = space.take(10);
  EXPECT_EQ(b, a + 10 * kGranularity);
  EXPECT_EQ(c, b + 3 * kGranularity);
  space.give_back(a, 10);
  EXPECT_EQ(space.take(4), a);
  space.give_back(b, 3);
  EXPECT_EQ(space.take(9), a + 4 * kGranularity);  // joined with what was left of the first
}

TEST(AddressSpace, JoinsOnBothSidesAndEndsAsItBegan) {
  Eager eager;
  Parts parts(eager);
  AddressSpace space;
  ASSERT_EQ(space.reserve(parts.port, 64 * kGranularity, kGranularity, 0), Status::kOk);
  std::mt19937_64 random(5);
  std::map<Address, uint64_t> taken;
  for (int i = 0; i < 5000; ++i) {
    if (random() % 2 == 0) {
      const uint64_t granules = 1 + random() % 9;
      const Address at = space.take(granules);
      if (at == 0) continue;
      const auto next = taken.lower_bound(at);
      ASSERT_TRUE(next == taken.end() || at + granules * kGranularity <= next->first);
      ASSERT_TRUE(next == taken.begin() ||
                  std::prev(next)->first + std::prev(next)->second * kGranularity <= at);
      ASSERT_GE(at, space.base());
      ASSERT_LE(at + granules * kGranularity, space.base() + space.bytes());
      taken[at] = granules;
    } else if (!taken.empty()) {
      auto any = taken.begin();
      std::advance(any, static_cast<std::ptrdiff_t>(random() % taken.size()));
      space.give_back(any->first, any->second);
      taken.erase(any);
    }
  }
  for (const auto& [at, granules] : taken) space.give_back(at, granules);
  EXPECT_EQ(space.take(64), space.base());
  EXPECT_EQ(space.take(1), 0u);
}

// No range begins where the low half of the address is small: half a stale pointer beside an index
// would look like one of ours.
TEST(AddressSpace, NoRangeHasASmallLowHalf) {
  Eager eager;
  Parts parts(eager);
  constexpr uint64_t kGranule = 2 << 20;
  constexpr uint64_t kFloor = 256 << 20;
  AddressSpace space;
  ASSERT_EQ(space.reserve(parts.port, uint64_t{12} << 30, kGranule, kFloor), Status::kOk);
  uint64_t taken = 0;
  for (;;) {
    const Address at = space.take(100);
    if (at == 0) break;
    ++taken;
    EXPECT_GE(at % kLow, kFloor);
    EXPECT_LE(at % kLow + 100 * kGranule, kLow) << "crosses into a small low half";
  }
  // Three times 3.75 GiB, less what does not divide.
  EXPECT_GE(taken, 3 * ((kLow - kFloor) / (100 * kGranule)) - 3);
}

// What is larger than the space between two floors crosses one, but does not begin below it.
TEST(AddressSpace, AHugeRangeBeginsAboveTheFloor) {
  Eager eager;
  Parts parts(eager);
  constexpr uint64_t kGranule = 2 << 20;
  constexpr uint64_t kFloor = 256 << 20;
  AddressSpace space;
  ASSERT_EQ(space.reserve(parts.port, uint64_t{16} << 30, kGranule, kFloor), Status::kOk);
  const Address at = space.take((uint64_t{5} << 30) / kGranule);
  ASSERT_NE(at, 0u);
  EXPECT_GE(at % kLow, kFloor);
}

}  // namespace
}  // namespace offload::model
