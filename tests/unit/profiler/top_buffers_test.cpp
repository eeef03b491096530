// SPDX-License-Identifier: Apache-2.0
#include "profiler/top_buffers.h"

#include <gtest/gtest.h>

namespace offload {
namespace {

TEST(TopBuffers, SumsEachSizeBothWays) {
  TopBuffers top;
  for (int i = 0; i < 3; ++i) top.moved(100, 100, true);
  for (int i = 0; i < 2; ++i) top.moved(100, 100, false);
  top.moved(1000, 1000, true);
  TopBuffers::Entry entries[TopBuffers::kReported];
  ASSERT_EQ(top.read(entries), 2u);
  EXPECT_EQ(entries[0].buffer_bytes, 1000u);
  EXPECT_EQ(entries[1].buffer_bytes, 100u);
  EXPECT_EQ(entries[1].moved_bytes, 500u);
  EXPECT_EQ(entries[1].copies_out, 3u);
  EXPECT_EQ(entries[1].copies_in, 2u);
  EXPECT_EQ(entries[1].error_bytes, 0u);
}

TEST(TopBuffers, APartOfABufferIsThatBuffers) {
  TopBuffers top;
  top.moved(100, 60, true);
  top.moved(100, 40, true);
  TopBuffers::Entry entries[TopBuffers::kReported];
  ASSERT_EQ(top.read(entries), 1u);
  EXPECT_EQ(entries[0].buffer_bytes, 100u);
  EXPECT_EQ(entries[0].moved_bytes, 100u);
}

TEST(TopBuffers, ReportsTheLargestFirst) {
  TopBuffers top;
  for (std::uint64_t size = 1; size <= 30; ++size) top.moved(size * 10, size * 10, true);
  TopBuffers::Entry entries[TopBuffers::kReported];
  ASSERT_EQ(top.read(entries), TopBuffers::kReported);
  for (std::size_t i = 0; i < TopBuffers::kReported; ++i) {
    EXPECT_EQ(entries[i].buffer_bytes, (30 - i) * 10);
  }
}

TEST(TopBuffers, WhatMovesMostSurvivesAStreamOfOthers) {
  TopBuffers top;
  // The heavy ones come again and again between thousands of sizes that come once.
  for (std::uint64_t round = 0; round < 1000; ++round) {
    top.moved(5000, 5000, true);
    top.moved(7000, 7000, false);
    top.moved(100 + round, 100 + round, true);
  }
  TopBuffers::Entry entries[TopBuffers::kReported];
  top.read(entries);
  EXPECT_EQ(entries[0].buffer_bytes, 7000u);
  EXPECT_EQ(entries[0].moved_bytes, 7000000u);
  EXPECT_EQ(entries[0].error_bytes, 0u);
  EXPECT_EQ(entries[1].buffer_bytes, 5000u);
  EXPECT_GT(entries[2].error_bytes, 0u) << "an inherited sum must be marked";
  EXPECT_LE(entries[2].moved_bytes - entries[2].error_bytes, 1100u);
}

}  // namespace
}  // namespace offload
