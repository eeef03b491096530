// SPDX-License-Identifier: Apache-2.0
#pragma once
// A driver on which everything succeeds at once and nothing happens: for tests of what stands
// before the engine.

#include <sys/mman.h>

#include <cstdlib>

#include "interpose/engine/port.h"

namespace offload {

class IdlePort final : public Port {
 public:
  Status reserve(uint64_t bytes, Address* out) override {
    void* memory =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return Status::kError;
    constexpr uint64_t kPage = 2ull << 20;
    *out = (reinterpret_cast<Address>(memory) + kPage - 1) & ~(kPage - 1);
    return Status::kOk;
  }
  Status create(Place, uint64_t, Handle* out) override {
    *out = next_++;
    return Status::kOk;
  }
  void release(Handle) override {}
  Status map(Address, uint64_t, Handle, Place, bool) override { return Status::kOk; }
  Status unmap(Address, uint64_t) override { return Status::kOk; }
  Status allocate_pinned(uint64_t bytes, Address* out) override {
    *out = reinterpret_cast<Address>(std::malloc(bytes));
    return Status::kOk;
  }
  void free_pinned(Address at) override { std::free(reinterpret_cast<void*>(at)); }
  Status create_event(void*, bool, Event* out) override {
    *out = reinterpret_cast<Event>(next_++);
    return Status::kOk;
  }
  void destroy_event(Event) override {}
  Status record(Event, const NativeStream&) override { return Status::kOk; }
  Status wait(const NativeStream&, Event) override { return Status::kOk; }
  Status query(Event) override { return Status::kOk; }
  Status synchronize(Event) override { return Status::kOk; }
  Status elapsed(Event, Event, uint64_t* nanoseconds) override {
    *nanoseconds = 0;
    return Status::kOk;
  }
  Status synchronize_stream(const NativeStream&) override { return Status::kOk; }
  NativeStream lane(Lane lane) override {
    return {reinterpret_cast<void*>(lane == Lane::kOut ? 16 : 17), nullptr};
  }
  Status copy(Lane, Address, Address, uint64_t) override { return Status::kOk; }
  uint64_t checksum_host(Address, uint64_t) override { return 0; }
  Status checksum_device(Address, uint64_t, uint64_t* out) override {
    *out = 0;
    return Status::kOk;
  }
  uint64_t now_nanoseconds() override { return 0; }

 private:
  Handle next_ = 1;
};

}  // namespace offload
