// SPDX-License-Identifier: Apache-2.0
// What one process may pin, between its devices.

#include "interpose/life/host_parts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace offload {
namespace {

// Gives what it is asked for, up to what the machine has.
class Machine final : public HostShare {
 public:
  uint64_t take(uint64_t wanted_bytes, uint64_t unit_bytes) override {
    const uint64_t given = std::min(wanted_bytes, left_) / unit_bytes * unit_bytes;
    left_ -= given;
    return given;
  }
  void give(uint64_t bytes) override { left_ += bytes; }
  uint64_t left_ = 1000;
};

class HostPartsTest : public testing::Test {
 protected:
  void start(uint32_t devices) {
    parts_.start(800, machine_, devices);
    parts_.join(first_, 40);
  }
  Machine machine_;
  HostParts parts_;
  HostPart first_;
  HostPart second_;
};

TEST_F(HostPartsTest, TheOnlyDeviceMayHaveAll) {
  start(1);
  EXPECT_EQ(first_.take(900, 10), 800u);
  EXPECT_EQ(first_.take(10, 10), 0u);
  EXPECT_EQ(machine_.left_, 200u);
  first_.give(300);
  EXPECT_EQ(machine_.left_, 500u);
  EXPECT_EQ(first_.take(900, 200), 200u);
}

TEST_F(HostPartsTest, SomethingIsLeftToTheOthers) {
  start(2);
  EXPECT_EQ(first_.take(900, 10), 760u);
  parts_.join(second_, 40);
  EXPECT_EQ(second_.take(100, 10), 40u);
  EXPECT_EQ(second_.take(10, 10), 0u);
  first_.give(100);
  EXPECT_EQ(second_.take(200, 10), 100u) << "the first has more than the least";
}

TEST_F(HostPartsTest, WhoHasItsPartIsLeftNoMore) {
  start(2);
  parts_.join(second_, 40);
  EXPECT_EQ(second_.take(60, 10), 60u);
  EXPECT_EQ(first_.take(900, 10), 740u);
}

// Many devices that are never used cost a part of the limit at most.
TEST_F(HostPartsTest, ManyDevicesDoNotTakeItAll) {
  start(16);
  EXPECT_EQ(first_.take(900, 10), 700u);
}

TEST_F(HostPartsTest, TheMachineMayHaveLess) {
  machine_.left_ = 55;
  start(1);
  EXPECT_EQ(first_.take(100, 10), 50u);
  EXPECT_EQ(first_.take(100, 5), 5u);
}

}  // namespace
}  // namespace offload
