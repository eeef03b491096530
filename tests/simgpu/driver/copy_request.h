// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a copy asks for, whichever entry or graph node it came through. Driver's lock.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/simgpu/exec/transfer_op.h"

namespace simgpu {

struct CopyRequest {
  enum class Side { kDevice, kHost, kAny };
  Side to_side = Side::kAny;
  Side from_side = Side::kAny;
  Place to;
  Place from;
  Extent extent;
};

// From the driver's own form. Arrays: NOT_SUPPORTED.
CUresult read_copy(const CUDA_MEMCPY3D& what, CopyRequest* request);
// And back: places are given by their first byte.
CUDA_MEMCPY3D write_copy(const CopyRequest& request);

// When the copy runs: then a graph's memory is there, though it may have no bytes behind it now.
enum class When { kNow, kInGraph };
// Finds out which sides are pageable. False: some pointer leads to no memory that a copy may name.
bool resolve_copy(CopyRequest* request, When when = When::kNow);
// A side that is memory of a device, not the host's.
bool is_on_device(const Place& place);
// The source's bytes as they are now, rows packed.
std::vector<std::byte> stage(const Place& from, const Extent& extent);

}  // namespace simgpu
