// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads JSON strictly enough for tests: the values by path ("host_waits.slots.count",
// "top_buffers.0.bytes"), as they are written. Throws std::runtime_error on what is no JSON.

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>

namespace offload {

class JsonValues {
 public:
  explicit JsonValues(const std::string& text) : text_(text) {
    read_value("");
    skip_blanks();
    if (at_ != text_.size()) fail("more after the end");
  }
  const std::string& at(const std::string& path) const {
    auto found = values_.find(path);
    if (found == values_.end()) throw std::runtime_error("no " + path);
    return found->second;
  }
  bool has(const std::string& path) const { return values_.count(path) != 0; }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at " + std::to_string(at_));
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  char peek() {
    skip_blanks();
    if (at_ >= text_.size()) fail("end");
    return text_[at_];
  }
  void expect(char c) {
    if (peek() != c) fail(std::string("no ") + c);
    ++at_;
  }
  std::string read_string() {
    expect('"');
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') value += text_[at_++];
      value += text_.at(at_++);
    }
    expect('"');
    return value;
  }
  void read_members(const std::string& path, char end, bool named) {
    values_[path] = named ? "{}" : "[]";
    ++at_;
    if (peek() == end) {
      ++at_;
      return;
    }
    for (int index = 0;; ++index) {
      std::string name = named ? read_string() : std::to_string(index);
      if (named) expect(':');
      read_value(path.empty() ? name : path + "." + name);
      if (peek() == end) break;
      expect(',');
    }
    ++at_;
  }
  void read_value(const std::string& path) {
    char c = peek();
    if (values_.count(path)) fail("twice " + path);
    if (c == '{') return read_members(path, '}', true);
    if (c == '[') return read_members(path, ']', false);
    if (c == '"') {
      values_[path] = read_string();
      return;
    }
    std::string word;
    while (at_ < text_.size() && std::string(",]} \n").find(text_[at_]) == std::string::npos) {
      word += text_[at_++];
    }
    bool number = !word.empty() && word.find_first_not_of("-0123456789.") == std::string::npos;
    if (!number && word != "true" && word != "false" && word != "null") fail("what is " + word);
    values_[path] = word;
  }

  std::string text_;
  std::size_t at_ = 0;
  std::map<std::string, std::string> values_;
};

}  // namespace offload
