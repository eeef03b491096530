// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/streams.h"

#include <algorithm>

#include "interpose/engine/clauses.h"

namespace offload {

Streams::Streams(Port& port, Statistics& statistics, uint64_t queue_depth)
    : port_(port), statistics_(statistics), queue_depth_(queue_depth) {}

StreamIndex Streams::add(const NativeStream& native, uint64_t id, bool per_thread) {
  StreamIndex index = kNoStream;
  for (StreamIndex i = 2; i < count_ && index == kNoStream; ++i) {
    if (!state(i).live && state(i).marks.empty() && !state(i).external_pending &&
        state(i).opening == 0 &&
        state(i).passed >= state(i).position.load(std::memory_order_relaxed)) {
      index = i;  // positions go on from where the former stream ended, so old points stay passed
    }
  }
  if (index == kNoStream) {
    if (count_ == kMaxStreams) return kNoStream;
    index = count_;
    states_[index].store(own_new<State>(), std::memory_order_release);
    ++count_;
  }
  State& fresh = state(index);
  if (fresh.external != nullptr && fresh.events->context != native.context) {
    put_event(*fresh.events, fresh.external);
    fresh.external = nullptr;
  }
  fresh.native = native;
  fresh.events = pool_of(native.context);
  fresh.id = id;
  fresh.per_thread = per_thread;
  fresh.live = true;
  fresh.passed_op = ops();  // what it runs comes later
  fresh.known.clear();
  fresh.owed.clear();
  return index;
}

StreamIndex Streams::find(const NativeStream& native, uint64_t id, bool per_thread, bool* is_new) {
  *is_new = false;
  if (const StreamIndex index = known(native, id); index != kNoStream) return index;
  lane(Lane::kOut);  // the lanes come first
  for (StreamIndex i = 2; i < count_; ++i) prune(state(i));
  const StreamIndex index = add(native, id, per_thread);
  if (index != kNoStream) {
    by_id_[{native.context, id}] = index;
    *is_new = true;
  }
  return index;
}

StreamIndex Streams::known(const NativeStream& native, uint64_t id) const {
  const auto at = by_id_.find({native.context, id});
  return at != by_id_.end() ? at->second : kNoStream;
}

StreamIndex Streams::lane(Lane lane) {
  if (count_ == 0) {
    add(port_.lane(Lane::kOut), 0, false);
    add(port_.lane(Lane::kIn), 0, false);
  }
  const auto index = static_cast<StreamIndex>(lane);
  if (!state(index).live) {  // the context of the former ones died
    state(index).native = port_.lane(lane);
    state(index).events = pool_of(state(index).native.context);
    state(index).live = true;
  }
  return index;
}

void Streams::destroyed(void* context, uint64_t id) {
  const auto known = by_id_.find({context, id});
  if (known == by_id_.end()) return;
  State& old = state(known->second);
  if (old.frozen) {  // its capture ends with it, and what it was given before has its event
    old.frozen = false;
    old.owed.clear();
    frozen_.fetch_sub(1, std::memory_order_relaxed);
  } else {
    mark(known->second, true);
  }
  const uint64_t position = old.position.load(std::memory_order_acquire);
  const uint64_t marked = old.marks.empty() ? old.passed : old.marks.back().position;
  if (marked < position) finish_stream(old, position);
  old.live = false;
  by_id_.erase(known);
}

Streams::EventPool* Streams::pool_of(void* context) {
  EventPool* fresh = nullptr;
  for (EventPool* events : pools_) {
    if (events->in_use && events->context == context) return events;
    if (!events->in_use) fresh = events;
  }
  if (fresh == nullptr) {
    fresh = own_new<EventPool>();
    pools_.push_back(fresh);
  }
  fresh->context = context;
  fresh->in_use = true;
  return fresh;
}

Event Streams::take_event(EventPool& events) {
  Event event = nullptr;
  if (!events.plain.empty()) {
    event = events.plain.back();
    events.plain.pop_back();
  } else if (port_.create_event(events.context, false, &event) != Status::kOk) {
    event = nullptr;
  }
  return event;
}

// One that a thread waits for without the mutex would stand for something later, an external flag
// perhaps.
void Streams::put_event(EventPool& events, Event event) {
  for (Awaited* each : awaited_) {
    if (each->event != event || !holds(Clause::kAwaitedEventStays)) continue;
    each->done_with = true;
    return;
  }
  events.plain.push_back(event);
}

void Streams::end_awaiting(Awaited& awaited) {
  std::erase(awaited_, &awaited);
  if (awaited.done_with) put_event(*awaited.events, awaited.event);
}

Point Streams::now(StreamIndex stream) const {
  const State& at = state(stream);
  if (!at.per_thread) return {stream, position(stream)};
  return {stream, at.marks.empty() ? at.passed : at.marks.back().position};
}

void Streams::mark(StreamIndex stream, bool by_owner) {
  State& at = state(stream);
  if (!at.live || (at.per_thread && !by_owner)) return;
  // Read before the record, and ops first: an op that another thread submits meanwhile counts for
  // neither, or for the position alone.
  const uint64_t op = ops();
  const uint64_t position = at.position.load(std::memory_order_acquire);
  if (!at.marks.empty() && at.marks.back().position >= position) {
    at.marks.back().op = std::max(at.marks.back().op, op);
    return;
  }
  if (at.marks.empty() && at.passed >= position) {
    at.passed_op = std::max(at.passed_op, op);
    return;
  }
  if (at.frozen) return;
  prune(at);
  const Event event = take_event(*at.events);
  const auto record = [&] { return port_.record(event, at.native); };
  if (event == nullptr || submit(stream, record) != Status::kOk) {
    if (event != nullptr) put_event(*at.events, event);
    // Nobody else can record there later.
    if (at.per_thread) finish_stream(at, position);
    return;
  }
  at.marks.push_back({position, op, event, at.given});
}

void Streams::prune(State& at) {
  while (!at.marks.empty() && port_.query(at.marks.front().event) == Status::kOk) {
    at.passed = std::max(at.passed, at.marks.front().position);
    at.passed_op = std::max(at.passed_op, at.marks.front().op);
    at.passed_given = at.marks.front().given;
    put_event(*at.events, at.marks.front().event);
    at.marks.pop_front();
  }
}

const Streams::Mark* Streams::mark_at(StreamIndex stream, uint64_t position, bool record) {
  State& at = state(stream);
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (const Mark& mark : at.marks) {
      if (mark.position >= position) return &mark;
    }
    if (!record) break;
    mark(stream);
  }
  return nullptr;
}

Point Streams::covering(StreamIndex stream, uint64_t position, uint64_t op) {
  State& at = state(stream);
  if (at.passed >= position && at.passed_op >= op) return {stream, at.passed};
  for (const Mark& mark : at.marks) {
    if (mark.position >= position && mark.op >= op) return {stream, mark.position};
  }
  Point submitted = now(stream);
  if (submitted.position < position) submitted.position = position;  // its owner's event failed
  mark(stream);
  return submitted;
}

bool Streams::knows(StreamIndex waiter, Point point) const {
  return waiter == point.stream || state(point.stream).passed >= point.position ||
         state(waiter).knows(point.stream) >= point.position;
}

void Streams::wait(StreamIndex waiter, Point point) {
  if (point.position == 0 || knows(waiter, point)) return;
  if (state(waiter).frozen) {
    if (holds(Clause::kThawPaysWaits)) state(waiter).owed.add(point);
    return;
  }
  const Mark* mark = mark_at(point.stream, point.position, true);
  if (mark == nullptr) {  // no event can be had: let the host wait
    synchronize(point);
    return;
  }
  if (port_.query(mark->event) == Status::kOk) {
    prune(state(point.stream));
    if (state(point.stream).passed >= point.position) return;
  }
  const bool measured = is_lane(point.stream) && !is_lane(waiter);
  EventPool& events = *state(waiter).events;
  const Event begin = measured ? timed_event(waiter) : nullptr;
  const auto wait_for_it = [&] { return port_.wait(state(waiter).native, mark->event); };
  if (submit(waiter, wait_for_it) != Status::kOk) {
    if (begin != nullptr) events.timed.push_back(begin);
    synchronize(point);
    return;
  }
  OwnVector<uint64_t>& known = state(waiter).known;
  if (known.size() <= point.stream) known.resize(point.stream + 1);
  known[point.stream] = mark->position;
  if (begin != nullptr) {
    if (const Event end = timed_event(waiter); end != nullptr) {
      exposed_.push_back({begin, end, &events});
    } else {
      events.timed.push_back(begin);
    }
  }
}

void Streams::wait(StreamIndex waiter, const Fence& fence) {
  for (const Point& point : fence) wait(waiter, point);
}

bool Streams::passed(Point point, bool record) {
  State& at = state(point.stream);
  if (at.passed >= point.position) return true;
  prune(at);
  if (at.passed >= point.position) return true;
  mark_at(point.stream, point.position, record);
  return at.passed >= point.position;
}

bool Streams::passed(Fence& fence, bool record) {
  fence.remove_if([&](const Point& point) { return passed(point, record); });
  return fence.empty();
}

void Streams::synchronize_with(Point point, std::unique_lock<Mutex>* lock) {
  State& at = state(point.stream);
  if (passed(point)) return;
  const Mark* mark = mark_at(point.stream, point.position, true);
  const Event event = mark != nullptr ? mark->event : nullptr;
  const bool live = at.live;
  const NativeStream native = at.native;
  Awaited awaited{event, at.events, false};
  awaited_.push_back(&awaited);
  if (lock != nullptr) lock->unlock();
  Status status = Status::kOk;
  if (event != nullptr) {
    status = finish_event(event);
  } else if (live && !at.frozen) {
    status = port_.synchronize_stream(native);
    if (status != Status::kOk) status = port_.synchronize_stream(native);
  }
  if (lock != nullptr) lock->lock();
  end_awaiting(awaited);
  prune(at);
  // Without an event the whole stream was waited for. And a context in error passes everything: its
  // work will never run, and the program learns of it from its own calls.
  if (event == nullptr || status != Status::kOk) at.passed = std::max(at.passed, point.position);
}

// A wait that fails while the event is merely pending is tried again; an error: the context is
// lost.
Status Streams::finish_event(Event event) {
  for (;;) {
    if (port_.synchronize(event) == Status::kOk) return Status::kOk;
    Status status = port_.query(event);
    if (status == Status::kError) status = port_.query(event);
    if (status != Status::kNotReady) return status;
  }
}

// Where no event can be had: the host waits, here and now, for all that the stream was given.
void Streams::finish_stream(State& at, uint64_t position) {
  if (port_.synchronize_stream(at.native) != Status::kOk) port_.synchronize_stream(at.native);
  prune(at);
  at.passed = std::max(at.passed, position);
}

void Streams::freeze(StreamIndex stream) {
  State& at = state(stream);
  if (at.frozen) return;
  if (holds(Clause::kCaptureLeavesEvent)) {
    mark(stream, true);
    const uint64_t position = at.position.load(std::memory_order_acquire);
    const uint64_t marked = at.marks.empty() ? at.passed : at.marks.back().position;
    if (marked < position) finish_stream(at, position);
  }
  if (!holds(Clause::kCaptureUntouched)) return;
  at.frozen = true;
  frozen_.fetch_add(1, std::memory_order_relaxed);
}

void Streams::thaw(StreamIndex stream) {
  State& at = state(stream);
  if (!at.frozen) return;
  at.frozen = false;
  frozen_.fetch_sub(1, std::memory_order_relaxed);
  wait(stream, at.owed);
  at.owed.clear();
}

void Streams::external_wait_begin(StreamIndex stream) {
  if (holds(Clause::kFlagLeavesEvent)) mark(stream, true);
  ++state(stream).opening;
  ++opening_;
}

void Streams::external_wait_end(StreamIndex stream) {
  State& at = state(stream);
  if (at.opening == 0) return;  // its context died meanwhile
  --at.opening;
  --opening_;
  if (!at.external_pending) ++external_pending_;
  at.external_pending = true;
  record_external(at);
}

// Without an event the wait counts as pending; it is tried again whenever somebody asks.
bool Streams::record_external(State& at) {
  if (at.external == nullptr) at.external = take_event(*at.events);
  at.external_recorded =
      at.external != nullptr && port_.record(at.external, at.native) == Status::kOk;
  return at.external_recorded;
}

void Streams::external_wait_before(Event event, void* context) {
  if (holds(Clause::kFlagToldToNew)) earlier_.push_back({event, context});
}

bool Streams::external_wait_pending() {
  if (!earlier_.empty()) {
    std::erase_if(earlier_,
                  [&](const auto& each) { return port_.query(each.first) == Status::kOk; });
  }
  const bool opening = holds(Clause::kFlagCountsOpening) && opening_ != 0;
  const bool others = opening || !earlier_.empty();
  if (external_pending_ == 0) return others;
  for (StreamIndex i = 2; i < count_; ++i) {
    State& at = state(i);
    if (!at.external_pending) continue;
    if (!at.external_recorded && (!at.live || at.per_thread || at.frozen || !record_external(at))) {
      continue;
    }
    if (port_.query(at.external) != Status::kOk) continue;
    at.external_pending = false;
    --external_pending_;
  }
  return external_pending_ != 0 || others;
}

Event Streams::timed_event(StreamIndex stream) {
  State& at = state(stream);
  Event event = nullptr;
  if (!at.events->timed.empty()) {
    event = at.events->timed.back();
    at.events->timed.pop_back();
  } else if (port_.create_event(at.native.context, true, &event) != Status::kOk) {
    return nullptr;
  }
  const auto record = [&] { return port_.record(event, at.native); };
  if (submit(stream, record) == Status::kOk) return event;
  at.events->timed.push_back(event);
  return nullptr;
}

void Streams::recycle_timed(Event event) {
  state(lane(Lane::kOut)).events->timed.push_back(event);
}

void Streams::collect_exposed() {
  while (!exposed_.empty() && port_.query(exposed_.front().end) == Status::kOk) {
    uint64_t nanoseconds = 0;
    if (port_.elapsed(exposed_.front().begin, exposed_.front().end, &nanoseconds) == Status::kOk) {
      statistics_.exposed_ns.add(nanoseconds);
    }
    exposed_.front().events->timed.push_back(exposed_.front().begin);
    exposed_.front().events->timed.push_back(exposed_.front().end);
    exposed_.pop_front();
  }
}

bool Streams::lane_time(Event begin, Event end, uint64_t* nanoseconds) {
  return port_.elapsed(begin, end, nanoseconds) == Status::kOk;
}

void Streams::forget_stream(State& at) {
  at.marks.clear();
  at.passed = at.position.load(std::memory_order_acquire);
  at.passed_given = at.given;
  at.live = false;
  at.external = nullptr;
  if (at.external_pending) --external_pending_;
  opening_ -= at.opening;
  at.opening = 0;
  at.external_pending = false;
  if (at.frozen) frozen_.fetch_sub(1, std::memory_order_relaxed);
  at.frozen = false;
  at.owed.clear();
}

void Streams::forget_all() {
  for (StreamIndex i = 0; i < count_; ++i) forget_stream(state(i));
  by_id_.clear();
  earlier_.clear();
  exposed_.clear();
  for (Awaited* each : awaited_) *each = {};
  for (EventPool* events : pools_) {
    events->plain.clear();
    events->timed.clear();
  }
}

bool Streams::asks_of(void* context) const {
  return has_met(context) || std::any_of(earlier_.begin(), earlier_.end(),
                                         [=](const auto& each) { return each.second == context; });
}

bool Streams::has_met(void* context) const {
  return std::any_of(pools_.begin(), pools_.end(), [context](const EventPool* events) {
    return events->in_use && events->context == context;
  });
}

void Streams::forget(void* context) {
  std::erase_if(earlier_, [context](const auto& each) { return each.second == context; });
  forget_streams(context);
}

void Streams::forget_streams(void* context) {
  if (!has_met(context)) return;
  for (StreamIndex i = 2; i < count_; ++i) {
    if (state(i).native.context == context) forget_stream(state(i));
  }
  std::erase_if(by_id_, [context](const auto& known) { return known.first.first == context; });
  std::erase_if(exposed_,
                [context](const Exposed& pair) { return pair.events->context == context; });
  EventPool* events = pool_of(context);
  for (Awaited* each : awaited_) {
    if (each->events == events) *each = {};
  }
  *events = {};
}

}  // namespace offload
