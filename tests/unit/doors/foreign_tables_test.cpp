// SPDX-License-Identifier: Apache-2.0
#include "interpose/naming/foreign_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace offload {
namespace {

constexpr Address kAt = 0x7000'0000;

class Foreign : public testing::Test {
 protected:
  std::vector<Address> named(Address begin, Address end) const {
    OwnVector<Address> words;
    tables_.read(begin, end, &words);
    std::vector<Address> sorted(words.begin(), words.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
  bool set(Address begin, uint64_t bytes, std::initializer_list<Address> words) {
    return tables_.set(begin, begin + bytes, OwnVector<Address>(words));
  }
  ForeignTables tables_;
};

using Words = std::vector<Address>;

TEST_F(Foreign, ATableNamesFromWhereItReachesTo) {
  EXPECT_TRUE(tables_.empty());
  EXPECT_FALSE(tables_.may_name(kAt));
  ASSERT_TRUE(set(kAt, 64, {1, 2}));
  EXPECT_FALSE(tables_.empty());
  EXPECT_EQ(named(kAt, kAt + 8), (Words{1, 2}));
  EXPECT_EQ(named(kAt + 63, kAt + 100), (Words{1, 2}));
  EXPECT_EQ(named(kAt - 8, kAt + 1), (Words{1, 2}));
  EXPECT_EQ(named(kAt + 64, kAt + 100), Words{});
  EXPECT_EQ(named(kAt - 8, kAt), Words{});
}

// Most words of a launch are no addresses at all: they must be told without a lock.
TEST_F(Foreign, OnlyWhatLiesAroundTheTablesIsLookedUp) {
  ASSERT_TRUE(set(kAt, 64, {1}));
  ASSERT_TRUE(set(kAt + 4096, 64, {2}));
  EXPECT_TRUE(tables_.may_name(kAt));
  EXPECT_TRUE(tables_.may_name(kAt - ForeignTables::kReach + 1));
  EXPECT_FALSE(tables_.may_name(kAt - ForeignTables::kReach));
  EXPECT_TRUE(tables_.may_name(kAt + 4096 + 63));
  EXPECT_FALSE(tables_.may_name(kAt + 4096 + 64));
  EXPECT_FALSE(tables_.may_name(0));
  EXPECT_FALSE(tables_.may_name(~Address{0}));
}

TEST_F(Foreign, WhatIsOverwrittenWholeIsForgotten) {
  ASSERT_TRUE(set(kAt, 64, {1}));
  ASSERT_TRUE(set(kAt, 128, {2}));
  EXPECT_EQ(named(kAt, kAt + 128), (Words{2}));
  ASSERT_TRUE(set(kAt, 16, {3}));  // the rest of the longer one still names
  EXPECT_EQ(named(kAt, kAt + 128), (Words{2, 3}));
  tables_.forget(kAt, kAt + 64);
  EXPECT_EQ(named(kAt, kAt + 128), (Words{2, 3}));
  tables_.forget(kAt, kAt + 128);
  EXPECT_EQ(named(kAt, kAt + 128), Words{});
}

TEST_F(Foreign, ThereIsAnEndToWhatIsRemembered) {
  for (size_t i = 0; i < ForeignTables::kMostTables; ++i) ASSERT_TRUE(set(kAt + 64 * i, 64, {i}));
  EXPECT_FALSE(set(kAt + 64 * ForeignTables::kMostTables, 64, {1}));
  tables_.forget(kAt, kAt + 64);
  EXPECT_TRUE(set(kAt + 64 * ForeignTables::kMostTables, 64, {1}));
  tables_.forget(0, ~Address{0});
  EXPECT_FALSE(tables_.set(kAt, kAt + 8, OwnVector<Address>(ForeignTables::kMostWords + 1, 7)));
  EXPECT_TRUE(tables_.set(kAt, kAt + 8, OwnVector<Address>(ForeignTables::kMostWords, 7)));
  EXPECT_FALSE(set(kAt + 8, 8, {1}));
}

}  // namespace
}  // namespace offload
