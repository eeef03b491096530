// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory from cuMemAlloc can be copied whatever device is current, and without peer access. Memory
// like ours is reached from its own device alone, except by the copies that are told contexts
// (cuMemcpyPeer, cuMemcpy3DPeer and their like); a plain one becomes such a one where it must.

#include "interpose/driver/cuda_api.h"

namespace offload {

// The contexts that the ends of a copy are in. Where an end is the host's, or of memory that is in
// no context, that of the other end, which is ours.
struct Ends {
  CUcontext to = nullptr;
  CUcontext from = nullptr;
  bool both_on_devices = false;
};

// Whether a copy must be told them, because it touches memory of ours that is not on the device of
// its stream (null: the default stream, as the entry means it), or ours and another device's. An
// address is null for an end that is known to be the host's, or an array. Makes no call of the
// driver's where one device is visible, and none for a copy to or from the host on a stream of the
// memory's own context.
bool must_be_told(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool per_thread, Ends* ends);

// Behind a synchronous one: the driver does not say that it waits as the plain one does.
CUresult wait_for_told_copy(bool per_thread);

}  // namespace offload
