// SPDX-License-Identifier: Apache-2.0
#pragma once
// The words of an opcode behind the first: taken one by one, so that what is left at the end was
// not understood.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simgpu/module/ptx/program.h"

namespace simgpu::ptx {

// "f32" -> kF32; nothing for types that the interpreter does not have (f16, b128).
std::optional<Type> parse_type(std::string_view text);

class Modifiers {
 public:
  // `opcode` as written, "ld.global.f32".
  explicit Modifiers(std::string_view opcode);
  std::string_view base() const { return base_; }
  // True if the word is there; it is taken then.
  bool take(std::string_view word);
  // The first of `words` that is there.
  template <class Value>
  std::optional<Value> take_one(std::initializer_list<std::pair<std::string_view, Value>> words) {
    for (const auto& [word, value] : words) {
      if (take(word)) return value;
    }
    return std::nullopt;
  }
  // Words that change nothing in a model that runs one thread after another: cache hints, scopes,
  // orders.
  void drop_memory_hints();
  // The last type; throws Unsupported if there is none.
  Type take_type();
  // Throws Unsupported if a word is left.
  void finish() const;
  [[noreturn]] void refuse() const;

 private:
  std::string_view opcode_;
  std::string_view base_;
  std::vector<std::string_view> words_;
};

}  // namespace simgpu::ptx
