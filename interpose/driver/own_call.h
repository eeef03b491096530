// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stands around our own calls of the driver: hooks do not see them, our context is current, and
// once a capture has been seen the thread's capture mode is relaxed, so that no capture of the
// program's is broken by what we do.

#include "interpose/driver/cuda_api.h"

namespace offload {

class OwnCall {
 public:
  explicit OwnCall(CUcontext context);
  ~OwnCall();
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;

 private:
  bool was_inside_;
  bool pushed_ = false;
  bool relaxed_ = false;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// From now on capture modes are exchanged.
void note_capture();

// The context that is current on this thread, remembered between calls of the program's that may
// change it.
CUcontext current_context();
// Now and then: asks the driver whether what is remembered is true. If it ever is not, somebody
// changes contexts past our hooks, and nothing is remembered from then on.
void check_current_context();

}  // namespace offload
