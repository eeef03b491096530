// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/simgpu/module/tests/device.h"

namespace simgpu::test {
namespace {

// The word at out+8 after `instruction` met `before`; what the instruction returned is in
// `returned`.
uint32_t word_after(const std::string& instruction, uint32_t before, uint32_t* returned = nullptr) {
  const auto image = load_text(program(instruction + "cvt.u64.u32 %result, %r0;"));
  Device device(64);
  device.set(8, before);
  EXPECT_TRUE(device.run(*image->find("k"), device.launch(1, 1), device.address()));
  if (returned != nullptr) *returned = device.get<uint32_t>(0);
  return device.get<uint32_t>(8);
}

TEST(Atomics, ReturnTheOldValue) {
  uint32_t returned = 0;
  EXPECT_EQ(word_after("atom.global.add.u32 %r0, [%out+8], 5;", 10, &returned), 15U);
  EXPECT_EQ(returned, 10U);
  EXPECT_EQ(word_after("atom.global.exch.b32 %r0, [%out+8], 5;", 10, &returned), 5U);
  EXPECT_EQ(returned, 10U);
}

TEST(Atomics, EveryOperation) {
  EXPECT_EQ(word_after("red.global.min.s32 [%out+8], -1;", 10), 0xffffffffU);
  EXPECT_EQ(word_after("red.global.min.u32 [%out+8], -1;", 10), 10U);
  EXPECT_EQ(word_after("red.global.max.u32 [%out+8], 11;", 10), 11U);
  EXPECT_EQ(word_after("red.global.and.b32 [%out+8], 6;", 10), 2U);
  EXPECT_EQ(word_after("red.global.or.b32 [%out+8], 6;", 10), 14U);
  EXPECT_EQ(word_after("red.relaxed.gpu.global.xor.b32 [%out+8], 6;", 10), 12U);
  EXPECT_EQ(word_after("atom.global.cas.b32 %r0, [%out+8], 10, 7;", 10), 7U);
  EXPECT_EQ(word_after("atom.global.cas.b32 %r0, [%out+8], 11, 7;", 10), 10U);
  EXPECT_EQ(word_after("atom.global.inc.u32 %r0, [%out+8], 10;", 10), 0U);
  EXPECT_EQ(word_after("atom.global.inc.u32 %r0, [%out+8], 11;", 10), 11U);
  EXPECT_EQ(word_after("atom.global.dec.u32 %r0, [%out+8], 9;", 0), 9U);
  EXPECT_EQ(word_after("red.global.add.f32 [%out+8], 0f40000000;", 0x3f800000), 0x40400000U);
}

TEST(Atomics, CountAsReadAndWrite) {
  const auto image = load_text(program("red.global.add.u32 [%out+8], 1;"));
  Device device(64);
  ASSERT_TRUE(device.run(*image->find("k"), device.launch(1, 1), device.address()));
  ASSERT_GE(device.accesses.size(), 2U);
  EXPECT_EQ(device.accesses[0], (Access{device.address(8), 4, false}));
  EXPECT_EQ(device.accesses[1], (Access{device.address(8), 4, true}));
}

}  // namespace
}  // namespace simgpu::test
