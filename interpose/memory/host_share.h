// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host memory is shared with other processes of the machine that move buffers, too. Slots ask
// before they pin any, and tell when it is given back. Under the engine's mutex.

#include <cstdint>

namespace offload {

class HostShare {
 public:
  // How much of `wanted_bytes` may be pinned now: a multiple of `unit_bytes`, perhaps 0. It counts
  // as this process's until it is given back.
  virtual uint64_t take(uint64_t wanted_bytes, uint64_t unit_bytes) = 0;
  virtual void give(uint64_t bytes) = 0;

 protected:
  ~HostShare() = default;
};

}  // namespace offload
