// SPDX-License-Identifier: Apache-2.0
#pragma once
// A look into the engine's own state, and whether its books add up. The engine names this class a
// friend.

#include <string>

#include "interpose/engine/engine.h"
#include "tests/unit/engine/model/memory.h"
#include "tests/unit/engine/model/port.h"

namespace offload {

class EngineTest {
 public:
  // Every extent has one owner, the sums by owner are what is mapped, slots in use are the host
  // bytes, and every address shows what the engine believes. Between calls of the engine only.
  // Throws model::Failure.
  static void check(Engine& engine, model::Memory& memory);
  // Whether the engine's mutex is free.
  static bool unlocked(Engine& engine);
  static Buffer* buffer_at(Engine& engine, Address address);
  static void relieve_pressure(Engine& engine);
  static const Extents& extents(const Engine& engine) { return engine.extents_; }
  static const Slots& slots(const Engine& engine) { return engine.slots_; }
  static Streams& streams(Engine& engine) { return engine.streams_; }
  static uint64_t slab_granules(Engine& engine);
  static size_t jobs(const Engine& engine) {
    return engine.piece_jobs_.size() + engine.address_jobs_.size();
  }
  // A number for all that decides what the engine does next, as far as it is under the mutex; and
  // for what threads read and write without it. Statistics, names of events and points that have
  // passed do not count.
  static uint64_t digest(Engine& engine, model::ModelPort& port);
  static uint64_t shared_digest(Engine& engine);
  static bool holds_mutex(Engine& engine) { return !unlocked(engine); }
  // Who holds what, for a failure's reader.
  static std::string dump(Engine& engine) { return dump_unlocked(engine); }
  static std::string dump_unlocked(Engine& engine);
  // "RRLH": resident, leaving, host, by piece.
  static std::string states(Engine& engine, Address address);
};

}  // namespace offload
