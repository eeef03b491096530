// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where text goes, piece by piece: a file descriptor, a buffer, or whatever a test wants to see.

#include <cstring>
#include <span>
#include <string_view>

namespace offload {

struct Sink {
  void (*write)(void* context, std::string_view piece);
  void* context;
  void operator()(std::string_view piece) const { write(context, piece); }
};

// Fills a buffer of the caller's, always terminated; `whole` turns false when something did not
// fit.
struct BufferSink {
  std::span<char> buffer;
  std::size_t used = 0;
  bool whole = true;

  explicit BufferSink(std::span<char> target) : buffer(target) { buffer[0] = '\0'; }
  std::string_view text() const { return {buffer.data(), used}; }
  Sink sink() { return {&BufferSink::append, this}; }

  static void append(void* context, std::string_view piece) {
    auto* self = static_cast<BufferSink*>(context);
    std::size_t room = self->buffer.size() - 1 - self->used;
    std::size_t take = piece.size() < room ? piece.size() : room;
    if (take > 0) std::memcpy(self->buffer.data() + self->used, piece.data(), take);
    self->used += take;
    self->buffer[self->used] = '\0';
    self->whole = self->whole && take == piece.size();
  }
};

}  // namespace offload
