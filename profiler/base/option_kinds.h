// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a value of each kind of option is read, checked against its range, and written back. A kind
// is a type with
//   Value                                     the type of the field in struct Options
//   parse(text, range, value)                 false, and the value untouched, if the text is not a
//   value of this kind print(value, out)                         writes the value as a user would,
//   cut to the buffer, terminated expected(range, out)                      completes "expected
//   ..." in a message, likewise
// Nothing here allocates.

#include <cstdint>
#include <span>
#include <string_view>

namespace offload {

// A size, or a part of some total that is known later.
struct Portion {
  bool is_part = false;
  double part = 0;          // of the total, 0 to 1, if is_part
  std::uint64_t bytes = 0;  // otherwise
  // Never more than the total.
  std::uint64_t of(std::uint64_t total_bytes) const;
};

// A copy of a variable's text: programs that rewrite their title scribble over the original.
struct Text {
  static constexpr std::size_t kCapacity = 1024;
  char data[kCapacity] = {};
  bool empty() const { return data[0] == '\0'; }
  const char* c_str() const { return data; }
};

struct Boolean {
  using Value = bool;
  static constexpr std::string_view kValueName = "0 or 1";
  static bool parse(std::string_view text, std::string_view range, bool& value);
  static void print(bool value, std::span<char> out);
  static void expected(std::string_view range, std::span<char> out);
};

struct Size {
  using Value = std::uint64_t;
  static constexpr std::string_view kValueName = "SIZE";
  static bool parse(std::string_view text, std::string_view range, std::uint64_t& value);
  static void print(std::uint64_t value, std::span<char> out);
  static void expected(std::string_view range, std::span<char> out);
};

struct Integer {
  using Value = std::uint64_t;
  static constexpr std::string_view kValueName = "NUMBER";
  static bool parse(std::string_view text, std::string_view range, std::uint64_t& value);
  static void print(std::uint64_t value, std::span<char> out);
  static void expected(std::string_view range, std::span<char> out);
};

// A part of a whole: "10%" or "0.1".
struct Percent {
  using Value = double;
  static constexpr std::string_view kValueName = "PERCENT";
  static bool parse(std::string_view text, std::string_view range, double& value);
  static void print(double value, std::span<char> out);
  static void expected(std::string_view range, std::span<char> out);
};

// A low end of "1" keeps 0% out as well as 0 bytes.
struct PortionKind {
  using Value = Portion;
  static constexpr std::string_view kValueName = "SIZE or PERCENT";
  static bool parse(std::string_view text, std::string_view range, Portion& value);
  static void print(const Portion& value, std::span<char> out);
  static void expected(std::string_view range, std::span<char> out);
};

// A file name in which %p, %r and %h stand for process, rank and host (see paths.h), and %% for a
// percent sign.
struct Pattern {
  using Value = Text;
  static constexpr std::string_view kValueName = "FILE";
  static bool parse(std::string_view text, std::string_view range, Text& value);
  static void print(const Text& value, std::span<char> out);
  static void expected(std::string_view range, std::span<char> out);
};

// The words of an enumeration, in its order. Specialised from options.def.
template <class Enumeration>
std::span<const std::string_view> words_of();

bool parse_word(std::string_view text, std::span<const std::string_view> words, std::size_t& index);
void print_text(std::string_view text, std::span<char> out);
void print_words(std::span<const std::string_view> words, std::span<char> out);

template <class Enumeration>
struct Choice {
  using Value = Enumeration;
  static constexpr std::string_view kValueName = "WORD";
  static bool parse(std::string_view text, std::string_view, Enumeration& value) {
    std::size_t index = 0;
    if (!parse_word(text, words_of<Enumeration>(), index)) return false;
    value = static_cast<Enumeration>(index);
    return true;
  }
  static void print(Enumeration value, std::span<char> out) {
    print_text(words_of<Enumeration>()[static_cast<std::size_t>(value)], out);
  }
  static void expected(std::string_view, std::span<char> out) {
    print_words(words_of<Enumeration>(), out);
  }
};

template <class Enumeration>
std::string_view word(Enumeration value) {
  return words_of<Enumeration>()[static_cast<std::size_t>(value)];
}

}  // namespace offload
