// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ops that wait for what the host does later, forwarded while no device is managed: an event behind
// the last on each stream. The engine of a device that is used afterwards is told of them, as its
// streams may stand behind one.
//
// Threads: any.

#include "interpose/driver/cuda_api.h"

#include "interpose/engine/engine.h"

namespace offload {

// The driver has taken such an op for this stream. A stream that cannot be followed (it captures,
// there are too many, the driver refuses) is not.
void note_early_wait(CUstream stream, bool per_thread_entry);
// Of what is still pending. `opening`: there is one whose event is about to be recorded; who
// forwarded it tells all sessions that there are by then.
OwnVector<Engine::Waiting> early_waits(bool* opening);
// The context died, and its events with it.
void forget_early_waits(CUcontext context);

}  // namespace offload
