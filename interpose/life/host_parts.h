// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the process may pin (OFFLOAD_HOST_LIMIT) is shared by its devices: who needs it first has
// it, but for a part that is left to each of the others, so that they can bring back what they
// moved (the reserve, memory/slots.h). What a part takes is the process's in the machine's ledger.

#include <cstdint>
#include <mutex>

#include "interpose/engine/edges.h"
#include "interpose/memory/host_share.h"

namespace offload {

class HostParts;

// One device's. Under its engine's mutex, and for ever.
class HostPart final : public HostShare {
 public:
  uint64_t take(uint64_t wanted_bytes, uint64_t unit_bytes) override;
  void give(uint64_t bytes) override;

 private:
  friend class HostParts;
  HostParts* parts_ = nullptr;
  uint64_t pinned_bytes_ = 0;
  HostPart* next_ = nullptr;
};

// Thread-safe; a mutex of its own, below every engine's.
class HostParts {
 public:
  // Before any part: what all may pin together, whom to ask then, and how many devices there may
  // be.
  void start(uint64_t limit_bytes, HostShare& machine, uint32_t devices);
  bool started() const { return machine_ != nullptr; }
  uint64_t limit_bytes() const { return limit_bytes_; }
  // `least_bytes`: what an engine needs to bring anything back at all. Joining again changes
  // nothing.
  void join(HostPart& part, uint64_t least_bytes);

 private:
  friend class HostPart;
  uint64_t left_for(const HostPart& part) const;

  PlainMutex mutex_;
  uint64_t limit_bytes_ = 0;
  uint64_t least_bytes_ = 0;  // left to each
  uint32_t devices_ = 1;
  HostShare* machine_ = nullptr;
  HostPart* first_ = nullptr;
};

}  // namespace offload
