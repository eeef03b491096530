// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stands around our own calls of the driver: hooks do not see them, our context is current, and the
// thread's capture mode is relaxed, so that no capture of the program's is broken by what we do.

#include <cstdint>

#include "interpose/driver/cuda_api.h"

namespace offload {

// The calling thread may make calls that a capture elsewhere would otherwise forbid.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(bool wanted = true);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  bool exchanged_ = false;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

class OwnCall {
 public:
  // What is merely submitted to a stream is allowed in any mode.
  enum class Kind : uint8_t { kSubmits, kAny };
  explicit OwnCall(CUcontext context, Kind kind = Kind::kAny);
  ~OwnCall();
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;

 private:
  bool was_inside_;
  bool pushed_ = false;
  RelaxedCapture relaxed_;
};

// The context that is current on this thread, remembered between calls of the program's that may
// change it.
CUcontext current_context();
// Now and then: asks the driver whether what is remembered is true. If it ever is not, somebody
// changes contexts past our hooks, and nothing is remembered from then on.
void check_current_context();

}  // namespace offload
