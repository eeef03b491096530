// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/model/inspect.h"

#include <pthread.h>

#include <map>
#include <set>

#include "tests/unit/engine/model/failure.h"

namespace offload {

namespace {

using model::Failure;

void expect(bool holds, const char* what) {
  if (!holds) model::fail(Failure::Kind::kInvariant, what);
}

void expect_same(uint64_t a, uint64_t b, const char* what) {
  if (a == b) return;
  model::fail(Failure::Kind::kInvariant,
              std::string(what) + ": " + std::to_string(a) + " and " + std::to_string(b));
}

}  // namespace

bool EngineTest::unlocked(Engine& engine) {
#ifdef OFFLOAD_DROPPABLE_CLAUSES
  if (engine.mutex_.held()) return false;
#endif
  pthread_mutex_t* native = engine.mutex_.native_handle();
  if (pthread_mutex_trylock(native) != 0) return false;
  pthread_mutex_unlock(native);
  return true;
}

uint64_t EngineTest::slab_granules(Engine& engine) {
  uint64_t sum = 0;
  engine.slabs_.for_each([&](const Slab& slab) { sum += slab.granules; });
  return sum;
}

Buffer* EngineTest::buffer_at(Engine& engine, Address address) {
  return engine.window_.buffer_at(address);
}

void EngineTest::relieve_pressure(Engine& engine) {
  Engine::Lock lock(engine.mutex_);
  engine.relieve_pressure(lock);
}

std::string EngineTest::dump_unlocked(Engine& engine) {
  std::string text;
  const auto buffer_line = [&](const Buffer& buffer, const char* kind) {
    text += std::string(kind) + " " + std::to_string(buffer.id) + ":";
    for (const Piece& piece : buffer.pieces) {
      text += " " + std::to_string(piece.granules) + "RLH"[static_cast<size_t>(piece.state)];
      if (piece.shown != piece.extent)
        text += "(shows " + std::to_string(piece.shown->handle) + ")";
    }
    if (engine.pin_registry_.pinned(&buffer)) text += " pinned";
    text += " last op " + std::to_string(buffer.last_op.load()) + "\n";
  };
  for (const Buffer* buffer : engine.live_) buffer_line(*buffer, "buffer");
  engine.parking_.for_each([&](const Buffer& buffer) { buffer_line(buffer, "parked"); });
  for (const Buffer* buffer : engine.freed_held_) buffer_line(*buffer, "held");
  engine.slabs_.for_each([&](const Slab& slab) {
    text += "slab: " + std::to_string(slab.granules) + " granules, " + std::to_string(slab.live) +
            " live blocks\n";
  });
  engine.extents_.find([&](Extent& extent) {
    text += "pool: handle " + std::to_string(extent.handle) + " of " +
            std::to_string(extent.granules) + (engine.finished_with(extent) ? " finished" : "") +
            ", shown elsewhere " + std::to_string(extent.shown_elsewhere) + "\n";
    return false;
  });
  for (StreamIndex i = 0; i < engine.streams_.count(); ++i) {
    const Streams::State& at = engine.streams_.state(i);
    text += "timeline " + std::to_string(i) + (at.live ? "" : " (gone)") + ": submitted " +
            std::to_string(at.position.load()) + ", passed " + std::to_string(at.passed) +
            ", marks";
    for (const Streams::Mark& mark : at.marks) text += " " + std::to_string(mark.position);
    text += "\n";
  }
  text += "mapped " + std::to_string(engine.extents_.mapped_bytes()) + " of " +
          std::to_string(engine.extents_.limit_bytes()) + ", may be created " +
          std::to_string(engine.extents_.uncreated_bytes()) + ", ops " +
          std::to_string(engine.streams_.ops()) + ", pinned " +
          std::to_string(engine.slots_.pinned_bytes()) + ", free slots " +
          std::to_string(engine.slots_.free_bytes()) + "\n";
  return text;
}

std::string EngineTest::states(Engine& engine, Address address) {
  std::string text;
  const Buffer* buffer = buffer_at(engine, address);
  if (buffer == nullptr) return text;
  for (const Piece& piece : buffer->pieces) {
    text += piece.state == PieceState::kResident  ? 'R'
            : piece.state == PieceState::kLeaving ? 'L'
                                                  : 'H';
  }
  return text;
}

void EngineTest::check(Engine& engine, model::Memory& memory) {
  const Engine::Lock lock(engine.mutex_);
  const uint64_t granularity = engine.config_.granularity;
  std::set<const Extent*> owned;
  std::map<const Extent*, uint32_t> shown_elsewhere;
  std::set<const Slot*> slots;
  uint64_t mapped = 0;
  uint64_t leaving = 0;
  uint64_t away = 0;
  uint64_t slot_bytes = 0;
  uint64_t live = 0;

  const auto own = [&](const Extent* extent) {
    expect(extent != nullptr, "a piece on the device without an extent");
    expect(owned.insert(extent).second, "an extent has two owners");
    expect_same(memory.shown_at(extent->home), extent->handle, "an extent's home");
    mapped += engine.extents_.bytes_of(*extent);
  };
  const auto hold = [&](const Slot* slot) {
    expect(slots.insert(slot).second, "a slot has two owners");
    slot_bytes += slot->granules * granularity;
  };

  const auto check_buffer = [&](const Buffer& buffer, BufferState wanted) {
    bool all_resident = true;
    uint64_t offset = 0;
    for (uint32_t i = 0; i < buffer.pieces.size(); ++i) {
      const Piece& piece = buffer.pieces[i];
      const Handle shown = memory.shown_at(buffer.address + piece.offset);
      expect_same(piece.offset, offset, "a piece's offset");
      offset += piece.granules * granularity;
      expect(!piece.busy, "a piece is busy although nobody does anything");
      if (piece.state != PieceState::kHost) {
        own(piece.extent);
        expect(piece.extent->owner == &buffer && piece.extent->piece == i, "an extent's owner");
        expect_same(shown, piece.extent->handle, "what a buffer's address shows");
        expect(piece.granules == piece.extent->granules, "a piece's size");
      } else {
        expect(piece.extent == nullptr, "a piece in host memory with an extent");
        if (piece.shown != nullptr) {
          ++shown_elsewhere[piece.shown];
          expect_same(shown, piece.shown->handle, "what an evicted buffer's address still shows");
        } else if (piece.slot != nullptr && piece.slot->mapped) {
          expect_same(shown, piece.slot->handle, "what an evicted buffer's address shows");
        } else {
          expect_same(shown, 0, "what an evicted buffer's unmapped address shows");
        }
      }
      if (piece.state == PieceState::kLeaving) leaving += piece.granules * granularity;
      if (piece.state != PieceState::kResident) {
        all_resident = false;
        away += piece.granules * granularity;
        if (piece.slot != nullptr) hold(piece.slot);
      } else {
        expect(piece.slot == nullptr, "a resident piece with a slot");
      }
    }
    expect_same(offset, buffer.granules * granularity, "the sum of a buffer's pieces");
    const BufferState state = buffer.state.load();
    if (wanted == BufferState::kParked || wanted == BufferState::kHeld) {
      expect(state == wanted && all_resident, "a parked or held buffer's state");
      expect((buffer.held != 0) == (wanted == BufferState::kHeld), "how many graphs name a buffer");
    } else {
      expect(buffer.held == 0 || all_resident, "a buffer that a graph names is away");
      expect(state == (all_resident ? BufferState::kResident : BufferState::kMoving),
             "a buffer's state");
    }
  };

  for (size_t i = 0; i < engine.live_.size(); ++i) {
    expect_same(engine.live_[i]->live_index, i, "a buffer's place in the list");
    live += engine.live_[i]->bytes;
    check_buffer(*engine.live_[i], BufferState::kResident);
  }
  for (const Buffer* buffer : engine.freed_held_) check_buffer(*buffer, BufferState::kHeld);
  uint64_t parked = 0;
  engine.parking_.for_each([&](const Buffer& buffer) {
    parked += buffer.granules;
    check_buffer(buffer, BufferState::kParked);
  });
  expect_same(parked, engine.parking_.granules(), "parked granules");
  expect_same(parked * granularity, engine.statistics_.parked_bytes.get(), "parked bytes");
  engine.slabs_.for_each([&](const Slab& slab) {
    uint64_t offset = 0;
    for (const Extent* extent : slab.extents) {
      own(extent);
      expect_same(memory.shown_at(slab.address + offset), extent->handle, "what a slab shows");
      offset += engine.extents_.bytes_of(*extent);
    }
    uint32_t live_blocks = 0;
    for (const Block& block : slab.blocks) {
      live_blocks += block.live || block.held != 0 ? 1 : 0;
      if (block.live) live += block.bytes;
    }
    expect_same(live_blocks, slab.live, "a slab's live blocks");
  });
  uint64_t pooled = 0;
  engine.extents_.find([&](const Extent& extent) {
    own(&extent);
    expect(extent.owner == nullptr, "an extent in the pool has an owner");
    pooled += engine.extents_.bytes_of(extent);
    return false;
  });
  for (const Engine::AddressJob* job : engine.address_jobs_) {
    for (const Engine::AddressJob::Shown& shown : job->shown) {
      if (shown.extent != nullptr) ++shown_elsewhere[shown.extent];
      if (shown.slot != nullptr) hold(shown.slot);
      expect_same(memory.shown_at(shown.at),
                  shown.extent != nullptr ? shown.extent->handle : shown.slot->handle,
                  "what an abandoned address shows");
    }
  }
  for (const Extent* extent : owned) {
    const auto elsewhere = shown_elsewhere.find(extent);
    expect_same(elsewhere == shown_elsewhere.end() ? 0 : elsewhere->second, extent->shown_elsewhere,
                "how many addresses still show an extent");
    if (elsewhere != shown_elsewhere.end()) shown_elsewhere.erase(elsewhere);
  }
  if (!shown_elsewhere.empty()) std::printf("%s", dump_unlocked(engine).c_str());
  expect(shown_elsewhere.empty(), "an address shows an extent that is no more");
  expect_same(pooled, engine.extents_.pool_bytes(), "pooled bytes");
  expect_same(mapped, engine.extents_.mapped_bytes(), "mapped bytes");
  expect_same(mapped, engine.statistics_.mapped_bytes.get(), "mapped bytes, as counted");
  expect_same(mapped, memory.device_used(), "mapped bytes and what the device holds");
  expect(mapped <= engine.extents_.limit_bytes(), "more is mapped than the limit");
  expect_same(leaving, engine.leaving_bytes_, "leaving bytes");
  expect_same(away, engine.statistics_.host_bytes.get(), "host bytes");
  expect_same(live, engine.statistics_.live_bytes.get(), "live bytes");
  expect_same(slot_bytes + engine.slots_.free_bytes(), engine.slots_.pinned_bytes(),
              "slots in use and free slots");
}

}  // namespace offload
