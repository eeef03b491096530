// SPDX-License-Identifier: Apache-2.0
#pragma once
// What host threads know to be finished, because a synchronisation or a successful query told them.
// Shared by default: threads may pass such news on by means that the driver cannot see (a mutex, a
// flag), so what one knows all may. With SIMGPU_CHECK_THREADS=own each thread knows only what it
// asked for itself. Driver's lock.

#include "tests/simgpu/check/vector_clock.h"

namespace simgpu {

class HostKnowledge {
 public:
  // Of the calling thread. Null while the checker is off.
  const ClockRef& current();
  // The calling thread has learned it.
  void learn(const VectorClock& news);
  // Learned in a way that reaches any thread (a host function ran, a value was written to host
  // memory).
  void learn_by_all(const VectorClock& news);

 private:
  ClockRef& mine();
  ClockRef shared_;
};

}  // namespace simgpu
