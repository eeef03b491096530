// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory from cuMemAlloc can be copied whatever device is current, and without peer access. Memory
// like ours is reached from its own device alone, except by the copies that are told contexts
// (cuMemcpyPeer, cuMemcpy3DPeer and their like); a plain one becomes such a one where it must.

#include <atomic>

#include "interpose/driver/cuda_api.h"

namespace offload {

// The contexts that the ends of a copy are in. Where an end is the host's, or of memory that is in
// no context, that of the other end, which is ours.
struct Ends {
  CUcontext to = nullptr;
  CUcontext from = nullptr;
  bool both_on_devices = false;
};

// 0 until a copy asks.
extern std::atomic<int> visible_devices_;
bool must_be_told_among_several(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool per_thread,
                                Ends* ends);
// Whether a copy must be told them: it touches memory of ours that is not on the device of its
// stream (null: the default stream, as the entry means it), or of two devices. Of the driver's
// memory the driver knows where it is. An address is null for an end that is known to be the
// host's, or an array. Makes no call of the driver's on a stream of the memory's own context.
inline bool must_be_told(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool per_thread,
                         Ends* ends) {
  if (visible_devices_.load(std::memory_order_relaxed) == 1) [[likely]]
    return false;
  return must_be_told_among_several(to, from, stream, per_thread, ends);
}

// Behind a synchronous one: the driver does not say that it waits as the plain one does.
CUresult wait_for_told_copy(bool per_thread);

}  // namespace offload
