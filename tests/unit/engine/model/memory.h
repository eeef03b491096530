// SPDX-License-Identifier: Apache-2.0
#pragma once
// The modelled GPU's memory: physical allocations made of cells, and what addresses show of them. A
// cell stands for 512 bytes and holds a token. Fresh memory holds poison that no two allocations
// share. The rules of the driver's memory calls are enforced: breaking one is a Failure.

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "interpose/engine/port.h"

namespace offload::model {

using Cell = uint64_t;
inline constexpr uint64_t kCellBytes = 512;

uint64_t mix(uint64_t a, uint64_t b);

class Memory {
 public:
  explicit Memory(uint64_t device_bytes) : device_bytes_(device_bytes) {}

  Address reserve(uint64_t bytes);
  // 0: the device is full.
  Handle create(Place place, uint64_t bytes);
  void release(Handle handle);
  void map(Address at, uint64_t bytes, Handle handle);
  void unmap(Address at, uint64_t bytes);
  Address pin(uint64_t bytes);
  void unpin(Address at);
  void lose_pinned();  // the context died

  // The cells of [at, at + bytes), piece by piece; false: some of it shows nothing.
  struct Run {
    Cell* cells;
    uint64_t count;
  };
  bool resolve(Address at, uint64_t bytes, std::vector<Run>* out);
  Handle shown_at(Address at) const;  // 0: nothing
  Place place_of(Handle handle) const { return physical_.at(handle).place; }

  // A number for the whole content and for what shows it.
  uint64_t digest() const;

  uint64_t device_used() const { return device_used_; }
  size_t mappings() const { return mappings_.size(); }

 private:
  struct Physical {
    Place place;
    std::vector<Cell> cells;
    uint32_t references = 1;
    uint32_t mappings = 0;
  };
  struct Mapping {
    uint64_t bytes;
    Handle handle;
  };
  void drop_if_unused(Handle handle);

  uint64_t device_bytes_;
  uint64_t device_used_ = 0;
  Address next_address_ = uint64_t{1} << 40;
  Handle next_handle_ = 1;
  uint64_t next_poison_ = 1;
  std::unordered_map<Handle, Physical> physical_;
  std::map<Address, Mapping> mappings_;
  std::map<Address, Handle> pinned_;
};

}  // namespace offload::model
