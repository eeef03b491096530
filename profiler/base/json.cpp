// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/json.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "profiler/base/units.h"

namespace offload {
namespace {

// How many bytes of a valid UTF-8 character stand at the front of `text`; 0 if none does.
std::size_t valid_character(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  std::size_t length = first < 0x80   ? 1
                       : first < 0xc2 ? 0
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                       : first < 0xf5 ? 4
                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  bool surrogate = first == 0xed && byte(1) >= 0xa0;
  bool beyond = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

}  // namespace

void JsonWriter::raw(std::string_view piece) {
  if (used_ + piece.size() > sizeof buffer_) flush();
  if (piece.size() > sizeof buffer_) return sink_(piece);
  if (!piece.empty()) std::memcpy(buffer_ + used_, piece.data(), piece.size());
  used_ += piece.size();
}

void JsonWriter::flush() {
  if (used_ > 0) sink_({buffer_, used_});
  used_ = 0;
}

void JsonWriter::new_line() {
  raw("\n");
  for (int i = 0; i < depth_; ++i) raw("  ");
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  if (filled_[depth_]) raw(",");
  filled_[depth_] = true;
  new_line();
}

void JsonWriter::open(char bracket) {
  separate();
  raw({&bracket, 1});
  if (depth_ < kDepth) ++depth_;
  filled_[depth_] = false;
}

void JsonWriter::close(char bracket) {
  bool filled = filled_[depth_];
  if (depth_ > 0) --depth_;
  if (filled) new_line();
  raw({&bracket, 1});
  if (depth_ == 0) raw("\n");
}

void JsonWriter::quoted(std::string_view text) {
  raw("\"");
  while (!text.empty()) {
    std::size_t length = valid_character(text);
    char c = text.front();
    if (length == 0) {
      raw("\\ufffd");
      length = 1;
    } else if (c == '"' || c == '\\') {
      char escaped[2] = {'\\', c};
      raw({escaped, 2});
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      raw(escaped);
    } else {
      raw(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  raw("\"");
}

void JsonWriter::key(std::string_view name) {
  separate();
  quoted(name);
  raw(": ");
  after_key_ = true;
}

void JsonWriter::begin_object() {
  open('{');
}
void JsonWriter::begin_array() {
  open('[');
}
void JsonWriter::end_object() {
  close('}');
}
void JsonWriter::end_array() {
  close(']');
}

void JsonWriter::begin_object(std::string_view name) {
  key(name);
  begin_object();
}

void JsonWriter::begin_array(std::string_view name) {
  key(name);
  begin_array();
}

void JsonWriter::value(std::string_view text) {
  separate();
  quoted(text);
}

void JsonWriter::value(std::uint64_t number) {
  separate();
  char digits[24];
  int length =
      std::snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(number));
  raw({digits, static_cast<std::size_t>(length)});
}

void JsonWriter::value(bool truth) {
  separate();
  raw(truth ? "true" : "false");
}

void JsonWriter::value(double number, int decimals) {
  if (!std::isfinite(number)) return null();
  separate();
  raw(format_fixed(number, decimals).c_str());
}

void JsonWriter::null() {
  separate();
  raw("null");
}

}  // namespace offload
