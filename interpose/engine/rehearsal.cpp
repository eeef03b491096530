// SPDX-License-Identifier: Apache-2.0
// OFFLOAD_MODE=observe: what would leave, and come back, if the program had `rehearsed_limit_bytes`
// of device memory. Decided by the same policy at the same places; counted, said, not done. A
// buffer that would be away is marked kMoving, so that the next op that names it comes by here.

#include "interpose/engine/engine.h"
#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

bool Engine::rehearsing() const {
  return config_.rehearsed_limit_bytes != 0 && !retired();
}

void Engine::rehearse_leave(Buffer& buffer) {
  const uint64_t bytes = buffer.granules * config_.granularity;
  buffer.rehearsed_away = true;
  buffer.state.store(BufferState::kMoving, std::memory_order_seq_cst);
  rehearsed_away_ += bytes;
  statistics_.rehearsed_bytes_out.add(bytes);
  statistics_.rehearsed_copies_out.add();
  statistics_.rehearsed_host_bytes.add(bytes);
  if (!log_enabled(LogLevel::kDebug)) return;
  log_debug("operation %llu: buffer %llu, %s, would leave, idle for %llu operations",
            static_cast<unsigned long long>(streams_.ops()),
            static_cast<unsigned long long>(buffer.id), format_size(buffer.bytes).c_str(),
            static_cast<unsigned long long>(
                streams_.ops() -
                std::max(buffer.birth_op, buffer.last_op.load(std::memory_order_relaxed))));
}

// It is used, or freed: then nothing would be copied.
void Engine::rehearse_return(Buffer& buffer, bool used) {
  const uint64_t bytes = buffer.granules * config_.granularity;
  buffer.rehearsed_away = false;
  rehearsed_away_ -= bytes;
  statistics_.rehearsed_host_bytes.subtract(bytes);
  if (!used) return;
  statistics_.rehearsed_bytes_in.add(bytes);
  statistics_.rehearsed_copies_in.add();
  if (!log_enabled(LogLevel::kDebug)) return;
  log_debug("operation %llu: buffer %llu, %s, would come back",
            static_cast<unsigned long long>(streams_.ops()),
            static_cast<unsigned long long>(buffer.id), format_size(buffer.bytes).c_str());
}

uint64_t Engine::rehearse_leaving(uint64_t bytes, bool waive_grace) {
  uint64_t leaving = 0;
  const size_t chosen = choose_victims(waive_grace);
  for (size_t i = 0; i < chosen && leaving < bytes; ++i) {
    Buffer& buffer = *live_[order_[i]];
    const uint64_t size = buffer.granules * config_.granularity;
    if (rehearsed_away_ + size > config_.rehearsed_host_limit_bytes) continue;
    rehearse_leave(buffer);
    leaving += size;
  }
  return leaving;
}

// After memory was given out, or would have come back.
void Engine::rehearse_room() {
  const uint64_t limit = config_.rehearsed_limit_bytes;
  const auto held = [&] { return owned_bytes() - rehearsed_away_; };
  if (policy_.moves()) {
    const uint64_t wanted = policy_.bytes_to_free({.total_bytes = limit, .mapped_bytes = held()});
    if (wanted != 0 && streams_.ops() >= quiet_until_op_ && rehearse_leaving(wanted, false) == 0)
      quiet_until_op_ = streams_.ops() + config_.grace_ops / 4 + 1;
    if (held() > limit) rehearse_leaving(held() - limit, false);
    if (held() > limit) rehearse_leaving(held() - limit, true);
  }
  const uint64_t now = held();
  const uint64_t before = statistics_.rehearsed_device_bytes.get();
  if (now > before) statistics_.rehearsed_device_bytes.add(now - before);
  if (now < before) statistics_.rehearsed_device_bytes.subtract(before - now);
  if (now > limit) statistics_.rehearsed_shortages.add();
}

}  // namespace offload
