// SPDX-License-Identifier: Apache-2.0
#pragma once
// Splits PTX text into words, strings and single punctuation marks. A word keeps its dots
// ("ld.global.f32", "%tid.x",
// ".reg"), so that opcodes and special registers are one token each.

#include <string>
#include <string_view>
#include <vector>

namespace simgpu::ptx {

enum class TokenKind { kWord, kString, kMark, kEnd };

struct Token {
  TokenKind kind;
  std::string_view text;  // into the text
  int line;
};

// The last token is kEnd. False and `error` set on a character that PTX does not know or an open
// comment.
bool tokenize(std::string_view text, std::vector<Token>* tokens, std::string* error);

}  // namespace simgpu::ptx
