// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/option_kinds.h"

#include <cstdio>
#include <cstring>

#include "profiler/base/units.h"

namespace offload {
namespace {

struct Range {
  std::string_view low;
  std::string_view high;
};

Range split(std::string_view range) {
  std::size_t dots = range.find("..");
  if (dots == std::string_view::npos) return {};
  return {range.substr(0, dots), range.substr(dots + 2)};
}

template <class Value, class Parser>
bool parse_within(std::string_view text, std::string_view range, Parser parser, Value& value) {
  Value read{};
  if (!parser(text, read)) return false;
  if (!range.empty()) {
    Range ends = split(range);
    Value low{};
    Value high{};
    if (!parser(ends.low, low) || !parser(ends.high, high)) return false;
    if (read < low || read > high) return false;
  }
  value = read;
  return true;
}

void print_expected(const char* what, std::string_view range, std::span<char> out) {
  Range ends = split(range);
  if (range.empty()) {
    std::snprintf(out.data(), out.size(), "%s", what);
  } else {
    std::snprintf(out.data(), out.size(), "%s, from %.*s to %.*s", what,
                  static_cast<int>(ends.low.size()), ends.low.data(),
                  static_cast<int>(ends.high.size()), ends.high.data());
  }
}

}  // namespace

std::uint64_t Portion::of(std::uint64_t total_bytes) const {
  if (!is_part) return bytes < total_bytes ? bytes : total_bytes;
  if (part >= 1) return total_bytes;
  return static_cast<std::uint64_t>(static_cast<double>(total_bytes) * part);
}

void print_text(std::string_view text, std::span<char> out) {
  std::snprintf(out.data(), out.size(), "%.*s", static_cast<int>(text.size()), text.data());
}

void print_words(std::span<const std::string_view> words, std::span<char> out) {
  std::size_t used = 0;
  out[0] = '\0';
  for (std::size_t i = 0; i < words.size(); ++i) {
    const char* joint = i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    int wrote = std::snprintf(out.data() + used, out.size() - used, "%s%.*s", joint,
                              static_cast<int>(words[i].size()), words[i].data());
    used += static_cast<std::size_t>(wrote);
    if (used >= out.size()) return;
  }
}

bool parse_word(std::string_view text, std::span<const std::string_view> words,
                std::size_t& index) {
  text = trim(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (equal_ignoring_case(text, words[i])) return index = i, true;
  }
  return false;
}

bool Boolean::parse(std::string_view text, std::string_view, bool& value) {
  return parse_boolean(text, value);
}
void Boolean::print(bool value, std::span<char> out) {
  print_text(value ? "1" : "0", out);
}
void Boolean::expected(std::string_view, std::span<char> out) {
  print_text("0, 1, off, on, no, yes, false or true", out);
}

bool Size::parse(std::string_view text, std::string_view range, std::uint64_t& value) {
  return parse_within(text, range, parse_size, value);
}
void Size::print(std::uint64_t value, std::span<char> out) {
  print_text(format_exact_size(value).c_str(), out);
}
void Size::expected(std::string_view range, std::span<char> out) {
  print_expected("a size such as 512MiB", range, out);
}

bool Integer::parse(std::string_view text, std::string_view range, std::uint64_t& value) {
  return parse_within(text, range, parse_integer, value);
}
void Integer::print(std::uint64_t value, std::span<char> out) {
  std::snprintf(out.data(), out.size(), "%llu", static_cast<unsigned long long>(value));
}
void Integer::expected(std::string_view range, std::span<char> out) {
  print_expected("a whole number", range, out);
}

bool Percent::parse(std::string_view text, std::string_view range, double& value) {
  return parse_within(text, range, parse_fraction, value);
}
void Percent::print(double value, std::span<char> out) {
  print_text(format_exact_percent(value).c_str(), out);
}
void Percent::expected(std::string_view range, std::span<char> out) {
  print_expected("a percentage such as 10% or a fraction such as 0.1", range, out);
}

bool PortionKind::parse(std::string_view text, std::string_view range, Portion& value) {
  Portion read;
  std::uint64_t low_bytes = 0;
  if (!range.empty() && !parse_size(split(range).low, low_bytes)) return false;
  if (parse_percent(text, read.part)) {
    read.is_part = true;
    if (low_bytes > 0 && read.part <= 0) return false;
  } else if (!parse_size(text, read.bytes) || read.bytes < low_bytes) {
    return false;
  }
  value = read;
  return true;
}
void PortionKind::print(const Portion& value, std::span<char> out) {
  print_text(value.is_part ? format_exact_percent(value.part).c_str()
                           : format_exact_size(value.bytes).c_str(),
             out);
}
void PortionKind::expected(std::string_view range, std::span<char> out) {
  std::uint64_t low_bytes = 0;
  bool above_zero = parse_size(split(range).low, low_bytes) && low_bytes > 0;
  print_text(above_zero ? "a size such as 24GiB or a percentage up to 100%, more than 0"
                        : "a size such as 24GiB or a percentage up to 100%",
             out);
}

bool Pattern::parse(std::string_view text, std::string_view, Text& value) {
  if (text.size() >= Text::kCapacity) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    ++i;
    if (i == text.size() || std::strchr("prh%", text[i]) == nullptr) return false;
  }
  if (!text.empty()) std::memcpy(value.data, text.data(), text.size());
  value.data[text.size()] = '\0';
  return true;
}
void Pattern::print(const Text& value, std::span<char> out) {
  print_text(value.data, out);
}
void Pattern::expected(std::string_view, std::span<char> out) {
  print_text(
      "a file name of at most 1023 characters in which only %p, %r, %h and %% follow a percent "
      "sign",
      out);
}

}  // namespace offload
