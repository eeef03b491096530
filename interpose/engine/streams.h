// SPDX-License-Identifier: Apache-2.0
#pragma once
// The streams of a device as timelines: how far each has been submitted, which events mark which
// positions, who already waits for whom. The engine's two copy lanes are streams too. An event is
// recorded only when somebody needs one, and a later event stands for every earlier position.
// Streams of several contexts may be followed; each context has events of its own.
//
// Threads: advance(), position() and ops() from any thread without a lock; all else under the
// engine's mutex.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "interpose/engine/fence.h"
#include "interpose/engine/port.h"
#include "interpose/life/heap.h"
#include "profiler/statistics.h"

namespace offload {

class Streams {
 public:
  Streams(Port& port, Statistics& statistics, uint64_t queue_depth);

  // The index of the stream with this id in its context, new if need be. kNoStream: too many
  // streams at once.
  StreamIndex find(const NativeStream& native, uint64_t id, bool per_thread, bool* is_new);
  StreamIndex known(const NativeStream& native, uint64_t id) const;  // kNoStream: not followed
  StreamIndex lane(Lane lane);
  static bool is_lane(StreamIndex stream) { return stream < 2; }
  // Leaves an event behind; the index is free for another stream once all positions have passed.
  void destroyed(void* context, uint64_t id);

  // One op was submitted: its position on the stream. Also counts the device's ops.
  uint64_t advance(StreamIndex stream, uint64_t* op) {
    State& state = *states_[stream].load(std::memory_order_acquire);
    const uint64_t position = state.position.fetch_add(1, std::memory_order_acq_rel) + 1;
    // Before the op counts: whoever sees the count sees that this stream ran an op since.
    const uint64_t next = ops_.load(std::memory_order_acquire) + 1;
    if (state.last_op.load(std::memory_order_relaxed) < next) {
      state.last_op.store(next, std::memory_order_release);
    }
    *op = ops_.fetch_add(1, std::memory_order_acq_rel) + 1;
    return position;
  }
  // A position of its own for all that the stream was given so far, waits for other streams
  // included: no op marks those, so an event that stands for the last op may be older than they
  // are. Called by a thread that may record on the stream. Under the mutex.
  Point here(StreamIndex stream) {
    State& at = state(stream);
    const uint64_t position = at.position.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (at.per_thread) mark(stream, true);
    return {stream, position};
  }
  // What we give to a lane. A submission takes microseconds: a long one stood before a full queue
  // if so much is unfinished there (else the machine was busy), and counts as a wait for it.
  template <typename Call>
  Status submit(StreamIndex stream, Call&& call) {
    State& at = state(stream);
    if (!is_lane(stream)) return call();
    const bool may_be_full = at.given - at.passed_given >= queue_depth_;
    const uint64_t begin = port_.now_nanoseconds();
    const Status status = call();
    const uint64_t took = port_.now_nanoseconds() - begin;
    ++at.given;
    if (may_be_full && took >= kLongSubmission_ns) statistics_.waited(HostWait::queue, took);
    return status;
  }
  // One copy was submitted to a lane. Under the mutex.
  Point advance_lane(StreamIndex lane) {
    const uint64_t position = state(lane).position.fetch_add(1, std::memory_order_acq_rel) + 1;
    mark(lane);
    return {lane, position};
  }
  uint64_t position(StreamIndex stream) const {
    return states_[stream]
        .load(std::memory_order_acquire)
        ->position.load(std::memory_order_acquire);
  }
  // At most the number of the op that the stream ran last, and more than that of every op that had
  // been noted before that one was submitted.
  uint64_t last_op(StreamIndex stream) const {
    return states_[stream].load(std::memory_order_acquire)->last_op.load(std::memory_order_acquire);
  }
  // All that was submitted so far. Of a per-thread stream, all that its owner has left an event
  // behind.
  Point now(StreamIndex stream) const;
  bool per_thread(StreamIndex stream) const {
    return states_[stream].load(std::memory_order_acquire)->per_thread;
  }
  uint64_t ops() const { return ops_.load(std::memory_order_acquire); }
  StreamIndex count() const { return count_; }
  bool live(StreamIndex stream) const {
    return states_[stream].load(std::memory_order_acquire)->live;
  }
  NativeStream native(StreamIndex stream) const {
    return states_[stream].load(std::memory_order_acquire)->native;
  }

  // Records an event now unless one already stands for everything submitted. On a per-thread stream
  // only its owner can, and says so.
  void mark(StreamIndex stream, bool by_owner = false);
  // A point on `stream` with a recorded event that stands for everything up to `op` of the device
  // (and for `position`), the earliest there is; records one if there is none.
  Point covering(StreamIndex stream, uint64_t position, uint64_t op);

  // Makes `waiter` wait for what has not passed. If the driver refuses, the host waits instead.
  void wait(StreamIndex waiter, const Fence& fence);
  void wait(StreamIndex waiter, Point point);
  bool knows(StreamIndex waiter, Point point) const;  // already ordered behind it, or passed

  // Whether the GPU has passed the point. `record`: an event may be recorded on the stream to find
  // out later.
  bool known_passed(Point point) const { return state(point.stream).passed >= point.position; }
  bool passed(Point point, bool record = true);
  bool passed(Fence& fence, bool record = true);  // passed points drop out
  // The host waits; with `lock` given, the mutex is let go meanwhile.
  void synchronize(Point point) { synchronize_with(point, nullptr); }
  void synchronize(Point point, std::unique_lock<Mutex>& lock) { synchronize_with(point, &lock); }

  // A capture begins: an event is left for all that the stream was given, and until thaw() nothing
  // of ours touches it. What it is to wait for meanwhile it waits for then, before anything new can
  // run on it. Both by a thread that may record on the stream.
  void freeze(StreamIndex stream);
  void thaw(StreamIndex stream);
  bool frozen(StreamIndex stream) const { return state(stream).frozen; }
  uint32_t frozen_count() const { return frozen_.load(std::memory_order_relaxed); }

  // Rule G. Between begin and end the op that waits for the host is forwarded; from begin on it
  // counts as pending.
  void external_wait_begin(StreamIndex stream);
  void external_wait_end(StreamIndex stream);
  bool external_wait_pending();
  bool external_wait_opening() const { return opening_ != 0; }
  // Null: nothing is pending there.
  Event external_event(StreamIndex stream) const {
    const State& at = state(stream);
    return at.external_pending && at.external_recorded ? at.external : nullptr;
  }
  // Such an op was forwarded before this engine was there; another one's event is behind it.
  void external_wait_before(Event event, void* context);

  // How long streams stood waiting for our lanes: pairs of timed events around the waits, added up
  // when they pass.
  void collect_exposed();
  // Time between two recorded, passed points of a lane.
  bool lane_time(Event begin, Event end, uint64_t* nanoseconds);
  Event timed_event(StreamIndex stream);  // recorded now
  void recycle_timed(Event event);        // one of a lane's
  bool event_passed(Event event) { return port_.query(event) == Status::kOk; }

  // The device's context died: nothing is pending any more, events are gone with it.
  void forget_all();
  // Whether a stream of it is, or was, followed.
  bool has_met(void* context) const;
  bool asks_of(void* context) const;  // or an event of it is asked
  // The same for another context whose streams are followed.
  void forget(void* context);
  void forget_streams(void* context);  // but not of the early waits

 private:
  friend class EngineTest;
  struct Mark {
    uint64_t position;
    uint64_t op;
    Event event;
    uint64_t given = 0;  // State::given, then
  };
  struct EventPool {
    void* context = nullptr;
    bool in_use = false;  // else its context has gone
    OwnVector<Event> plain;
    OwnVector<Event> timed;
  };
  struct State {
    std::atomic<uint64_t> position{0};
    std::atomic<uint64_t> last_op{0};
    NativeStream native;
    EventPool* events = nullptr;  // of its context
    uint64_t id = 0;
    bool live = false;
    bool per_thread = false;
    uint64_t passed = 0;
    uint64_t passed_op = 0;     // all its ops up to this number of the device have passed, too
    uint64_t given = 0;         // a lane: what we have submitted: copies, events, waits
    uint64_t passed_given = 0;  // and how much of it has passed
    OwnDeque<Mark> marks;       // by position; the events of unpassed positions
    OwnVector<uint64_t> known;  // by stream: ordered behind this position of it
    uint64_t knows(StreamIndex stream) const { return stream < known.size() ? known[stream] : 0; }
    Event external = nullptr;  // recorded behind an external wait, and reused
    bool external_pending = false;
    uint32_t opening = 0;  // such ops that are being forwarded
    bool external_recorded = false;
    bool frozen = false;
    Fence owed;  // frozen: what it waits for once it no longer is
  };
  // What a thread waits for without the mutex; on its stack.
  struct Awaited {
    Event event = nullptr;
    EventPool* events = nullptr;
    bool done_with = false;  // it goes back to its pool once nobody waits
  };
  struct Exposed {
    Event begin;
    Event end;
    EventPool* events;
  };

  State& state(StreamIndex stream) { return *states_[stream].load(std::memory_order_relaxed); }
  const State& state(StreamIndex stream) const {
    return *states_[stream].load(std::memory_order_relaxed);
  }
  StreamIndex add(const NativeStream& native, uint64_t id, bool per_thread);
  bool record_external(State& at);
  Status finish_event(Event event);
  void finish_stream(State& at, uint64_t position);
  void synchronize_with(Point point, std::unique_lock<Mutex>* lock);
  const Mark* mark_at(StreamIndex stream, uint64_t position, bool record);
  void prune(State& state);
  EventPool* pool_of(void* context);
  Event take_event(EventPool& events);
  void put_event(EventPool& events, Event event);
  void end_awaiting(Awaited& awaited);
  void forget_stream(State& at);

  static constexpr uint64_t kLongSubmission_ns = 200'000;

  Port& port_;
  Statistics& statistics_;
  const uint64_t queue_depth_;
  std::atomic<State*> states_[kMaxStreams]{};
  StreamIndex count_ = 0;
  std::atomic<uint64_t> ops_{0};
  OwnMap<std::pair<void*, uint64_t>, StreamIndex> by_id_;  // in a context
  OwnVector<EventPool*> pools_;
  OwnDeque<Exposed> exposed_;
  OwnVector<Awaited*> awaited_;
  uint32_t external_pending_ = 0;
  OwnVector<std::pair<Event, void*>> earlier_;  // external_wait_before, and their contexts
  uint32_t opening_ = 0;
  std::atomic<uint32_t> frozen_{0};
};

}  // namespace offload
