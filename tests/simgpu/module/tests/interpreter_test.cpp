// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/simgpu/module/tests/device.h"

namespace simgpu::test {
namespace {

uint64_t f32(const std::string& body) {
  return evaluate(body + "mov.b32 %r7, %f0; cvt.u64.u32 %result, %r7;");
}
float as_float(const std::string& body) {
  return std::bit_cast<float>(static_cast<uint32_t>(f32(body)));
}
double as_double(const std::string& body) {
  return std::bit_cast<double>(evaluate(body + "mov.b64 %result, %d0;"));
}
// The 32-bit result in %r0.
uint32_t as_word(const std::string& body) {
  return static_cast<uint32_t>(evaluate(body + "cvt.u64.u32 %result, %r0;"));
}
// 1 if %p0 holds.
uint64_t as_flag(const std::string& body) {
  return evaluate(body + "selp.u64 %result, 1, 0, %p0;");
}

TEST(Interpreter, IntegerArithmeticWraps) {
  EXPECT_EQ(as_word("add.s32 %r0, 2147483647, 1;"), 0x80000000U);
  EXPECT_EQ(as_word("sub.u32 %r0, 0, 1;"), 0xffffffffU);
  EXPECT_EQ(as_word("mul.lo.s32 %r0, -3, 5;"), static_cast<uint32_t>(-15));
  EXPECT_EQ(as_word("mul.hi.u32 %r0, 0x80000000, 6;"), 3U);
  EXPECT_EQ(as_word("mul.hi.s32 %r0, -2147483648, 2;"), 0xffffffffU);
  EXPECT_EQ(evaluate("mul.wide.s32 %result, -4, 3;"), static_cast<uint64_t>(-12));
  EXPECT_EQ(evaluate("mul.wide.u32 %result, 0xffffffff, 4;"), 0x3fffffffcULL);
  EXPECT_EQ(evaluate("mul.hi.u64 %result, 0x8000000000000000, 10;"), 5U);
  EXPECT_EQ(as_word("mad.lo.s32 %r0, 7, 6, -2;"), 40U);
  EXPECT_EQ(evaluate("mov.u64 %rd1, 100; mad.wide.u32 %result, 7, 6, %rd1;"), 142U);
}

TEST(Interpreter, DivisionTruncatesAndDefinesZero) {
  EXPECT_EQ(as_word("div.s32 %r0, -7, 2;"), static_cast<uint32_t>(-3));
  EXPECT_EQ(as_word("rem.s32 %r0, -7, 2;"), static_cast<uint32_t>(-1));
  EXPECT_EQ(as_word("div.u32 %r0, -7, 2;"), 0x7ffffffcU);
  EXPECT_EQ(as_word("div.s32 %r0, -2147483648, -1;"), 0x80000000U);
  EXPECT_EQ(as_word("div.u32 %r0, 5, 0;"), 0xffffffffU);
}

TEST(Interpreter, ShiftsClampTheirCount) {
  EXPECT_EQ(as_word("shl.b32 %r0, 1, 31;"), 0x80000000U);
  EXPECT_EQ(as_word("shl.b32 %r0, 1, 32;"), 0U);
  EXPECT_EQ(as_word("shr.u32 %r0, 0x80000000, 31;"), 1U);
  EXPECT_EQ(as_word("shr.u32 %r0, 0x80000000, 32;"), 0U);
  EXPECT_EQ(as_word("shr.u32 %r0, 0x80000000, 40;"), 0U);
  EXPECT_EQ(as_word("shr.s32 %r0, -8, 1;"), static_cast<uint32_t>(-4));
  EXPECT_EQ(as_word("shr.s32 %r0, -8, 99;"), 0xffffffffU);
}

TEST(Interpreter, BitOperations) {
  EXPECT_EQ(as_word("and.b32 %r0, 0xff00, 0x0ff0;"), 0x0f00U);
  EXPECT_EQ(as_word("not.b32 %r0, 0x0f;"), 0xfffffff0U);
  EXPECT_EQ(as_word("popc.b32 %r0, 0xf0f0;"), 8U);
  EXPECT_EQ(as_word("clz.b32 %r0, 1;"), 31U);
  EXPECT_EQ(as_word("brev.b32 %r0, 1;"), 0x80000000U);
  EXPECT_EQ(as_word("bfe.u32 %r0, 0xabcd, 4, 8;"), 0xbcU);
  EXPECT_EQ(as_word("bfe.s32 %r0, 0x80, 4, 4;"), 0xfffffff8U);
  EXPECT_EQ(as_word("bfi.b32 %r0, 0xf, 0xabcd, 4, 8;"), 0xa0fdU);
  EXPECT_EQ(
      as_word("mov.u32 %r1, 0x33221100; mov.u32 %r2, 0x77665544; prmt.b32 %r0, %r1, %r2, 0x4702;"),
      0x44770022U);
}

TEST(Interpreter, FloatsAreIeee) {
  EXPECT_EQ(as_float("add.f32 %f0, 0f3F800000, 0f33800000;"), 1.0F);  // 1 + 2^-24 rounds to even
  EXPECT_EQ(as_float("mov.f32 %f1, 1.5; mul.rn.f32 %f0, %f1, -2.0;"), -3.0F);
  EXPECT_EQ(as_float("mov.f32 %f1, 0f3F800001; fma.rn.f32 %f0, %f1, %f1, 0fBF800000;"),
            std::fma(1.00000012F, 1.00000012F, -1.0F));
  EXPECT_EQ(as_float("div.rn.f32 %f0, 1.0, 3.0;"), 1.0F / 3.0F);
  EXPECT_EQ(as_float("min.f32 %f0, 0f7FC00000, 2.0;"), 2.0F);  // a NaN loses
  EXPECT_EQ(as_float("add.sat.f32 %f0, 1.0, 0.5;"), 1.0F);
  EXPECT_EQ(as_float("sqrt.rn.f32 %f0, 2.0;"), std::sqrt(2.0F));
  EXPECT_EQ(as_float("ex2.approx.f32 %f0, 3.0;"), 8.0F);
  EXPECT_EQ(as_double("add.f64 %d0, 0d3FF0000000000000, 0.25;"), 1.25);
  EXPECT_EQ(as_double("copysign.f64 %d0, -1.0, 4.0;"), -4.0);
}

TEST(Interpreter, ConversionsRoundAndClamp) {
  EXPECT_EQ(as_word("cvt.rni.s32.f32 %r0, 2.5;"), 2U);
  EXPECT_EQ(as_word("cvt.rzi.s32.f32 %r0, -2.9;"), static_cast<uint32_t>(-2));
  EXPECT_EQ(as_word("cvt.rmi.s32.f32 %r0, -2.1;"), static_cast<uint32_t>(-3));
  EXPECT_EQ(as_word("cvt.rzi.s32.f32 %r0, 3e9;"), 0x7fffffffU);
  EXPECT_EQ(as_word("cvt.rzi.u32.f32 %r0, -1.0;"), 0U);
  EXPECT_EQ(as_word("cvt.rzi.s32.f32 %r0, 0f7FC00000;"), 0U);
  EXPECT_EQ(as_float("mov.u32 %r1, -1; cvt.rn.f32.s32 %f0, %r1;"), -1.0F);
  EXPECT_EQ(as_float("mov.u32 %r1, -1; cvt.rn.f32.u32 %f0, %r1;"), 4294967296.0F);
  EXPECT_EQ(evaluate("mov.u32 %r1, 0x80; cvt.s64.s8 %result, %r1;"), static_cast<uint64_t>(-128));
  EXPECT_EQ(as_word("mov.u32 %r1, 300; cvt.sat.u8.u32 %r0, %r1;"), 255U);
  EXPECT_EQ(as_float("cvt.rn.f32.f64 %f0, 0.1;"), 0.1F);
  EXPECT_EQ(as_float("cvt.rpi.f32.f32 %f0, 1.2;"), 2.0F);
}

TEST(Interpreter, ComparesOrderedAndUnordered) {
  EXPECT_EQ(as_flag("setp.lt.s32 %p0, -1, 1;"), 1U);
  EXPECT_EQ(as_flag("setp.lt.u32 %p0, -1, 1;"), 0U);
  EXPECT_EQ(as_flag("setp.hi.u32 %p0, -1, 1;"), 1U);
  EXPECT_EQ(as_flag("setp.ne.f32 %p0, 0f7FC00000, 1.0;"), 0U);
  EXPECT_EQ(as_flag("setp.neu.f32 %p0, 0f7FC00000, 1.0;"), 1U);
  EXPECT_EQ(as_flag("setp.nan.f32 %p0, 0f7FC00000, 1.0;"), 1U);
  EXPECT_EQ(as_flag("setp.eq.u32 %p1, 1, 1; setp.lt.and.u32 %p0, 1, 2, !%p1;"), 0U);
  EXPECT_EQ(as_flag("setp.eq.u32 %p1|%p0, 1, 2;"), 1U);
  EXPECT_EQ(as_flag("setp.eq.u32 %p1, 1, 2; not.pred %p0, %p1;"), 1U);
}

TEST(Interpreter, PacksAndUnpacks) {
  EXPECT_EQ(evaluate("mov.u32 %r1, 1; mov.u32 %r2, 2; mov.b64 %result, {%r1, %r2};"),
            0x200000001ULL);
  EXPECT_EQ(as_word("mov.u64 %rd1, 0x700000005; mov.b64 {%r1, %r0}, %rd1;"), 7U);
}

TEST(Interpreter, BranchesAndGuards) {
  // 1 + 2 + ... + 10, then one guarded addition that happens and one that does not.
  EXPECT_EQ(evaluate("mov.u64 %rd1, 10;\n"
                     "loop: add.u64 %result, %result, %rd1; sub.u64 %rd1, %rd1, 1;\n"
                     "setp.ne.u64 %p1, %rd1, 0; @%p1 bra loop;\n"
                     "@!%p1 add.u64 %result, %result, 100;\n@%p1 add.u64 %result, %result, 1000;"),
            155U);
}

TEST(Interpreter, LoadsEveryWidthWithItsSign) {
  const std::string fill = "st.global.u64 [%out+8], 0xfedcba9876543280;";
  EXPECT_EQ(evaluate(fill + "ld.global.u8 %result, [%out+8];"), 0x80U);
  EXPECT_EQ(evaluate(fill + "ld.global.s8 %result, [%out+8];"), static_cast<uint64_t>(-128));
  EXPECT_EQ(evaluate(fill + "ld.global.s16 %result, [%out+14];"), 0xfffffffffffffedcULL);
  EXPECT_EQ(evaluate(fill + "ld.global.u32 %result, [%out+12];"), 0xfedcba98U);
  EXPECT_EQ(evaluate(fill + "ld.volatile.global.s32 %result, [%out+12];"), 0xfffffffffedcba98ULL);
  EXPECT_EQ(evaluate(fill + "ld.relaxed.gpu.global.u64 %result, [%out+8];"), 0xfedcba9876543280ULL);
}

TEST(Interpreter, ReportsEachGlobalAccessBeforeItHappens) {
  const auto image =
      load_text(program("ld.global.v2.u32 {%r1, %r2}, [%out+16]; st.global.u16 [%out+4], %r2;"));
  Device device(64);
  ASSERT_TRUE(device.run(*image->find("k"), device.launch(1, 1), device.address()));
  EXPECT_EQ(device.accesses, (std::vector<Access>{{device.address(16), 8, false},
                                                  {device.address(4), 2, true},
                                                  {device.address(0), 8, true}}));
}

TEST(Interpreter, StopsAtARefusedAccess) {
  const auto image = load_text(program("st.global.u32 [%out+64], 1; mov.u64 %result, 5;"));
  Device device(64);
  EXPECT_FALSE(device.run(*image->find("k"), device.launch(1, 1), device.address()));
  EXPECT_EQ(device.get<uint64_t>(0), 0U);
}

TEST(Interpreter, NeverRunsForEver) {
  const auto image = load_text(program("loop: bra loop;"));
  Device device(64);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(device.run(*image->find("k"), device.launch(1, 1), device.address()));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("SIMGPU_PTX_LIMIT"), std::string::npos);
}

TEST(Interpreter, KnowsWhereAThreadIs) {
  const auto image = load_text(program(
      "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, "
      "%r3;\n"
      "mul.wide.u32 %rd1, %r4, 8; add.u64 %out, %out, %rd1; cvt.u64.u32 %result, %r4;\n"
      "mov.u32 %r5, %nctaid.x; cvt.u64.u32 %rd2, %r5; mad.lo.u64 %result, %result, 100, %rd2;"));
  Device device(8 * 6);
  ASSERT_TRUE(device.run(*image->find("k"), device.launch(2, 3), device.address()));
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(device.get<uint64_t>(i * 8), i * 100 + 2) << i;
}

TEST(Interpreter, ThreadsMeetAtABarrierThoughSomeHaveLeft) {
  // Each thread stores its number; behind the barrier the first reads the second's. The last one
  // leaves before it.
  const auto image = load_text(program(
      ".shared .align 4 .b8 numbers[12];\n"
      "mov.u32 %r1, %tid.x; setp.eq.u32 %p0, %r1, 2; @%p0 exit;\n"
      "mov.u32 %r2, numbers; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; add.u32 %r4, %r1, 40;\n"
      "st.shared.u32 [%r2], %r4; bar.sync 0; setp.ne.u32 %p0, %r1, 0; @%p0 exit;\n"
      "ld.shared.u32 %r5, [numbers+4]; cvt.u64.u32 %result, %r5;"));
  Device device(64);
  ASSERT_TRUE(device.run(*image->find("k"), device.launch(1, 3), device.address()));
  EXPECT_EQ(device.get<uint64_t>(0), 41U);
}

TEST(Interpreter, LeavingSharedMemoryIsAnError) {
  const auto image =
      load_text(program(".shared .align 4 .b8 block[16];\nst.shared.u32 [block+16], 1;"));
  Device device(64);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(device.run(*image->find("k"), device.launch(1, 1), device.address()));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("shared memory"), std::string::npos);
}

}  // namespace
}  // namespace simgpu::test
