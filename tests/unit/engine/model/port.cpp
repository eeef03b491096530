// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/model/port.h"

#include "tests/unit/engine/model/failure.h"

namespace offload::model {

ModelPort::ModelPort(Device& device, Crew& crew)
    : device_(device),
      crew_(crew),
      lanes_{device.add_queue("out", true), device.add_queue("in", true)} {}

void ModelPort::fail_call(Call call, uint64_t nth, Status status) {
  Fault& fault = faults_[static_cast<size_t>(call)];
  fault.countdown = nth;
  fault.status = status;
}

void ModelPort::fail_by_chance(Call call, uint32_t per_ten_thousand, uint64_t seed) {
  faults_[static_cast<size_t>(call)].per_ten_thousand = per_ten_thousand;
  random_.seed(seed);
}

Status ModelPort::enter(Call call, Schedule::Point point) {
  if (before) before(call);
  device_.schedule().at(point, device_);
  if (director != nullptr) {
    director->between(call);
    if (director->fails(call)) {
      ++failures_;
      return faults_[static_cast<size_t>(call)].status;
    }
  }
  ++calls_[static_cast<size_t>(call)];
  Fault& fault = faults_[static_cast<size_t>(call)];
  Status status = Status::kOk;
  if (fault.countdown != 0 && --fault.countdown == 0) status = fault.status;
  if (fault.per_ten_thousand != 0 && random_() % 10000 < fault.per_ten_thousand) {
    status = fault.status;
  }
  if (status != Status::kOk) ++failures_;
  return status;
}

ModelPort::ModelEvent& ModelPort::known(Event event) {
  const auto at = events_.find(event);
  if (at == events_.end()) fail(Failure::Kind::kMisuse, "an event that does not exist");
  return *at->second;
}

Queue& ModelPort::queue_of(const NativeStream& stream) {
  if (context_lost) fail(Failure::Kind::kMisuse, "a stream of a context that is gone");
  if (stream.stream == kPerThreadHandle) return *own_stream();
  return *static_cast<Queue*>(stream.stream);
}

// What is recorded on a stream that captures, or waited for by it, becomes a part of the program's
// graph, or spoils it.
Queue& ModelPort::usable(const NativeStream& stream) {
  Queue& queue = queue_of(stream);
  if (queue.captures)
    fail(Failure::Kind::kMisuse, queue.name + " captures, and is touched (error 900)");
  return queue;
}

void ModelPort::submit(Queue& queue, Item item) {
  if (director != nullptr) director->make_room(queue);
  device_.submit(queue, std::move(item));
}

Status ModelPort::reserve(uint64_t bytes, Address* out) {
  *out = device_.memory().reserve(bytes);
  return Status::kOk;
}

// No lock of the engine's is held across such a call, and others get on meanwhile. Who explores
// lets them take the lock then, and so cannot tell whose it is.
void ModelPort::take_time() {
  if (!unlocked) return;
  if (director == nullptr && !unlocked())
    fail(Failure::Kind::kMisuse, "a call that takes its time, with the mutex held");
  crew_.yield();
}

Status ModelPort::create(Place place, uint64_t bytes, Handle* out) {
  take_time();
  if (const Status status = enter(Call::kCreate, Schedule::Point::kOther); status != Status::kOk) {
    return status;
  }
  *out = device_.memory().create(place, bytes);
  return *out != 0 ? Status::kOk : Status::kOutOfMemory;
}

void ModelPort::release(Handle handle) {
  device_.memory().release(handle);
}

Status ModelPort::map(Address at, uint64_t bytes, Handle handle, Place place, bool) {
  take_time();
  if (const Status status = enter(Call::kMap, Schedule::Point::kOther); status != Status::kOk) {
    return status;
  }
  if (device_.memory().place_of(handle) != place) {
    fail(Failure::Kind::kMisuse, "map with access for another place");
  }
  if (say) say("map " + std::to_string(at) + " handle " + std::to_string(handle));
  device_.memory().map(at, bytes, handle);
  return Status::kOk;
}

Status ModelPort::unmap(Address at, uint64_t bytes) {
  take_time();
  if (const Status status = enter(Call::kUnmap, Schedule::Point::kUnmap); status != Status::kOk) {
    return status;
  }
  if (say) say("unmap " + std::to_string(at));
  // Nothing else may be mapped there in time.
  if (device_.uses(at, bytes)) {
    fail(Failure::Kind::kFault, "an address is unmapped that queued work still uses");
  }
  device_.memory().unmap(at, bytes);
  return Status::kOk;
}

Status ModelPort::allocate_pinned(uint64_t bytes, Address* out) {
  take_time();
  if (const Status status = enter(Call::kPin, Schedule::Point::kOther); status != Status::kOk) {
    return status;
  }
  wait_for_flags();
  *out = device_.memory().pin(bytes);
  return Status::kOk;
}

// Before it pins, a driver may wait for all that is queued. Only what does not end by itself
// matters.
void ModelPort::wait_for_flags() {
  for (const std::unique_ptr<Queue>& queue : device_.queues()) {
    const bool flagged = std::any_of(
        queue->items.begin(), queue->items.end(),
        [&](const Item& item) { return item.flag >= 0 && !device_.flag_set(item.flag); });
    if (!flagged) continue;
    auto mark = std::make_shared<Mark>();
    submit(*queue, {.run = {}, .records = mark, .waits_for = nullptr});
    wait_for(mark);
  }
}

void ModelPort::free_pinned(Address at) {
  device_.memory().unpin(at);
}

Status ModelPort::create_event(void* context, bool timed, Event* out) {
  if (const Status status = enter(Call::kCreateEvent, Schedule::Point::kOther);
      status != Status::kOk) {
    return status;
  }
  if (timed && no_timed_events) return Status::kError;
  auto event = std::make_unique<ModelEvent>();
  event->context = context;
  event->timed = timed;
  *out = event.get();
  events_[*out] = std::move(event);
  return Status::kOk;
}

void ModelPort::destroy_event(Event event) {
  known(event);
  events_.erase(event);
}

void ModelPort::destroy_events(void* context) {
  std::erase_if(events_, [context](const auto& known) { return known.second->context == context; });
}

Status ModelPort::record(Event event, const NativeStream& stream) {
  if (const Status status = enter(Call::kRecord, Schedule::Point::kOther); status != Status::kOk) {
    return status;
  }
  if (known(event).context != stream.context) {
    fail(Failure::Kind::kMisuse, "an event is recorded on a stream of another context");
  }
  auto mark = std::make_shared<Mark>();
  known(event).last = mark;
  submit(usable(stream), {.run = {}, .records = mark, .waits_for = nullptr});
  device_.schedule().at(Schedule::Point::kSubmit, device_);
  return Status::kOk;
}

Status ModelPort::wait(const NativeStream& stream, Event event) {
  if (const Status status = enter(Call::kWait, Schedule::Point::kOther); status != Status::kOk) {
    return status;
  }
  const std::shared_ptr<Mark>& last = known(event).last;
  if (last == nullptr || last->done) return Status::kOk;
  if (say) say("wait of " + queue_of(stream).name + " for " + last->queue->name);
  submit(usable(stream), {.run = {}, .records = nullptr, .waits_for = last});
  return Status::kOk;
}

Status ModelPort::query(Event event) {
  if (const Status status = enter(Call::kQuery, Schedule::Point::kQuery); status != Status::kOk) {
    return status;
  }
  const std::shared_ptr<Mark> last = known(event).last;
  if (director != nullptr && last != nullptr && !known(event).timed) director->asked(last);
  const Status status = last == nullptr || last->done ? Status::kOk : Status::kNotReady;
  if (director != nullptr) director->answered(static_cast<uint64_t>(status));
  return status;
}

// The schedule decides what runs meanwhile; if nothing can, another host thread has to do
// something.
Status ModelPort::wait_for(const std::shared_ptr<Mark>& mark) {
  if (director != nullptr) {
    if (mark != nullptr) director->wait(mark);
    return Status::kOk;
  }
  if (unlocked && unlocked()) crew_.yield();
  if (while_waiting) while_waiting();
  while (mark != nullptr && !device_.run_until(mark)) {
    if (!unlocked || !unlocked() || !crew_.give_way()) {
      fail(Failure::Kind::kHang, "the host waits for what nothing will do");
    }
  }
  return Status::kOk;
}

Status ModelPort::synchronize(Event event) {
  if (const Status status = enter(Call::kSynchronize, Schedule::Point::kOther);
      status != Status::kOk) {
    return status;
  }
  return wait_for(std::shared_ptr<Mark>(known(event).last));
}

Status ModelPort::elapsed(Event begin, Event end, uint64_t* nanoseconds) {
  const ModelEvent& from = known(begin);
  const ModelEvent& to = known(end);
  if (!from.timed || !to.timed) fail(Failure::Kind::kMisuse, "time asked of an untimed event");
  if (from.last == nullptr || to.last == nullptr) return Status::kError;
  if (!from.last->done || !to.last->done) return Status::kNotReady;
  *nanoseconds = to.last->time - from.last->time;
  return Status::kOk;
}

Status ModelPort::synchronize_stream(const NativeStream& stream) {
  if (const Status status = enter(Call::kSynchronize, Schedule::Point::kOther);
      status != Status::kOk) {
    return status;
  }
  auto mark = std::make_shared<Mark>();
  submit(usable(stream), {.run = {}, .records = mark, .waits_for = nullptr});
  return wait_for(mark);
}

NativeStream ModelPort::lane(Lane lane) {
  context_lost = false;
  return {lanes_[static_cast<size_t>(lane)], nullptr};
}

Status ModelPort::copy(Lane lane, Address to, Address from, uint64_t bytes) {
  if (const Status status = enter(Call::kCopy, Schedule::Point::kOther); status != Status::kOk) {
    return status;
  }
  if (say) {
    say("copy " + std::to_string(device_.memory().shown_at(from)) + " to " +
        std::to_string(device_.memory().shown_at(to)) + " (" +
        std::to_string(lane == Lane::kOut ? to : from) + ")");
  }
  Item item;
  item.token = mix(mix(to, from), bytes);
  item.touches = {{from, bytes, false}, {to, bytes, true}};
  item.run = [this, to, from, bytes] {
    std::vector<Memory::Run> source;
    std::vector<Memory::Run> target;
    if (!device_.memory().resolve(from, bytes, &source) ||
        !device_.memory().resolve(to, bytes, &target)) {
      fail(Failure::Kind::kFault, "a copy of the engine's met an address that shows nothing");
    }
    std::vector<Cell> cells;
    for (const Memory::Run& run : source) {
      cells.insert(cells.end(), run.cells, run.cells + run.count);
    }
    const Cell* next = cells.data();
    for (const Memory::Run& run : target) {
      for (uint64_t i = 0; i < run.count; ++i) run.cells[i] = *next++;
    }
  };
  submit(*lanes_[static_cast<size_t>(lane)], std::move(item));
  device_.schedule().at(Schedule::Point::kSubmit, device_);
  return Status::kOk;
}

uint64_t ModelPort::checksum(Address at, uint64_t bytes) {
  std::vector<Memory::Run> runs;
  if (!device_.memory().resolve(at, bytes, &runs)) {
    fail(Failure::Kind::kFault, "a checksum over an address that shows nothing");
  }
  uint64_t sum = 0;
  for (const Memory::Run& run : runs) {
    for (uint64_t i = 0; i < run.count; ++i) sum = mix(sum, run.cells[i]);
  }
  return sum;
}

uint64_t ModelPort::checksum_host(Address at, uint64_t bytes) {
  return checksum(at, bytes);
}

Status ModelPort::checksum_device(Address at, uint64_t bytes, uint64_t* out) {
  *out = checksum(at, bytes);
  return Status::kOk;
}

bool ModelPort::host_waits(std::unique_lock<Mutex>& lock) {
  if (director != nullptr) {
    director->look_again(lock);
    return true;
  }
  lock.unlock();
  device_.schedule().at(Schedule::Point::kOther, device_);
  bool somebody = true;
  if (while_waiting) {
    while_waiting();
  } else if (crew_.running()) {
    somebody = crew_.give_way();
  }
  if (const std::vector<Queue*>& heads = device_.ready(); !heads.empty()) {
    device_.run_head(*heads[device_.schedule().pick(device_, heads)]);
    in_vain_ = 0;
  }
  lock.lock();
  // Looks that change nothing come again and again: count them.
  constexpr uint32_t kHang = 300;
  if (!somebody || ++in_vain_ > kHang) {
    fail(Failure::Kind::kHang, "a host thread waits for another in vain");
  }
  return true;
}

}  // namespace offload::model
