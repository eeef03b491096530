// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parts of a statement between parser and decoder: a cursor over tokens, the names visible in a
// kernel, operands.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simgpu/module/ptx/lexer.h"
#include "tests/simgpu/module/ptx/program.h"

namespace simgpu::ptx {

// Thrown inside the parser only.
struct SyntaxError {
  int line;
  std::string what;
};
struct Unsupported {
  std::string what;
};

class Cursor {
 public:
  explicit Cursor(const std::vector<Token>& tokens) : tokens_(tokens) {}
  const Token& peek(size_t ahead = 0) const;
  Token next();
  bool at_mark(char mark, size_t ahead = 0) const;
  bool at_word(std::string_view word) const;
  bool accept(char mark);
  void expect(char mark);
  std::string_view word();
  int64_t integer();
  // To just behind the next ';' outside braces, or just before a '}' that closes an outer one.
  void skip_statement();
  void skip_line();
  void skip_braces();  // at '{'
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
};

// A number as written: the bits of an integer, or of a float of `type` kF32 or kF64.
struct Literal {
  Type type;
  uint64_t bits;
};
std::optional<Literal> parse_literal(std::string_view text);

struct Variable {
  Space space;
  size_t offset;
};

// Names of one kernel. Registers live in nested scopes, variables in one.
class Names {
 public:
  explicit Names(Program* program) : program_(program) { open(); }
  void open() { scopes_.emplace_back(); }
  void close() { scopes_.pop_back(); }
  size_t depth() const { return scopes_.size(); }
  int32_t declare_register(const std::string& name);
  void declare_variable(const std::string& name, Variable variable) { variables_[name] = variable; }
  std::optional<int32_t> find_register(std::string_view name) const;
  std::optional<Variable> find_variable(std::string_view name) const;
  // The slot of a constant; equal ones share it.
  int32_t constant(uint64_t value);
  int32_t constant(const Literal& literal, Type type);

 private:
  Program* program_;
  std::vector<std::map<std::string, int32_t, std::less<>>> scopes_;
  std::map<std::string, Variable, std::less<>> variables_;
  std::map<uint64_t, int32_t> constants_;
};

struct Operand {
  enum class Kind { kRegister, kLiteral, kVariable, kVector, kAddress, kName } kind{};
  bool negated = false;          // !p
  int32_t slot = kNoSlot;        // register; address: its base
  int32_t complement = kNoSlot;  // q of p|q
  Literal literal{};
  Variable variable{};  // variable; address: added to the offset where `has_variable`
  bool has_variable = false;
  int64_t offset = 0;
  std::vector<Operand> elements;  // vector
  std::string_view name;
};

Operand parse_operand(Cursor& cursor, const Names& names);

}  // namespace simgpu::ptx
