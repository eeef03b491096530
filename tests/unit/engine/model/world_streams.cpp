// SPDX-License-Identifier: Apache-2.0
// Streams of the modelled program, and how it orders them among each other.

#include <algorithm>

#include "tests/unit/engine/model/world.h"

namespace offload::model {

int World::add_stream(bool per_thread, uintptr_t context) {
  const int index = static_cast<int>(streams_.size());
  Stream fresh;
  fresh.queue = device.add_queue("stream " + std::to_string(index), false);
  fresh.native = {per_thread ? kPerThreadHandle : static_cast<void*>(fresh.queue),
                  reinterpret_cast<void*>(context)};
  fresh.id = 100 + next_stream_id_[fresh.native.context]++;
  fresh.per_thread = per_thread;
  fresh.thread = thread();
  streams_.push_back(fresh);
  host_saw_.push_back(0);
  for (Stream& each : streams_) each.joined.resize(streams_.size());
  return index;
}

StreamIndex World::index_of(int stream_number) {
  Stream& asked = stream(stream_number);
  if (!remember_streams || asked.index == kNoStream) {
    asked.index = engine->stream(asked.native, asked.id, asked.per_thread);
  }
  return asked.index;
}

void World::destroy_stream(int stream_number) {
  Stream& old = stream(stream_number);
  say("destroy " + std::to_string(stream_number));
  engine->stream_destroyed(old.native.context, old.id);
  old.live = false;
  step();
}

bool World::behind(int stream_number, const Tensor::Access& access) {
  const auto other = static_cast<size_t>(access.stream);
  return access.stream == stream_number || stream(stream_number).joined[other] >= access.sequence ||
         host_saw_[other] >= access.sequence;
}

// Of a stream that captures the program has an event from before.
void World::record_and_wait(int waiter, int stream_number) {
  Stream& earlier = stream(stream_number);
  std::shared_ptr<Mark> mark = earlier.before_capture;
  if (!earlier.queue->captures) {
    mark = std::make_shared<Mark>();
    port.submit(*earlier.queue, {.run = {}, .records = mark, .waits_for = nullptr});
  }
  port.submit(*stream(waiter).queue, {.run = {}, .records = nullptr, .waits_for = mark});
}

void World::join(int waiter, int stream_number) {
  if (waiter == stream_number) return;
  Stream& later = stream(waiter);
  const Stream& earlier = stream(stream_number);
  say("join " + std::to_string(waiter) + " behind " + std::to_string(stream_number));
  record_and_wait(waiter, stream_number);
  for (size_t i = 0; i < streams_.size(); ++i) {
    later.joined[i] = std::max(later.joined[i], earlier.joined[i]);
  }
  uint64_t& known = later.joined[static_cast<size_t>(stream_number)];
  known = std::max(known, earlier.submitted);
  step();
}

// The stream waits for whatever conflicts.
void World::order(int stream_number, const Tensor& touched, bool conflicts_with_reads) {
  if (touched.writer && !behind(stream_number, *touched.writer)) {
    join(stream_number, touched.writer->stream);
  }
  if (!conflicts_with_reads) return;
  const std::map<int, uint64_t> readers = touched.readers;
  for (const auto& [reader, sequence] : readers) {
    if (!behind(stream_number, {reader, sequence})) join(stream_number, reader);
  }
}

void World::synchronize(int stream_number) {
  if (port.director != nullptr) {
    auto mark = std::make_shared<Mark>();
    port.submit(*stream(stream_number).queue, {.run = {}, .records = mark, .waits_for = nullptr});
    port.director->wait(mark);
  } else {
    device.drain(*stream(stream_number).queue);
  }
  host_saw_[static_cast<size_t>(stream_number)] = stream(stream_number).submitted;
  for (size_t i = 0; i < streams_.size(); ++i) {
    host_saw_[i] = std::max(host_saw_[i], stream(stream_number).joined[i]);
  }
  step();
}

}  // namespace offload::model
