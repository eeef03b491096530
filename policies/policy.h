// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a policy is asked and told. Plain data in, plain data out: no CUDA, no clock, no allocation,
// no lock of its own. All calls for one device come one at a time (the engine's room lock); each
// device has its own policy object.
//
// Time is counted in positions: the number of operations submitted to the device so far.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "profiler/base/options.h"

namespace offload {

struct PolicyConfig {
  double alpha = 0.1;  // the watermark's part of total_bytes
  std::uint64_t min_size_bytes = 4 << 20;
};

struct DeviceMemory {
  std::uint64_t total_bytes;   // M_total: the smaller of card and GPU_LIMIT
  std::uint64_t mapped_bytes;  // held by live buffers: pooled and parked extents do not count
  // M_free: what could be mapped without moving anything.
  std::uint64_t free_bytes() const {
    return mapped_bytes < total_bytes ? total_bytes - mapped_bytes : 0;
  }
};

// A live buffer that is on the device.
struct Candidate {
  std::uint64_t id;
  std::uint64_t bytes;              // that its eviction would free
  std::uint64_t birth_position;     // when it was allocated
  std::uint64_t last_use_position;  // of the last operation that named it; its birth if none did
  // It may leave now: not pinned, grace over, not behind an external flag, not in use by another
  // process, and, with OFFLOAD_VICTIMS=finished, its work has completed.
  bool eligible;
};

class Policy {
 public:
  virtual std::string_view name() const = 0;

  // Whether this policy ever moves anything. The engine need not collect candidates if not.
  virtual bool moves() const = 0;

  // A buffer was freed `age` positions after its birth. On the launch path: a few instructions.
  virtual void freed(std::uint64_t bytes, std::uint64_t age) = 0;

  // How many bytes should leave now, before anybody has to wait for them. 0: none. Called when
  // mapped_bytes changed.
  virtual std::uint64_t bytes_to_free(const DeviceMemory& memory) = 0;

  // Chooses victims: writes the indices of candidates into `order`, first the one to go first,
  // until their bytes reach `wanted_bytes` or no eligible one is left; returns how many. `order`
  // has room for all candidates. It is asked after bytes_to_free(), and also when an allocation or
  // a restore finds no extent.
  virtual std::size_t choose_victims(std::span<const Candidate> candidates,
                                     std::uint64_t wanted_bytes, std::uint64_t position,
                                     std::span<std::uint32_t> order) = 0;

  // Where the given buffer would stand among the others: buffers with smaller keys leave first. For
  // those who keep candidates in an order of their own.
  virtual std::uint64_t victim_key(const Candidate& candidate, std::uint64_t position) const = 0;

 protected:
  ~Policy() = default;  // lives in its owner's storage, is never deleted
};

}  // namespace offload
