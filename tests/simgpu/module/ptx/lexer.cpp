// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/lexer.h"

#include <cctype>

namespace simgpu::ptx {
namespace {

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$' ||
         letter == '%' || letter == '.';
}

constexpr std::string_view kMarks = "{}[]()<>,;:+-@!|=&*/~^?#";

bool fail(int line, const std::string& what, std::string* error) {
  *error = "PTX line " + std::to_string(line) + ": " + what;
  return false;
}

}  // namespace

bool tokenize(std::string_view text, std::vector<Token>* tokens, std::string* error) {
  int line = 1;
  size_t at = 0;
  while (at < text.size()) {
    const char letter = text[at];
    if (letter == '\n') ++line;
    if (std::isspace(static_cast<unsigned char>(letter)) != 0) {
      ++at;
      continue;
    }
    const auto rest = text.substr(at);
    if (rest.starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (rest.starts_with("/*")) {
      const size_t end = text.find("*/", at + 2);
      if (end == std::string_view::npos) return fail(line, "comment without end", error);
      for (; at < end + 2; ++at) line += text[at] == '\n';
      continue;
    }
    size_t end = at + 1;
    TokenKind kind = TokenKind::kMark;
    if (letter == '"') {
      kind = TokenKind::kString;
      end = text.find('"', at + 1);
      if (end == std::string_view::npos) return fail(line, "string without end", error);
      ++end;
    } else if (is_word(letter)) {
      kind = TokenKind::kWord;
      // "::" belongs to a modifier as in L1::no_allocate; a single colon ends a label.
      while (end < text.size() &&
             (is_word(text[end]) || (text.substr(end, 2) == "::" && end + 2 < text.size()))) {
        end += text[end] == ':' ? 2 : 1;
      }
    } else if (kMarks.find(letter) == std::string_view::npos) {
      return fail(line, std::string("unexpected character '") + letter + "'", error);
    }
    tokens->push_back({kind, text.substr(at, end - at), line});
    at = end;
  }
  tokens->push_back({TokenKind::kEnd, {}, line});
  return true;
}

}  // namespace simgpu::ptx
