// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/lexer.h"

#include <gtest/gtest.h>

namespace simgpu::ptx {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::vector<Token> tokens;
  std::string error;
  EXPECT_TRUE(tokenize(text, &tokens, &error)) << error;
  std::vector<std::string> out;
  for (const Token& token : tokens) {
    if (token.kind != TokenKind::kEnd) out.emplace_back(token.text);
  }
  return out;
}

TEST(Lexer, KeepsDottedWordsTogether) {
  EXPECT_EQ(
      words("@!%p1 ld.global.nc.L1::no_allocate.v4.f32 {%f1,%f2}, [%rd1+-16];"),
      (std::vector<std::string>{"@", "!", "%p1", "ld.global.nc.L1::no_allocate.v4.f32", "{", "%f1",
                                ",", "%f2", "}", ",", "[", "%rd1", "+", "-", "16", "]", ";"}));
}

TEST(Lexer, EndsALabelAtItsColon) {
  EXPECT_EQ(words("$L__BB0_2: ret;"), (std::vector<std::string>{"$L__BB0_2", ":", "ret", ";"}));
}

TEST(Lexer, CountsLinesThroughComments) {
  std::vector<Token> tokens;
  std::string error;
  ASSERT_TRUE(tokenize("a // b\n/* c\n\n d */ e", &tokens, &error));
  ASSERT_EQ(tokens.size(), 3U);
  EXPECT_EQ(tokens[0].line, 1);
  EXPECT_EQ(tokens[1].text, "e");
  EXPECT_EQ(tokens[1].line, 4);
}

TEST(Lexer, NamesTheLineOfAStrayCharacter) {
  std::vector<Token> tokens;
  std::string error;
  EXPECT_FALSE(tokenize("a\nb \x01", &tokens, &error));
  EXPECT_NE(error.find("line 2"), std::string::npos) << error;
}

}  // namespace
}  // namespace simgpu::ptx
