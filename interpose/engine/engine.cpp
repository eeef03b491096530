// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/engine.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

namespace {

// Address space costs nothing; the window must never be what runs out. Two pages beside each
// buffer, freed addresses that wait for their fence, and ranges that do not fit together all come
// out of it.
uint64_t default_window_bytes(const EngineConfig& config) {
  const uint64_t working =
      std::max(config.limit_bytes, config.device_bytes) + config.host_limit_bytes;
  const uint64_t least = 4096 * config.granularity;
  return std::bit_ceil(std::max(8 * working, least));
}

}  // namespace

Engine::Engine(Port& port, const EngineConfig& config, Policy& policy, Statistics& statistics)
    : port_(port),
      config_(config),
      policy_(policy),
      statistics_(statistics),
      streams_(port, statistics, config.queue_depth),
      transfers_(port, streams_, statistics),
      extents_(port, statistics),
      slots_(port, streams_, statistics) {}

Status Engine::initialise() {
  if (!std::has_single_bit(config_.granularity)) return Status::kError;
  const uint64_t bytes =
      config_.window_bytes != 0 ? config_.window_bytes : default_window_bytes(config_);
  Status status = window_.reserve(port_, bytes, config_.granularity);
  if (status != Status::kOk) return status;
  status = extents_.initialise(config_.granularity, config_.limit_bytes,
                               std::max(config_.limit_bytes, config_.device_bytes),
                               config_.largest_extent_granules);
  if (status != Status::kOk) return status;
  slots_.share_with(config_.host_share);
  return slots_.initialise(config_.granularity, config_.host_limit_bytes,
                           config_.largest_extent_granules, config_.slot_chunk_bytes,
                           config_.evicted == EvictedShows::kHostCopy);
}

StreamIndex Engine::stream(const NativeStream& native, uint64_t id, bool per_thread) {
  Lock lock(mutex_);
  bool is_new = false;
  const StreamIndex index = streams_.find(native, id, per_thread, &is_new);
  if (index == kNoStream) return kNoStream;
  if (is_new) {
    if (index < 64) {
      // The index may have been another stream's: what that one had waited for, this one has not.
      for (Buffer* buffer : live_) {
        if (!buffer->fill.empty())
          buffer->waited.fetch_and(~(uint64_t{1} << index), std::memory_order_relaxed);
      }
    }
    // It may use such a block at once.
    streams_.passed(given_out_);
    if (holds(Clause::kNewStreamWaits)) streams_.wait(index, given_out_);
  }
  return index;
}

StreamIndex Engine::known_stream(const NativeStream& native, uint64_t id) {
  const Lock lock(mutex_);
  return streams_.known(native, id);
}

void Engine::stream_destroyed(void* context, uint64_t id) {
  const Lock lock(mutex_);
  streams_.destroyed(context, id);
}

void Engine::external_wait_begin(StreamIndex stream) {
  Lock lock(mutex_);
  while (pinning_ && pins_behind_work()) look_again(lock);
  streams_.external_wait_begin(stream);
}

void Engine::external_wait_end(StreamIndex stream) {
  const Lock lock(mutex_);
  streams_.external_wait_end(stream);
}

OwnVector<Engine::Waiting> Engine::external_waits(bool* opening) {
  const Lock lock(mutex_);
  OwnVector<Waiting> waiting;
  *opening = streams_.external_wait_opening();
  if (!streams_.external_wait_pending()) return waiting;
  for (StreamIndex each = 2; each < streams_.count(); ++each) {
    if (const Event event = streams_.external_event(each); event != nullptr)
      waiting.push_back({event, streams_.native(each).context});
  }
  return waiting;
}

void Engine::external_wait_before(const Waiting& waiting) {
  const Lock lock(mutex_);
  streams_.external_wait_before(waiting.event, waiting.context);
}

bool Engine::describe(Address address, AllocationInfo* out) {
  if (!owns(address)) return false;
  const Lock lock(mutex_);
  if (Slab* slab = window_.slab_at(address); slab != nullptr) {
    const BlockAt at = Slabs::find(*slab, address);
    if (at.index >= slab->blocks.size() || !at.block().live) return false;
    *out = {at.address(), at.block().bytes, at.block().id, at.block().stream_ordered};
    return address < out->base + out->bytes;
  }
  const Buffer* buffer = window_.buffer_at(address);
  if (buffer == nullptr) return false;
  const BufferState state = buffer->state.load(std::memory_order_relaxed);
  if (state != BufferState::kResident && state != BufferState::kMoving) return false;
  *out = {buffer->address, buffer->bytes, buffer->id, buffer->stream_ordered};
  return address < out->base + out->bytes;
}

// The host waits until the buffer's content is where its address shows it. What stands behind an
// external flag is not waited for; that is a former owner's work at most, never our copies.
void Engine::wait_for_content(const Buffer& buffer, Lock& lock) {
  Fence fill = buffer.fill;
  if (streams_.external_wait_pending()) {
    fill.remove_if([](const Point& point) { return !Streams::is_lane(point.stream); });
  }
  wait_on_host(std::move(fill), HostWait::content, lock);
}

Status Engine::keep(Address address, ThreadPins& pins) {
  Lock lock(mutex_);
  Buffer* buffer = window_.buffer_at(address);
  if (buffer == nullptr) return owns(address) ? Status::kOk : Status::kNotOurs;
  ++buffer->kept;
  const Request request(*this, &pins);
  for (;;) {
    const Status status = restore(*buffer, &pins, lock);
    if (status == Status::kNotReady) continue;
    // Whoever gets the address may use it without another word, so the content must be there now.
    if (status == Status::kOk) wait_for_content(*buffer, lock);
    return status;
  }
}

void Engine::retire(const char* reason, ThreadPins& pins, bool say) {
  Lock lock(mutex_);
  if (retired()) return;
  retired_.store(true, std::memory_order_release);
  extents_.lift_limit();  // a smaller limit than the card's must not keep buffers away from home
  const Request request(*this, &pins);
  uint64_t away_bytes = 0;
  // Once more whenever the mutex was let go: others may have freed buffers meanwhile, and the last
  // of the list has taken their place. Unless that is no use: each attempt to create memory lets
  // go.
  uint64_t away_before = 0;
  for (bool again = true; again; again = again && (away_bytes == 0 || away_bytes != away_before)) {
    again = false;
    away_before = away_bytes;
    away_bytes = 0;
    for (size_t i = 0; i < live_.size();) {
      const uint64_t let_go = let_go_;
      Buffer& buffer = *live_[i];
      const Status status = restore(buffer, &pins, lock);
      if (status == Status::kOk) wait_for_content(buffer, lock);
      again = again || status == Status::kNotReady || (status == Status::kOk && let_go_ != let_go);
      if (status == Status::kNotReady) continue;
      if (status != Status::kOk) away_bytes += buffer.bytes;
      ++i;
    }
  }
  if (port_.lost()) return;
  if (away_bytes == 0) {
    if (!say) return;
    log_warn("%s: from here on nothing is moved; what had been moved is back on the GPU", reason);
    return;
  }
  // They come home when an op names them, by sending others away.
  retired_.store(false, std::memory_order_release);
  const ShortText away = format_size(away_bytes);
  log_error(
      "%s: %s do not fit back into GPU memory and stay in host memory until an operation names "
      "them; what "
      "cannot be seen through this may read them there",
      reason, away.c_str());
}

void Engine::memory_info(uint64_t* free_bytes, uint64_t* total_bytes) {
  const Lock lock(mutex_);
  const uint64_t mapped = extents_.mapped_bytes();
  const uint64_t uncreated = config_.limit_bytes > mapped ? config_.limit_bytes - mapped : 0;
  const uint64_t mappable = std::min(uncreated, extents_.uncreated_bytes()) +
                            extents_.pool_bytes() +
                            (parking_.granules() + slabs_.empty_granules()) * config_.granularity;
  // What left the device still counts as the program's, which must never hold more than there is in
  // all: what is free comes beside what lives, and only when more lives than the device has does
  // the whole grow.
  const uint64_t live = live_bytes();
  *free_bytes = std::min(mappable, config_.limit_bytes > live ? config_.limit_bytes - live : 0);
  *total_bytes = std::max(config_.limit_bytes, live);
}

uint64_t Engine::live_bytes() const {
  return statistics_.live_bytes.get();
}

uint64_t Engine::mapped_bytes() const {
  return statistics_.mapped_bytes.get();
}

void Engine::trim(uint64_t keep_bytes) {
  Lock lock(mutex_);
  const auto wanted = [&] {
    const uint64_t mapped = extents_.mapped_bytes();
    return mapped > keep_bytes ? mapped - keep_bytes : 0;
  };
  while (extents_.pool_bytes() < wanted() && (reclaim_parked(nullptr) || reclaim_empty_slab())) {
  }
  // The events were recorded just now: a GPU that is idle needs a moment to pass them.
  constexpr int kLooks = 8;
  for (int look = 0; wanted() != 0 && extents_.pool_bytes() != 0;) {
    // What stands behind an external flag is not waited for.
    const bool may_wait = !streams_.external_wait_pending();
    Extent* extent = extents_.find([&](Extent& candidate) {
      return (may_wait || candidate.shown_elsewhere == 0) && finished_with(candidate);
    });
    if (extent == nullptr) {
      if (++look > kLooks) break;
      look_again(lock);
      continue;
    }
    extents_.take(extent);
    if (!unshow(extent, lock)) {
      put_back(extent, extent->fence);
      break;
    }
    if (!destroy(extent, lock)) break;
  }
}

}  // namespace offload
