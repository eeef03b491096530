// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the driver serves because PyTorch keeps a cache of its own (OFFLOAD_PYTORCH_ALLOC=native):
// only counted, so that OFFLOAD_GPU_LIMIT holds and the program is told what is left. A physical
// piece (cuMemCreate) counts until its handle is released, which PyTorch does when it unmaps it.
// Thread-safe; calls no driver.

#include <cstdint>
#include <mutex>

#include "interpose/engine/edges.h"
#include "interpose/life/heap.h"
#include "profiler/statistics.h"

namespace offload {

class NativeMemory {
 public:
  enum class Kind : uint8_t { kAddress, kHandle };

  explicit NativeMemory(Statistics& statistics) : statistics_(statistics) {}
  // Once, before the others.
  void limit(uint64_t bytes) { limit_bytes_ = bytes; }

  // Before the driver is asked. False: so much is not left of the limit, and nothing has changed.
  bool reserve(uint64_t bytes);
  // What the driver made of a reservation.
  void hold(Kind kind, uint64_t name, uint64_t bytes);
  void cancel(uint64_t bytes);
  // Before it is freed: afterwards the driver may give its name to another. Returns its bytes, 0 if
  // it was not counted.
  uint64_t let_go(Kind kind, uint64_t name);
  // It could not be freed.
  void take_back(Kind kind, uint64_t name, uint64_t bytes);
  // Its context has died, and all of it with that.
  void forget();

  uint64_t limit_bytes() const { return limit_bytes_; }
  uint64_t left_bytes() const;

 private:
  OwnMap<uint64_t, uint64_t>& of(Kind kind) {
    return kind == Kind::kAddress ? addresses_ : handles_;
  }
  void count(Kind kind, uint64_t name, uint64_t bytes);
  void uncount(uint64_t bytes);

  mutable PlainMutex mutex_;  // held across nothing of the driver's
  uint64_t limit_bytes_ = 0;
  uint64_t reserved_bytes_ = 0;  // what is held is among them
  OwnMap<uint64_t, uint64_t> addresses_;
  OwnMap<uint64_t, uint64_t> handles_;
  Statistics& statistics_;
};

}  // namespace offload
