// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/transfers.h"

namespace offload {

Transfers::Transfers(Port& port, Streams& streams, Statistics& statistics)
    : port_(port), streams_(streams), statistics_(statistics) {}

Event Transfers::begin(Lane lane) {
  return streams_.timed_event(streams_.lane(lane));
}

void Transfers::end(Lane lane, Event begin, const Buffer& buffer, uint64_t bytes) {
  Pending pending;
  pending.transfer = {.lane = lane,
                      .buffer = buffer.id,
                      .buffer_bytes = buffer.bytes,
                      .bytes = bytes,
                      .device_ns = 0,
                      .submitted_ns = port_.now_nanoseconds(),
                      .op = streams_.ops()};
  pending.begin = begin;
  pending.end = begin != nullptr ? streams_.timed_event(streams_.lane(lane)) : nullptr;
  pending_[static_cast<int>(lane)].push_back(pending);
}

void Transfers::collect() {
  for (OwnDeque<Pending>& lane : pending_) {
    while (!lane.empty()) {
      Pending& first = lane.front();
      if (first.end != nullptr) {
        if (port_.query(first.end) == Status::kNotReady) break;
        port_.elapsed(first.begin, first.end, &first.transfer.device_ns);
        streams_.recycle_timed(first.end);
      }
      if (first.begin != nullptr) streams_.recycle_timed(first.begin);
      const Transfer& done = first.transfer;
      if (done.lane == Lane::kOut) {
        statistics_.moved_out(done.buffer_bytes, done.bytes, done.device_ns);
      } else {
        statistics_.moved_in(done.buffer_bytes, done.bytes, done.device_ns);
      }
      if (sink_ != nullptr) sink_(done, context_);
      lane.pop_front();
    }
  }
}

bool Transfers::forget_all() {
  bool any = false;
  for (OwnDeque<Pending>& lane : pending_) {
    any = any || !lane.empty();
    lane.clear();
  }
  return any;
}

}  // namespace offload
