// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine's driver interface over the modelled GPU. Calls can be made to fail; other host
// threads go on at calls that hold no lock.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <unordered_map>

#include "interpose/engine/port.h"
#include "tests/unit/engine/model/crew.h"
#include "tests/unit/engine/model/device.h"

namespace offload::model {

enum class Call : uint8_t {
  kCreate,
  kMap,
  kUnmap,
  kPin,
  kCreateEvent,
  kRecord,
  kWait,
  kQuery,
  kSynchronize,
  kCopy,
  kCount
};

inline void PrintTo(Call call, std::ostream* out) {
  *out << "call " << static_cast<int>(call);
}

// Who explores: asked wherever something may happen, and decides.
class Director {
 public:
  virtual ~Director() = default;
  virtual bool fails(Call call) = 0;
  // Other host threads may come in between here. `locked`: the engine's mutex is held.
  virtual void between(Call call) = 0;
  // The host is about to ask whether it is done.
  virtual void asked(const std::shared_ptr<Mark>& mark) = 0;
  // What the call found, before the engine goes on with it.
  virtual void answered(uint64_t answer) = 0;
  // Until it is done; until the queue takes another item; until anything has happened.
  virtual void wait(const std::shared_ptr<Mark>& mark) = 0;
  virtual void make_room(Queue& queue) = 0;
  virtual void look_again(std::unique_lock<Mutex>& lock) = 0;
};

// A native handle that means the calling thread's own stream, as the driver's handle 2 does.
inline void* const kPerThreadHandle = reinterpret_cast<void*>(2);

class ModelPort final : public Port {
 public:
  ModelPort(Device& device, Crew& crew);

  // The n-th call from now fails (1: the next), once.
  void fail_call(Call call, uint64_t nth, Status status = Status::kError);
  // Each call of this kind fails with this probability.
  void fail_by_chance(Call call, uint32_t per_ten_thousand, uint64_t seed);
  uint64_t calls(Call call) const { return calls_[static_cast<size_t>(call)]; }
  uint64_t failures() const { return failures_; }

  // Asked and told by the model's user.
  std::function<bool()> unlocked;               // whether the engine's mutex is free
  std::function<Queue*()> own_stream;           // of the host thread that is being played
  std::function<void()> while_waiting;          // scripts let another thread go on while one waits
  std::function<void(Call)> before;             // scripts do something at a call
  std::function<void(const std::string&)> say;  // for a replay
  bool context_lost = false;                    // streams and events are gone
  Director* director = nullptr;
  bool no_timed_events = false;  // the engine goes without: fewer steps to explore

  // Submits for the program or the engine; waits if the queue is full.
  void submit(Queue& queue, Item item);
  // The engine's events, by what was recorded in them last.
  std::shared_ptr<Mark> last_record(Event event) { return known(event).last; }
  // A context that was not the device's own is gone, with its events.
  void destroy_events(void* context);
  // The program got on.
  void progress() { in_vain_ = 0; }

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
  uint64_t now_nanoseconds() override { return device_.tick(); }
  bool host_waits(std::unique_lock<Mutex>& lock) override;

 private:
  void take_time();
  void wait_for_flags();
  struct ModelEvent {
    std::shared_ptr<Mark> last;
    void* context = nullptr;
    bool timed = false;
  };
  struct Fault {
    uint64_t countdown = 0;
    Status status = Status::kError;
    uint32_t per_ten_thousand = 0;
  };
  // kOk: the call goes on.
  Status enter(Call call, Schedule::Point point);
  ModelEvent& known(Event event);
  Queue& queue_of(const NativeStream& stream);
  Queue& usable(const NativeStream& stream);
  Status wait_for(const std::shared_ptr<Mark>& mark);
  uint64_t checksum(Address at, uint64_t bytes);

  Device& device_;
  Crew& crew_;
  Queue* lanes_[2];
  std::array<Fault, static_cast<size_t>(Call::kCount)> faults_;
  std::array<uint64_t, static_cast<size_t>(Call::kCount)> calls_{};
  uint64_t failures_ = 0;
  std::mt19937_64 random_;
  std::unordered_map<Event, std::unique_ptr<ModelEvent>> events_;
  uint32_t in_vain_ = 0;
};

}  // namespace offload::model
