// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/engine.h"

#include <algorithm>
#include <utility>

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/thread_state.h"

namespace simgpu {

std::mutex& driver_mutex() {
  static auto* mutex = new std::mutex;  // leaked: the executor outlives static destructors
  return *mutex;
}

Engine& engine() {
  static auto* instance = new Engine;
  return *instance;
}

namespace {

Rates rates() {
  Rates result{options().h2d * 1e9, options().d2h * 1e9, options().both};
  const DropOption& drop = options().link_drop;
  if (drop.factor < 1) {
    const int64_t begin = options().clock == ClockKind::kReal ? Timeline::wall_ns() : 0;
    result.drop = drop.factor;
    result.drop_at_ns = begin + static_cast<int64_t>(drop.after_s * 1e9);
  }
  return result;
}

// The place of a context that has ended may be another's by now, its streams are left behind.
bool is_of(const Stream& stream, const Context& context) {
  if (stream.context == &context) return stream.context_id == context.id;
  const Context* own = contexts().find(stream.context);
  return own != nullptr && own->id == stream.context_id && own->primary_of == &context;
}

}  // namespace

Engine::Engine()
    : scheduler_(options().schedule),
      virtual_(options().clock == ClockKind::kVirtual),
      timeline_(options().clock != ClockKind::kOff, rates()) {}

bool Engine::is_known(const Stream& stream, uint64_t number) {
  if (options().check == CheckMode::kOff) return true;
  const ClockRef& known = knowledge_.current();
  return known != nullptr && known->covers(stream.agent, number);
}

Stream* Engine::create_stream(Lock& lock, Context* context, unsigned flags, int priority) {
  Stream* stream = nullptr;
  for (auto it = retired_.begin(); it != retired_.end(); ++it) {
    if (!(*it)->idle() || !is_known(**it, (*it)->submitted)) continue;
    stream = *it;
    retired_.erase(it);
    break;
  }
  if (stream == nullptr) {
    stream = new Stream;
    stream->agent = static_cast<uint32_t>(streams_.size());
    streams_.push_back(stream);
  }
  if (stream->busy_ns != 0) busy_before_[stream->id] = stream->busy_ns;
  stream->busy_ns = 0;
  stream->context = context;
  stream->context_id = context->id;
  stream->device = context->device;
  stream->id = ++next_stream_id_;
  stream->flags = flags;
  stream->priority = priority;
  stream->legacy = false;
  stream->per_thread = false;
  stream->blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  stream->destroyed = false;
  stream->time_ns = 0;
  stream->capture = nullptr;
  stream->marker = nullptr;
  stream->seen_by_legacy = stream->submitted;
  stream->legacy_seen = 0;
  if (stream->blocking && context->legacy != nullptr) context->blocking.push_back(stream);
  for (const Context* each : {context, context->primary_of}) {
    if (each == nullptr) continue;
    for (const RecordRef& record : each->awaited) {
      add(lock, *stream, std::make_unique<WaitOp>(record));
    }
  }
  return stream;
}

void Engine::hold_back(Lock& lock, Context& context, const RecordRef& record) {
  for (Stream* stream : streams_) {
    if (is_of(*stream, context) && !stream->destroyed)
      add(lock, *stream, std::make_unique<WaitOp>(record));
  }
  std::erase_if(context.awaited, [&](const RecordRef& each) {
    return each->done && is_known(*each->stream, each->number);
  });
  context.awaited.push_back(record);
}

void Engine::retire_stream(Lock&, Stream* stream) {
  stream->destroyed = true;
  if (stream->idle()) std::erase(stream->context->blocking, stream);
  retired_.push_back(stream);
}

void Engine::append(Stream& stream, std::unique_ptr<Op> op) {
  op->stream = &stream;
  op->number = ++stream.submitted;
  op->order = ++next_order_;
  op->submit_ns = virtual_ ? thread_state().time_ns : 0;
  op->known = knowledge_.current();
  if (stream.queue.empty()) active_.push_back(&stream);
  op->submitted();
  stream.queue.push_back(std::move(op));
}

RecordRef Engine::point_after(Stream& stream) {
  if (stream.marker != nullptr && stream.marker->number == stream.submitted) return stream.marker;
  auto record = std::make_shared<Record>();
  append(stream, std::make_unique<RecordOp>(record));
  record->stream = &stream;
  record->number = stream.submitted;
  stream.marker = record;
  return record;
}

void Engine::order_against_default(Stream& stream) {
  Context& context = *stream.context;
  if (stream.legacy) {
    for (size_t i = context.blocking.size(); i-- > 0;) {
      Stream* other = context.blocking[i];
      if (other->submitted != other->seen_by_legacy) {
        append(stream, std::make_unique<WaitOp>(point_after(*other)));
        other->seen_by_legacy = other->submitted;
      } else if (other->destroyed) {
        context.blocking.erase(context.blocking.begin() + static_cast<ptrdiff_t>(i));
      }
    }
  } else if (stream.blocking && context.legacy->submitted != stream.legacy_seen) {
    append(stream, std::make_unique<WaitOp>(point_after(*context.legacy)));
    stream.legacy_seen = context.legacy->submitted;
  }
}

void Engine::gather(Lock&, Stream& stream) {
  if (stream.legacy) {
    order_against_default(stream);
    wake_executor();
  }
}

void Engine::make_room(Lock& lock, Stream& stream) {
  const auto depth = static_cast<size_t>(options().queue_depth);
  if (stream.queue.size() >= depth) {
    wait(lock, {{&stream, stream.submitted - depth + 1}}, "a full queue");
  }
}

uint64_t Engine::submit(Lock& lock, Stream& stream, std::unique_ptr<Op> op) {
  make_room(lock, stream);
  return add(lock, stream, std::move(op));
}

RecordRef Engine::add_point(Lock& lock, Stream& stream) {
  auto record = std::make_shared<Record>();
  record->stream = &stream;
  record->number = add(lock, stream, std::make_unique<RecordOp>(record));
  return record;
}

uint64_t Engine::add(Lock&, Stream& stream, std::unique_ptr<Op> op) {
  if (!threads_started_) start_threads();
  order_against_default(stream);
  append(stream, std::move(op));
  if (wake_on_submit_) work_.notify_one();
  return stream.submitted;
}

RecordRef Engine::record(Lock& lock, Stream& stream) {
  auto record = std::make_shared<Record>();
  record->stream = &stream;
  record->number = submit(lock, stream, std::make_unique<RecordOp>(record));
  return record;
}

std::vector<Target> Engine::all_work(const Context* context) {
  std::vector<Target> targets;
  for (Stream* stream : streams_) {
    if (is_of(*stream, *context)) targets.push_back({stream, stream->submitted});
  }
  return targets;
}

std::vector<Target> Engine::all_work_of_device(int device) {
  std::vector<Target> targets;
  for (Stream* stream : streams_) {
    if (stream->device == device) targets.push_back({stream, stream->submitted});
  }
  return targets;
}

// What of a stream is finished now, though its head may be running.
VectorClock Engine::finished_clock(const Stream& stream) const {
  VectorClock clock = stream.clock;
  clock.lower(stream.agent, stream.completed);
  return clock;
}

VectorClock Engine::wait_and_look(Lock& lock, const std::vector<Target>& targets,
                                  const char* call) {
  Demand demand;
  const bool look = options().check != CheckMode::kOff;
  for (const Target& target : targets) {
    if (!target.reached()) {
      demand.targets.push_back(target);
    } else if (look && target.number != 0) {
      demand.clock.join(finished_clock(*target.stream));
    }
  }
  const int64_t begin_ns = virtual_ ? thread_state().time_ns : Timeline::wall_ns();
  if (demand.targets.empty()) {
    note_reached(targets);
    return std::move(demand.clock);
  }
  scheduler_.add(&demand);
  ++blocked_hosts_;
  work_.notify_one();
  Watch watch;
  while (!demand.is_met()) {
    done_.wait_for(lock, std::chrono::seconds(1));
    check_watchdog(watch, call);
  }
  --blocked_hosts_;
  scheduler_.remove(&demand);
  const int64_t end_ns = virtual_ ? std::max(begin_ns, demand.met_ns) : Timeline::wall_ns();
  if (virtual_) thread_state().time_ns = end_ns;
  waits_ns_[call] += end_ns - begin_ns;
  return std::move(demand.clock);
}

void Engine::wait(Lock& lock, const std::vector<Target>& targets, const char* call) {
  wait_and_look(lock, targets, call);
}

void Engine::synchronize(Lock& lock, const std::vector<Target>& targets, const char* call) {
  knowledge_.learn(wait_and_look(lock, targets, call));
}

// By a point in the stream, not by the stream, which may be further by now.
void Engine::synchronize(Lock& lock, const Record& record, const char* call) {
  wait(lock, {{record.stream, record.number}}, call);
  knowledge_.learn(record.clock);
}

bool Engine::query(Lock&, const Record& record) {
  if (record.done) {
    knowledge_.learn(record.clock);
  } else if (scheduler_.asked_in_vain({record.stream, record.number})) {
    work_.notify_one();
  }
  return record.done;
}

bool Engine::query(Lock&, Target target) {
  if (target.reached()) {
    if (options().check != CheckMode::kOff) knowledge_.learn(finished_clock(*target.stream));
    return true;
  }
  if (scheduler_.asked_in_vain(target)) work_.notify_one();
  return false;
}

void Engine::join_clock_at(VectorClock* clock, uint32_t agent, uint64_t number) const {
  VectorClock then = streams_[agent]->clock;
  then.lower(agent, number);
  clock->join(then);
}

}  // namespace simgpu
