// SPDX-License-Identifier: Apache-2.0
// Waiting for other threads: those who find no room wait in one line for what others pin, and who
// has waited there often goes before everybody else.

#include <algorithm>
#include <chrono>

#include "interpose/engine/engine.h"

namespace offload {

namespace {
#ifdef OFFLOAD_DROPPABLE_CLAUSES
constexpr uint32_t kTurns = 8;
constexpr uint32_t kFairTurns = 2;
#else
constexpr uint32_t kTurns = 64;      // waits for other threads, for one request
constexpr uint32_t kFairTurns = 16;  // after so many of them it goes first
#endif
}  // namespace

Engine::Request::Request(Engine& engine, ThreadPins* pins) : engine_(engine), pins_(pins) {
  if (pins == nullptr) return;
  pins->looks = pins->turns = 0;
  pins->went_first = false;
}

Engine::Request::~Request() {
  if (pins_ != nullptr && engine_.first_ == pins_) engine_.end_going_first();
}

// A pin may go, and the GPU get on, without a notice: so the waits are short.
void Engine::look_again(Lock& lock) {
  ++let_go_;
  if (!port_.host_waits(lock)) changed_.wait_for(lock, std::chrono::milliseconds{1});
}

// False: the request has waited for others often enough.
bool Engine::another_turn(ThreadPins& pins) {
  if (++pins.turns > kTurns) return false;
  if (pins.turns > kFairTurns && first_ == nullptr && !pins.went_first &&
      !streams_.external_wait_pending() && holds(Clause::kOthersStandAside)) {
    first_ = &pins;
    pins.went_first = true;
  }
  return true;
}

// Others may free what they pin. Pins are dropped meanwhile (two threads that each wait for what
// the other holds would wait for ever), and those who wait are served in turn. False: nobody pins
// anything, so nothing will become free; or it has been waited for often enough.
bool Engine::wait_in_line(ThreadPins* pins, Lock& lock) {
  edge(Edge::kScan);
  if (!pin_registry_.any_pins(pins)) return false;
  if (pins != nullptr && !another_turn(*pins)) return false;
  if (pins != nullptr && holds(Clause::kPinsDroppedToWait)) pins->withdraw();
  const uint64_t ticket = line_next_++;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  while (line_serving_ != ticket && holds(Clause::kLineInTurn)) look_again(lock);
  if (pins != nullptr && first_ == pins) claim_all();
  const OwnVector<PinRegistry::Held> held = pin_registry_.held(pins);
  // A call that pins may stand in the driver behind what waits for the host.
  bool in_vain = false;
  uint32_t looks = pins != nullptr ? pins->looks : 0;
  for (; !in_vain && !PinRegistry::dropped(held); ++looks) {
    in_vain = looks >= config_.patience_ms && streams_.external_wait_pending();
    if (!in_vain) look_again(lock);
  }
  if (pins != nullptr) pins->looks = looks;
  if (pins != nullptr && in_vain) pins->turns = kTurns;
  ++line_serving_;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  changed_.notify_all();
  if (pins != nullptr) pins->publish();
  return !in_vain;
}

// Whatever may leave is claimed, in use or not: an op in progress ends, and the next one that names
// it needs the mutex, and stands aside. An op that is begun without the mutex has read the states
// before this, so its pins are among those which are waited for next.
void Engine::claim_all() {
  if (!holds(Clause::kFirstClaimsAll)) return;
  for (Buffer* buffer : live_) {
    if (!evictable(*buffer, true)) continue;
    edge(Edge::kClaim);
    buffer->state.store(BufferState::kMoving, std::memory_order_seq_cst);
  }
}

bool Engine::others_go_first(const ThreadPins* pins) const {
  return first_ != nullptr && first_ != pins;
}

// While a thread that has waited often goes first, others leave it what it needs. Not for ever:
// what it waits for may wait for them, in ways that cannot be seen here. Whoever calls holds
// nothing, and starts over.
void Engine::stand_aside(ThreadPins* pins, Lock& lock) {
  if (!others_go_first(pins)) return;
  if (pins != nullptr) pins->withdraw();
  const ThreadPins* const first = first_;
  for (uint32_t looks = 0; first_ == first && !streams_.external_wait_pending(); ++looks) {
    if (looks == config_.patience_ms) {
      end_going_first();
      break;
    }
    look_again(lock);
  }
  if (pins != nullptr) pins->publish();
}

void Engine::end_going_first() {
  first_ = nullptr;
  for (Buffer* buffer : live_) {
    if (buffer->state.load(std::memory_order_relaxed) == BufferState::kMoving &&
        std::all_of(buffer->pieces.begin(), buffer->pieces.end(),
                    [](const Piece& piece) { return piece.state == PieceState::kResident; })) {
      buffer->state.store(BufferState::kResident, std::memory_order_release);
    }
  }
  changed_.notify_all();
}

}  // namespace offload
