// SPDX-License-Identifier: Apache-2.0
#pragma once
// A streaming JSON writer: no allocation, no locale, text made valid UTF-8. Values go to a sink as
// they are written, gathered in a small buffer; call flush() at the end (the destructor does it
// too). Objects and arrays nest to kDepth.
//
//   JsonWriter json(sink);
//   json.begin_object();
//   json.member("bytes_out", 17);
//   json.begin_array("top"); json.value(1.5, 3); json.end_array();
//   json.end_object();

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profiler/base/sink.h"

namespace offload {

class JsonWriter {
 public:
  static constexpr int kDepth = 16;

  explicit JsonWriter(Sink sink) : sink_(sink) {}
  ~JsonWriter() { flush(); }
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  // The forms without a name stand in arrays and at the top, those with one in objects.
  void begin_object();
  void begin_object(std::string_view name);
  void end_object();
  void begin_array();
  void begin_array(std::string_view name);
  void end_array();

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(std::uint64_t number);
  void value(bool truth);
  // With that many digits behind the point; null if it is not finite.
  void value(double number, int decimals);
  void null();

  template <class... Value>
  void member(std::string_view name, Value... number) {
    key(name);
    value(number...);
  }
  void key(std::string_view name);

  void flush();

 private:
  void separate();
  void open(char bracket);
  void close(char bracket);
  void raw(std::string_view piece);
  void quoted(std::string_view text);
  void new_line();

  Sink sink_;
  char buffer_[1024];
  std::size_t used_ = 0;
  int depth_ = 0;
  bool filled_[kDepth + 1] = {};  // this level has an element already
  bool after_key_ = false;
};

}  // namespace offload
