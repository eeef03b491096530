// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/parser.h"

#include <gtest/gtest.h>

#include "tests/simgpu/module/ptx/interpreter.h"
#include "tests/simgpu/module/tests/device.h"

namespace simgpu::ptx {
namespace {

constexpr const char* kHead = ".version 7.0\n.target sm_80\n.address_size 64\n";

std::vector<Program> parse(const std::string& text) {
  std::vector<Program> programs;
  std::string error;
  EXPECT_TRUE(parse_module(kHead + text, &programs, &error)) << error;
  return programs;
}

std::string error_of(const std::string& text) {
  std::vector<Program> programs;
  std::string error;
  EXPECT_FALSE(parse_module(text, &programs, &error));
  return error;
}

std::string unsupported(const std::string& body) {
  const auto programs = parse(
      ".entry k()\n{ .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;\n" + body + "\nret; }");
  return programs.empty() ? "no entry" : find_unsupported(programs[0]);
}

TEST(Parser, LaysParametersOutByTheirAlignment) {
  const auto programs = parse(
      ".visible .entry k(.param .u8 a, .param .align 8 .b8 b[12], .param .u16 c, .param .f64 d,\n"
      " .param .u64 .ptr .global .align 16 e) .maxntid 256, 1, 1 .minnctapersm 2 { ret; }");
  ASSERT_EQ(programs.size(), 1U);
  const auto& parameters = programs[0].parameters;
  ASSERT_EQ(parameters.size(), 5U);
  const size_t expected[5][2] = {{0, 1}, {8, 12}, {20, 2}, {24, 8}, {32, 8}};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(parameters[i].offset, expected[i][0]) << i;
    EXPECT_EQ(parameters[i].size, expected[i][1]) << i;
  }
  EXPECT_EQ(programs[0].parameter_bytes, 40U);
}

TEST(Parser, SkipsWhatIsNoEntry) {
  const auto programs = parse(
      ".file 1 \"a.cu\"\n.extern .func (.param .b32 r) vprintf (.param .b64 a);\n"
      ".global .align 4 .b8 table[8] = {1, 2, 3};\n.func helper() { .reg .b32 %r<2>; { ret; } }\n"
      ".section .debug_str { info: .b8 1, 2 }\n.entry one() { ret; }\n.weak .entry two() { ret; }");
  ASSERT_EQ(programs.size(), 2U);
  EXPECT_EQ(programs[0].name, "one");
  EXPECT_EQ(programs[1].name, "two");
}

TEST(Parser, TakesAHeaderOnOneLine) {
  std::vector<Program> programs;
  std::string error;
  EXPECT_TRUE(parse_module(".version 7.0 .target sm_80, debug .address_size 64 .entry k() { ret; }",
                           &programs, &error))
      << error;
  EXPECT_EQ(programs.size(), 1U);
}

TEST(Parser, InnerScopesHideOuterRegisters) {
  EXPECT_EQ(test::evaluate("mov.u64 %rd0, 7;\n{ .reg .b64 %rd0; mov.u64 %rd0, 9; }\n"
                           "mov.u64 %result, %rd0;"),
            7U);
}

TEST(Parser, NamesTheLineOfAnError) {
  const std::string head = kHead;
  EXPECT_NE(error_of(head + ".entry k()\n{ ret }").find("line 5"), std::string::npos);
  EXPECT_NE(error_of(head + ".entry k()\n{ bra nowhere; }").find("nowhere"), std::string::npos);
  EXPECT_NE(error_of("hello").find("line 1"), std::string::npos);
  EXPECT_NE(error_of(head + ".entry k() { ret;").find("end of the text"), std::string::npos);
}

TEST(Parser, NamesWhatItCannotInterpret) {
  EXPECT_EQ(unsupported("shfl.sync.down.b32 %r1, %r2, 16, 31, -1;"), "shfl.sync.down.b32");
  EXPECT_EQ(unsupported("{ .param .b64 p; call.uni (p), helper, (p); }"), ".param");
  EXPECT_EQ(unsupported("call.uni helper;"), "call.uni");
  EXPECT_EQ(unsupported("bar.sync 0, 64;"), "bar.sync");
  EXPECT_EQ(unsupported("bar.warp.sync -1;"), "bar.warp.sync");
  EXPECT_EQ(unsupported("add.rz.f32 %r1, %r2, %r3;"), "add.rz.f32");
  EXPECT_EQ(unsupported("add.cc.u32 %r1, %r2, %r3;"), "add.cc.u32");
  EXPECT_EQ(unsupported("add.f16 %r1, %r2, %r3;"), "add.f16");
  EXPECT_EQ(unsupported("add.u32 %r1, %r2;"), "add.u32");
  EXPECT_EQ(unsupported("mov.u64 %rd1, table;"), "the name table");
  EXPECT_EQ(unsupported("ld.global.u32 %r1, [table+4];"), "the variable table");
  EXPECT_EQ(unsupported("ld.const.u32 %r1, [%rd1];"), "ld.const.u32");
  EXPECT_EQ(unsupported("add.u32 %r1, %r2, %r3;"), "");
}

}  // namespace
}  // namespace simgpu::ptx
