// SPDX-License-Identifier: Apache-2.0
// The count of what the driver serves for a PyTorch that keeps its own cache.

#include "interpose/life/native_memory.h"

#include <gtest/gtest.h>

namespace offload {
namespace {

using Kind = NativeMemory::Kind;

class NativeMemoryTest : public testing::Test {
 protected:
  NativeMemoryTest() { memory_.limit(100); }
  bool take(Kind kind, uint64_t name, uint64_t bytes) {
    if (!memory_.reserve(bytes)) return false;
    memory_.hold(kind, name, bytes);
    return true;
  }

  Statistics statistics_;
  NativeMemory memory_{statistics_};
};

TEST_F(NativeMemoryTest, HoldsTheLimit) {
  EXPECT_TRUE(take(Kind::kAddress, 0x1000, 60));
  EXPECT_FALSE(memory_.reserve(41));
  EXPECT_EQ(memory_.left_bytes(), 40u);
  EXPECT_TRUE(memory_.reserve(40));
  EXPECT_FALSE(memory_.reserve(1));
  memory_.cancel(40);
  EXPECT_EQ(memory_.left_bytes(), 40u);
  EXPECT_EQ(statistics_.live_bytes.get(), 60u);
}

TEST_F(NativeMemoryTest, KeepsAddressesAndHandlesApart) {
  EXPECT_TRUE(take(Kind::kAddress, 7, 10));
  EXPECT_TRUE(take(Kind::kHandle, 7, 20));
  EXPECT_EQ(memory_.let_go(Kind::kAddress, 7), 10u);
  EXPECT_EQ(memory_.let_go(Kind::kAddress, 7), 0u);
  EXPECT_EQ(memory_.left_bytes(), 80u);
  EXPECT_EQ(memory_.let_go(Kind::kHandle, 7), 20u);
  EXPECT_EQ(memory_.left_bytes(), 100u);
}

TEST_F(NativeMemoryTest, ForgetsNothingThatCouldNotBeFreed) {
  EXPECT_TRUE(take(Kind::kAddress, 7, 10));
  const uint64_t bytes = memory_.let_go(Kind::kAddress, 7);
  memory_.take_back(Kind::kAddress, 7, bytes);
  EXPECT_EQ(memory_.left_bytes(), 90u);
  EXPECT_EQ(statistics_.live_bytes.get(), 10u);
}

TEST_F(NativeMemoryTest, EndsWithItsContext) {
  EXPECT_TRUE(take(Kind::kAddress, 1, 10));
  EXPECT_TRUE(take(Kind::kHandle, 2, 20));
  memory_.forget();
  EXPECT_EQ(memory_.left_bytes(), 100u);
  EXPECT_EQ(memory_.let_go(Kind::kHandle, 2), 0u);
  EXPECT_EQ(statistics_.live_bytes.get(), 0u);
  EXPECT_EQ(statistics_.mapped_bytes.get(), 0u);
}

// Nothing below zero after a limit that is lower than what is held.
TEST_F(NativeMemoryTest, IsNeverLessThanNothing) {
  EXPECT_TRUE(take(Kind::kAddress, 1, 90));
  memory_.limit(50);
  EXPECT_EQ(memory_.left_bytes(), 0u);
  EXPECT_FALSE(memory_.reserve(1));
}

}  // namespace
}  // namespace offload
