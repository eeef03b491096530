// SPDX-License-Identifier: Apache-2.0
#pragma once
// A context: what cuCtxCreate or a device's primary context gives. Driver's lock.

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace simgpu {

struct Record;
struct Stream;

struct Context {
  int device = 0;
  uint64_t id = 0;
  unsigned flags = 0;
  bool primary = false;
  int retained = 0;                // primary: references
  CUresult sticky = CUDA_SUCCESS;  // a fault; every later call returns it
  Stream* legacy = nullptr;        // the default stream
  std::vector<Stream*> blocking;   // the streams that are ordered against it
  size_t limits[CU_LIMIT_MAX] = {};
  std::vector<uint64_t>
      peers;  // ids of the contexts whose memory it may use (cuCtxEnablePeerAccess)
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  std::vector<std::shared_ptr<Record>> awaited;  // by all that it is given (cuCtxWaitEvent)
  // Of a green context: the primary one whose memory, events and fate it shares.
  Context* primary_of = nullptr;
  unsigned processors = 0;  // and how many it may use

  // The one that owns what is allocated under this one.
  Context& owner() { return primary_of != nullptr ? *primary_of : *this; }
  const Context& owner() const { return primary_of != nullptr ? *primary_of : *this; }
};

}  // namespace simgpu
