// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine's Port over the CUDA driver. One per device, for the life of its context. Every call
// may be made by any thread; a failing one has said so (errors.h). Once the context is lost to a
// sticky error every call does nothing and succeeds: the engine's state is of no use any more, and
// nobody in it may wait for a GPU that will not answer.

#include <atomic>
#include <mutex>

#include "interpose/driver/device.h"
#include "interpose/driver/own_call.h"
#include "interpose/engine/edges.h"
#include "interpose/engine/port.h"
#include "interpose/life/heap.h"

namespace offload {

class DriverPort final : public Port {
 public:
  explicit DriverPort(const Device& device) : device_(device) {}
  // Makes the two lanes. An error leaves a port that must not be used.
  Status open();

  Status reserve(uint64_t bytes, Address* out) override;
  Status create(Place place, uint64_t bytes, Handle* out) override;
  void release(Handle handle) override;
  Status map(Address at, uint64_t bytes, Handle handle, Place place, bool cpu) override;
  Status unmap(Address at, uint64_t bytes) override;
  Status allocate_pinned(uint64_t bytes, Address* out) override;
  void free_pinned(Address at) override;

  Status create_event(void* context, bool timed, Event* out) override;
  void destroy_event(Event event) override;
  Status record(Event event, const NativeStream& stream) override;
  Status wait(const NativeStream& stream, Event event) override;
  Status query(Event event) override;
  Status synchronize(Event event) override;
  Status elapsed(Event begin, Event end, uint64_t* nanoseconds) override;
  Status synchronize_stream(const NativeStream& stream) override;

  NativeStream lane(Lane lane) override;
  Status copy(Lane lane, Address to, Address from, uint64_t bytes) override;
  uint64_t checksum_host(Address at, uint64_t bytes) override;
  Status checksum_device(Address at, uint64_t bytes, uint64_t* out) override;
  uint64_t now_nanoseconds() override;
  bool lost() override;

  // Another device of the process may read and write our memory from now on, or may not any more:
  // what is mapped and what will be.
  Status set_peer(CUdevice peer, bool may_access);
  // Whether this is a handle of ours, and not one of the program's.
  bool has_made(Handle handle);
  // Whether all that was submitted to the lanes has happened. Does not wait.
  bool idle();
  // The context died, and nothing is mapped any more: what was reserved serves the next port that
  // reserves as much. Addresses are never given back to the driver, whose own they could become
  // while the program still holds one of ours.
  void give_back_addresses();

 private:
  struct Mapping {
    uint64_t bytes;
    bool host;
    bool cpu;
  };
  CUstream stream_of(Lane lane) const { return lanes_[static_cast<int>(lane)]; }
  Status grant(Address at, const Mapping& mapping);
  bool is_mapped(Address at);

  const Device device_;
  CUstream lanes_[2] = {};
  Address checksum_memory_ = 0;  // under the engine's mutex, as all of OFFLOAD_VERIFY
  PlainMutex mappings_mutex_;    // last in any order; never held across a driver call
  OwnMap<Address, Mapping> mappings_;
  OwnMap<Handle, bool> handles_;
  OwnVector<CUdevice> peers_;
  struct Range {
    Address at;
    uint64_t bytes;
  };
  OwnVector<Range> reserved_;
  static bool take_free_range(uint64_t bytes, Range* out);
};

}  // namespace offload
