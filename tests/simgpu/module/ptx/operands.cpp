// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/operands.h"

#include <bit>
#include <charconv>
#include <cstring>

namespace simgpu::ptx {
namespace {

constexpr std::string_view kSpecials[kSpecialCount] = {
    "%tid.x",    "%tid.y",    "%tid.z",   "%ntid.x",  "%ntid.y",
    "%ntid.z",   "%ctaid.x",  "%ctaid.y", "%ctaid.z", "%nctaid.x",
    "%nctaid.y", "%nctaid.z", "%laneid",  "%warpid",  "%dynamic_smem_size"};

std::optional<uint64_t> parse_digits(std::string_view digits, int base) {
  uint64_t value = 0;
  const auto [end, status] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (status != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool starts_number(const Token& token) {
  return token.kind == TokenKind::kWord && token.text[0] >= '0' && token.text[0] <= '9';
}

}  // namespace

const Token& Cursor::peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

Token Cursor::next() {
  const Token token = peek();
  if (token.kind == TokenKind::kEnd) fail("unexpected end of the text");
  ++at_;
  return token;
}

bool Cursor::at_mark(char mark, size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == TokenKind::kMark && token.text[0] == mark;
}

bool Cursor::at_word(std::string_view word) const {
  return peek().kind == TokenKind::kWord && peek().text == word;
}

bool Cursor::accept(char mark) {
  if (!at_mark(mark)) return false;
  ++at_;
  return true;
}

void Cursor::expect(char mark) {
  if (!accept(mark)) {
    fail(std::string("expected '") + mark + "', found '" + std::string(peek().text) + "'");
  }
}

std::string_view Cursor::word() {
  if (peek().kind == TokenKind::kEnd) fail("unexpected end of the text");
  if (peek().kind != TokenKind::kWord) {
    fail("expected a name, found '" + std::string(peek().text) + "'");
  }
  return next().text;
}

int64_t Cursor::integer() {
  const bool negative = accept('-');
  const auto literal = parse_literal(word());
  if (!literal || is_float(literal->type)) fail("expected an integer");
  const auto value = static_cast<int64_t>(literal->bits);
  return negative ? -value : value;
}

void Cursor::skip_statement() {
  int depth = 0;
  while (true) {
    if (depth == 0 && at_mark('}')) return;
    const Token token = next();
    if (token.kind != TokenKind::kMark) continue;
    if (token.text[0] == '{') ++depth;
    if (token.text[0] == '}') --depth;
    if (token.text[0] == ';' && depth == 0) return;
  }
}

void Cursor::skip_line() {
  const int line = peek().line;
  while (peek().kind != TokenKind::kEnd && peek().line == line) ++at_;
}

void Cursor::skip_braces() {
  int depth = 0;
  do {
    const Token token = next();
    if (token.kind != TokenKind::kMark) continue;
    if (token.text[0] == '{') ++depth;
    if (token.text[0] == '}') --depth;
  } while (depth > 0);
}

void Cursor::fail(const std::string& what) const {
  throw SyntaxError{peek().line, what};
}

std::optional<Literal> parse_literal(std::string_view text) {
  if (text == "WARP_SZ") return Literal{Type::kB64, 32};
  if (text.size() == 10 && (text.starts_with("0f") || text.starts_with("0F"))) {
    if (auto bits = parse_digits(text.substr(2), 16)) return Literal{Type::kF32, *bits};
    return std::nullopt;
  }
  if (text.size() == 18 && (text.starts_with("0d") || text.starts_with("0D"))) {
    if (auto bits = parse_digits(text.substr(2), 16)) return Literal{Type::kF64, *bits};
    return std::nullopt;
  }
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (!hexadecimal && text.find_first_of(".eE") != std::string_view::npos) {
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return Literal{Type::kF64, std::bit_cast<uint64_t>(value)};
  }
  if (text.ends_with('U')) text.remove_suffix(1);
  int base = 10;
  if (hexadecimal) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.starts_with("0b") || text.starts_with("0B")) {
    base = 2;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  if (auto bits = parse_digits(text, base)) return Literal{Type::kB64, *bits};
  return std::nullopt;
}

int32_t Names::declare_register(const std::string& name) {
  const int32_t slot = program_->slots++;
  scopes_.back()[name] = slot;
  return slot;
}

std::optional<int32_t> Names::find_register(std::string_view name) const {
  for (int32_t i = 0; i < kSpecialCount; ++i) {
    if (name == kSpecials[i]) return i;
  }
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(name); found != scope->end()) return found->second;
  }
  return std::nullopt;
}

std::optional<Variable> Names::find_variable(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

int32_t Names::constant(uint64_t value) {
  const auto [found, added] = constants_.try_emplace(value, program_->slots);
  if (added) program_->constants.push_back({program_->slots++, value});
  return found->second;
}

int32_t Names::constant(const Literal& literal, Type type) {
  uint64_t bits = literal.bits;
  if (literal.type == Type::kF64 && type == Type::kF32) {
    bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  } else if (literal.type == Type::kF32 && type == Type::kF64) {
    bits = std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  }
  return constant(bits);
}

namespace {

Operand parse_address(Cursor& cursor, const Names& names) {
  Operand operand;
  operand.kind = Operand::Kind::kAddress;
  if (starts_number(cursor.peek())) {
    operand.offset = cursor.integer();
  } else {
    const std::string_view name = cursor.word();
    if (const auto slot = names.find_register(name)) {
      operand.slot = *slot;
    } else if (const auto variable = names.find_variable(name)) {
      operand.variable = *variable;
      operand.has_variable = true;
    } else {
      operand.name = name;  // the decoder says that it does not know it
    }
    if (cursor.accept('+') || cursor.at_mark('-')) operand.offset = cursor.integer();
  }
  cursor.expect(']');
  return operand;
}

Operand parse_number(Cursor& cursor) {
  const bool negative = cursor.accept('-');
  auto literal = parse_literal(cursor.word());
  if (!literal) cursor.fail("not a number");
  if (negative && literal->type == Type::kF64) literal->bits ^= 1ULL << 63;
  if (negative && literal->type == Type::kF32) literal->bits ^= 1ULL << 31;
  if (negative && !is_float(literal->type)) literal->bits = ~literal->bits + 1;
  Operand operand;
  operand.kind = Operand::Kind::kLiteral;
  operand.literal = *literal;
  return operand;
}

}  // namespace

Operand parse_operand(Cursor& cursor, const Names& names) {
  Operand operand;
  if (cursor.accept('[')) return parse_address(cursor, names);
  if (cursor.accept('{')) {
    operand.kind = Operand::Kind::kVector;
    do {
      operand.elements.push_back(parse_operand(cursor, names));
    } while (cursor.accept(','));
    cursor.expect('}');
    return operand;
  }
  if (cursor.at_mark('-') || starts_number(cursor.peek())) return parse_number(cursor);
  operand.negated = cursor.accept('!');
  operand.name = cursor.word();
  if (const auto slot = names.find_register(operand.name)) {
    operand.kind = Operand::Kind::kRegister;
    operand.slot = *slot;
    if (cursor.accept('|')) {
      const auto complement = names.find_register(cursor.word());
      if (!complement) cursor.fail("unknown predicate behind '|'");
      operand.complement = *complement;
    }
  } else if (const auto variable = names.find_variable(operand.name)) {
    operand.kind = Operand::Kind::kVariable;
    operand.variable = *variable;
  } else if (const auto literal = parse_literal(operand.name)) {
    operand.kind = Operand::Kind::kLiteral;
    operand.literal = *literal;
  } else {
    operand.kind = Operand::Kind::kName;
  }
  return operand;
}

}  // namespace simgpu::ptx
