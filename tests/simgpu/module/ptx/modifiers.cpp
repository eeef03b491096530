// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/modifiers.h"

#include <algorithm>

#include "tests/simgpu/module/ptx/operands.h"

namespace simgpu::ptx {

std::optional<Type> parse_type(std::string_view text) {
  static constexpr std::pair<std::string_view, Type> kTypes[] = {
      {"pred", Type::kPred}, {"b8", Type::kB8},   {"b16", Type::kB16}, {"b32", Type::kB32},
      {"b64", Type::kB64},   {"u8", Type::kU8},   {"u16", Type::kU16}, {"u32", Type::kU32},
      {"u64", Type::kU64},   {"s8", Type::kS8},   {"s16", Type::kS16}, {"s32", Type::kS32},
      {"s64", Type::kS64},   {"f32", Type::kF32}, {"f64", Type::kF64}};
  for (const auto& [name, type] : kTypes) {
    if (text == name) return type;
  }
  return std::nullopt;
}

Modifiers::Modifiers(std::string_view opcode) : opcode_(opcode) {
  size_t begin = 0;
  while (begin <= opcode.size()) {
    const size_t end = std::min(opcode.find('.', begin), opcode.size());
    words_.push_back(opcode.substr(begin, end - begin));
    begin = end + 1;
  }
  base_ = words_[0];
  words_.erase(words_.begin());
}

bool Modifiers::take(std::string_view word) {
  const auto found = std::find(words_.begin(), words_.end(), word);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}

void Modifiers::drop_memory_hints() {
  static constexpr std::string_view kHints[] = {
      "volatile", "weak", "relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu",
      "sys",      "ca",   "cg",      "cs",      "cv",      "lu",      "wb",  "wt",      "nc"};
  std::erase_if(words_, [](std::string_view word) {
    return word.starts_with("L1::") || word.starts_with("L2::") ||
           std::find(std::begin(kHints), std::end(kHints), word) != std::end(kHints);
  });
}

Type Modifiers::take_type() {
  for (auto word = words_.rbegin(); word != words_.rend(); ++word) {
    if (const auto type = parse_type(*word)) {
      words_.erase(std::next(word).base());
      return *type;
    }
  }
  refuse();
}

void Modifiers::finish() const {
  if (!words_.empty()) refuse();
}

void Modifiers::refuse() const {
  throw Unsupported{std::string(opcode_)};
}

}  // namespace simgpu::ptx
