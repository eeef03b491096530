// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which captures of the program's are open, and which streams are left alone because of them. The
// driver knows best: it is asked, for the stream of each operation, as long as a capture may be
// open. Streams join a capture by waiting for an event, and leave it when it ends.
//
// Of the process, not of a session: a capture may begin before there is one. Any thread.

#include <atomic>
#include <cstdint>

#include "interpose/driver/cuda_api.h"
#include "interpose/graphs/graph_names.h"

namespace offload {

extern std::atomic<uint32_t> captures_watched_;
// Whether a stream may be capturing, or still be left alone: then look_at() tells.
inline bool captures_watched() {
  return captures_watched_.load(std::memory_order_relaxed) != 0;
}

struct CaptureState {
  enum class Kind : uint8_t {
    kNone,     // it does not capture
    kActive,   // what it is given becomes a node of `graph`
    kRefuses,  // the driver is about to refuse what it is given, with the right code
  } kind = Kind::kNone;
  CUgraph graph = nullptr;
  cuuint64_t id = 0;
};
// `stream` is never null here, but may be CU_STREAM_LEGACY or CU_STREAM_PER_THREAD.
CaptureState look_at(CUstream stream);
// A stream as an entry with legacy or per-thread default streams means it.
inline CUstream explicit_stream(CUstream stream, bool per_thread_entry) {
  if (stream != nullptr) return stream;
  return per_thread_entry ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

// Around a call that makes `stream` capture, or may: until the end of the capture nothing of ours
// touches it, nor the default stream if the driver forbids that meanwhile.
class MayCapture {
 public:
  explicit MayCapture(CUstream stream);
  ~MayCapture();  // looks what became of it
  MayCapture(const MayCapture&) = delete;
  MayCapture& operator=(const MayCapture&) = delete;

 private:
  CUstream stream_;
};

// This stream has begun a capture, on this thread. `owns_graph`: the graph goes with a capture that
// fails.
void capture_began(CUstream stream, CUstreamCaptureMode mode, bool owns_graph);
// Around the call that ends a capture, or may. If it fails, the graph is gone, and its handle may
// be another's at once.
class EndCapture {
 public:
  explicit EndCapture(CUstream stream);
  // `graph`: what the capture has become, or null.
  void ended(CUgraph graph);

 private:
  GraphNames* graphs_ = nullptr;
  CUgraph graph_ = nullptr;  // null if it is the program's own
  cuuint64_t id_ = 0;
  GraphNames::Record taken_;
};
// The stream is gone, and its handle may be another's tomorrow.
void captured_stream_destroyed(CUstream stream);
void captured_context_died(CUcontext context);

// The program's thread has set its own capture mode to this.
void note_capture_mode(CUstreamCaptureMode mode);
// Whether cuMemAlloc and its like on this thread are the driver's business now: what is allocated
// belongs to a capture of this thread's, or the driver will refuse it.
bool captures_want_allocations();

// An operation found this stream not capturing: used again if it was left alone.
void stream_is_free(CUstream stream);

}  // namespace offload
