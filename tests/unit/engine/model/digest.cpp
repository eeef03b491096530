// SPDX-License-Identifier: Apache-2.0
// The engine's state as a number, for who explores all states: equal numbers mean (but for chance)
// that the engine goes on the same way.

#include <algorithm>

#include "tests/unit/engine/model/inspect.h"

namespace offload {

namespace {

using model::mix;

class Digest {
 public:
  explicit Digest(Streams& streams) : streams_(streams) {}
  template <typename T>
  void add(T value) {
    sum_ = mix(sum_, static_cast<uint64_t>(value));
  }
  // In any order; what has passed is as good as absent.
  void fence(const Fence& fence) {
    uint64_t sum = 0;
    for (const Point& point : fence) {
      if (!streams_.known_passed(point)) sum += mix(point.stream, point.position);
    }
    add(sum);
  }
  uint64_t sum() const { return sum_; }

 private:
  Streams& streams_;
  uint64_t sum_ = 0;
};

void add_extent(Digest& digest, const Extent* extent) {
  digest.add(extent != nullptr ? extent->handle : 0);
}

void add_slot(Digest& digest, const Slot* slot) {
  digest.add(slot != nullptr ? slot->home : 0);
  if (slot == nullptr) return;
  digest.add(slot->granules * 2 + (slot->mapped ? 1 : 0));
  digest.fence(slot->fence);
}

void add_own_extent(Digest& digest, const Extent* extent) {
  digest.add(extent->handle);
  digest.add(extent->shown_elsewhere);
  digest.fence(extent->fence);
  digest.fence(extent->read_by);
}

void add_buffer(Digest& digest, const Buffer& buffer) {
  digest.add(buffer.id);
  digest.add(buffer.address);
  digest.add(buffer.bytes);
  digest.add(buffer.kept * 16 + buffer.in_place);
  digest.add(buffer.held);
  digest.add(buffer.birth_op);
  digest.fence(buffer.fill);
  digest.fence(buffer.parked);
  for (const Piece& piece : buffer.pieces) {
    digest.add(static_cast<uint64_t>(piece.state) * 4 + (piece.busy ? 2 : 0) +
               (piece.used_in_place ? 1 : 0));
    digest.add(piece.granules);
    if (piece.extent != nullptr) add_own_extent(digest, piece.extent);
    add_extent(digest, piece.shown);
    add_slot(digest, piece.slot);
    digest.fence(piece.leave);
    digest.fence(piece.copied);
    digest.add(piece.checksum);
  }
}

}  // namespace

uint64_t EngineTest::digest(Engine& engine, model::ModelPort& port) {
  Streams& streams = engine.streams_;
  Digest digest(streams);
  digest.add(engine.live_.size());
  for (const Buffer* buffer : engine.live_) add_buffer(digest, *buffer);
  for (const Buffer* buffer : engine.freed_held_) add_buffer(digest, *buffer);
  engine.parking_.for_each([&](const Buffer& buffer) { add_buffer(digest, buffer); });
  engine.slabs_.for_each([&](const Slab& slab) {
    digest.add(slab.address);
    digest.add(slab.first_free);
    for (const Block& block : slab.blocks) {
      digest.add(block.next_free * 2 + (block.live ? 1 : 0));
      digest.add(block.held);
      digest.fence(block.fence);
    }
    for (const Extent* extent : slab.extents) add_own_extent(digest, extent);
  });
  engine.extents_.find([&](const Extent& extent) {
    add_own_extent(digest, &extent);
    return false;
  });
  digest.add(engine.extents_.uncreated_bytes());
  digest.add(engine.extents_.limit_bytes());
  for (const auto& list : engine.slots_.free_) {
    digest.add(list.size());
    for (const Slot* slot : list) add_slot(digest, slot);
  }
  digest.add(engine.slots_.pinned_ * 8 + (engine.pinning_ ? 4 : 0) +
             (engine.slots_.in_vain_ ? 2 : 0) + (engine.slots_.host_full_ ? 1 : 0));
  digest.add(engine.slots_.refused_growths_);
  const auto add_job = [&](const Engine::PieceJob& job, PieceState state) {
    const Piece* piece = engine.piece_of(job, state);
    if (piece == nullptr) return;
    digest.add(job.buffer->id);
    digest.add(job.piece);
  };
  for (const auto& job : engine.leaving_) add_job(job, PieceState::kLeaving);
  digest.add(engine.piece_jobs_.size());
  for (const auto& job : engine.piece_jobs_) add_job(job, PieceState::kHost);
  for (const Engine::AddressJob* job : engine.address_jobs_) {
    digest.add(job->address);
    digest.fence(job->fence);
    for (const auto& shown : job->shown) {
      digest.add(shown.at * 2 + (shown.gone ? 1 : 0));
      add_slot(digest, shown.slot);
    }
  }
  digest.fence(engine.given_out_);
  digest.add(engine.gathered_);
  digest.add(engine.sought_);
  digest.add(engine.slabs_to_come_);
  digest.add(reinterpret_cast<uintptr_t>(engine.first_));
  digest.add(engine.line_next_);
  digest.add(engine.line_serving_);
  digest.add(engine.waiting_.load());
  digest.add(engine.quiet_until_op_ > streams.ops() ? engine.quiet_until_op_ : 0);
  digest.add((engine.retired() ? 1 : 0) + (engine.pressure_.load() ? 2 : 0));
  for (const auto& [event, context] : streams.earlier_) digest.add(port.last_record(event)->number);
  for (StreamIndex i = 0; i < streams.count(); ++i) {
    const Streams::State& at = streams.state(i);
    digest.add(at.opening);
    digest.add(at.passed);
    digest.add(at.passed_op);
    digest.add((at.live ? 1 : 0) + (at.external_pending ? 2 : 0) + (at.external_recorded ? 4 : 0));
    if (at.external_recorded) {
      const auto record = port.last_record(at.external);
      digest.add(record->number * 2 + (record->done ? 1 : 0));
    }
    digest.add(at.frozen ? 1 : 0);
    digest.fence(at.owed);
    for (const Streams::Mark& mark : at.marks) {
      const auto record = port.last_record(mark.event);
      digest.add(mark.position);
      digest.add(mark.op);
      digest.add(record->number * 2 + (record->done ? 1 : 0));
    }
    for (StreamIndex other = 0; other < streams.count(); ++other) {
      const uint64_t known = at.knows(other);
      digest.add(known > streams.state(other).passed ? known : 0);
    }
  }
  return digest.sum();
}

uint64_t EngineTest::shared_digest(Engine& engine) {
  Streams& streams = engine.streams_;
  Digest digest(streams);
  const auto add = [&](const Buffer& buffer) {
    digest.add(buffer.id);
    digest.add(buffer.state.load());
    digest.add(buffer.waited.load());
    uint64_t uses = 0;
    for (const auto& use : buffer.use) uses += mix(1, use.load());
    digest.add(uses);
    digest.add(buffer.last_op.load());
    digest.add(buffer.use_overflow.load() ? 1 : 0);
  };
  for (const Buffer* buffer : engine.live_) add(*buffer);
  for (const Buffer* buffer : engine.freed_held_) add(*buffer);
  engine.parking_.for_each(add);
  for (StreamIndex i = 0; i < streams.count(); ++i) {
    digest.add(streams.position(i));
    digest.add(streams.last_op(i));
  }
  digest.add(streams.ops());
  for (const ThreadPins* pins = engine.pin_registry_.first_.load(); pins != nullptr;
       pins = pins->next) {
    digest.add(pins->collected * 64 + pins->count.load());
    digest.add(pins->overflow.load() ? 1 : 0);
    digest.add((pins->in_place ? 1 : 0) + (pins->went_first ? 2 : 0) +
               (engine.first_ == pins ? 4 : 0));
    digest.add(pins->done.load());
    for (uint32_t i = 0; i < pins->collected; ++i) {
      digest.add(pins->at(i)->id);
      digest.add(pins->at(i)->address);
    }
  }
  return digest.sum();
}

}  // namespace offload
