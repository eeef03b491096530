// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/engine.h"

#include <algorithm>
#include <utility>

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/options.h"

namespace simgpu {

std::mutex& driver_mutex() {
  static auto* mutex = new std::mutex;  // leaked: the executor outlives static destructors
  return *mutex;
}

Engine& engine() {
  static auto* instance = new Engine;
  return *instance;
}

Engine::Engine()
    : scheduler_(options().schedule),
      timeline_(options().clock == ClockKind::kReal,
                {options().h2d * 1e9, options().d2h * 1e9, options().both}) {}

Stream* Engine::create_stream(Lock&, Context* context, unsigned flags, int priority) {
  Stream* stream = nullptr;
  const bool check = options().check != CheckMode::kOff;
  for (auto it = retired_.begin(); it != retired_.end(); ++it) {
    const ClockRef& known = knowledge_.current();
    const bool known_over =
        !check || (known != nullptr && known->covers((*it)->agent, (*it)->submitted));
    if (!(*it)->idle() || !known_over) continue;
    stream = *it;
    retired_.erase(it);
    break;
  }
  if (stream == nullptr) {
    stream = new Stream;
    stream->agent = static_cast<uint32_t>(streams_.size());
    streams_.push_back(stream);
  }
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
  stream->marker = nullptr;
  stream->seen_by_legacy = stream->submitted;
  stream->legacy_seen = 0;
  if (stream->blocking && context->legacy != nullptr) context->blocking.push_back(stream);
  return stream;
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
  op->known = knowledge_.current();
  if (stream.queue.empty()) active_.push_back(&stream);
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

uint64_t Engine::submit(Lock& lock, Stream& stream, std::unique_ptr<Op> op) {
  if (!threads_started_) start_threads();
  const auto depth = static_cast<size_t>(options().queue_depth);
  if (stream.queue.size() >= depth) {
    wait(lock, {{&stream, stream.submitted - depth + 1}}, "a full queue");
  }
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

std::vector<Target> Engine::all_work(Context* context) {
  std::vector<Target> targets;
  for (Stream* stream : active_) {
    if (stream->context == context) targets.push_back({stream, stream->submitted});
  }
  return targets;
}

std::vector<Target> Engine::all_work_of_device(int device) {
  std::vector<Target> targets;
  for (Stream* stream : active_) {
    if (stream->device == device) targets.push_back({stream, stream->submitted});
  }
  return targets;
}

void Engine::wait(Lock& lock, std::vector<Target> targets, const char* call) {
  const auto reached = [](const Target& target) { return target.reached(); };
  if (std::all_of(targets.begin(), targets.end(), reached)) return;
  Demand demand{std::move(targets)};
  scheduler_.add(&demand);
  ++blocked_hosts_;
  work_.notify_one();
  Watch watch;
  while (!std::all_of(demand.targets.begin(), demand.targets.end(), reached)) {
    done_.wait_for(lock, std::chrono::seconds(1));
    check_watchdog(watch, call);
  }
  --blocked_hosts_;
  scheduler_.remove(&demand);
}

bool Engine::query(Lock&, Target target) {
  if (target.reached()) return true;
  if (scheduler_.asked_in_vain(target)) work_.notify_one();
  return false;
}

void Engine::observe(const Record& record) {
  knowledge_.learn(record.clock);
}

void Engine::observe(const Stream& stream) {
  if (options().check == CheckMode::kOff) return;
  if (!stream.running) return knowledge_.learn(stream.clock);
  VectorClock finished = stream.clock;
  finished.lower(stream.agent, stream.completed);
  knowledge_.learn(finished);
}

void Engine::observe_context(const Context* context) {
  if (options().check == CheckMode::kOff) return;
  for (const Stream* stream : streams_) {
    if (stream->context == context) observe(*stream);
  }
}

void Engine::observe_device(int device) {
  if (options().check == CheckMode::kOff) return;
  for (const Stream* stream : streams_) {
    if (stream->device == device) observe(*stream);
  }
}

void Engine::join_clock_at(VectorClock* clock, uint32_t agent, uint64_t number) const {
  VectorClock then = streams_[agent]->clock;
  then.lower(agent, number);
  clock->join(then);
}

}  // namespace simgpu
