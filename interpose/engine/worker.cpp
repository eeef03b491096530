// SPDX-License-Identifier: Apache-2.0
// What need not be done by whoever launches: old addresses are unmapped once nobody uses them, and
// show the host copy then. The worker only asks events that hooks have recorded; it never touches a
// stream of the program's.

#include <algorithm>
#include <chrono>

#include "interpose/engine/engine.h"

namespace offload {

void Engine::tend_later(Buffer& buffer, const Piece& piece) {
  piece_jobs_.push_back(
      {&buffer, static_cast<uint32_t>(&piece - buffer.pieces.data()), piece.serial});
  work_.notify_one();
}

// The piece that a note is about, if it is still as the note says.
Piece* Engine::piece_of(const PieceJob& job, PieceState state) const {
  if (job.piece >= job.buffer->pieces.size()) return nullptr;
  Piece& piece = job.buffer->pieces[job.piece];
  return piece.serial == job.serial && piece.state == state ? &piece : nullptr;
}

Engine::Tended Engine::tend_piece(const PieceJob& job, Lock& lock) {
  Piece* piece = piece_of(job, PieceState::kHost);
  if (piece == nullptr) return Tended::kDone;
  if (piece->busy) return Tended::kLater;
  const Address at = address_of(*job.buffer, *piece);
  const uint64_t bytes = bytes_of(*piece);
  if (piece->shown != nullptr) {
    if (holds(Clause::kWorkerWaitsLeave) && !streams_.passed(piece->leave, false))
      return Tended::kLater;
    piece->busy = holds(Clause::kBusyIsWaitedFor);
    const Status status = without_mutex(lock, [&] { return timed_unmap(at, bytes); });
    piece->busy = false;
    if (status != Status::kOk) return Tended::kLater;
    --piece->shown->shown_elsewhere;
    piece->shown = nullptr;
  }
  Slot* slot = piece->slot;
  if (config_.evicted != EvictedShows::kHostCopy || slot->mapped) return Tended::kDone;
  if (holds(Clause::kSlotShownAfterCopied) && !streams_.passed(piece->copied, false)) {
    return Tended::kLater;
  }
  piece->busy = holds(Clause::kBusyIsWaitedFor);
  slot->mapped = without_mutex(
      lock, [&] { return timed_map(at, bytes, slot->handle, Place::kHost) == Status::kOk; });
  piece->busy = false;
  return Tended::kDone;
}

Engine::Tended Engine::tend_address(AddressJob& job, Lock& lock) {
  if (holds(Clause::kAddressWaitsFence) && !streams_.passed(job.fence, false))
    return Tended::kLater;
  // What the driver would not unmap is tried again later.
  const size_t left = without_mutex(lock, [&] {
    size_t refused = 0;
    for (AddressJob::Shown& shown : job.shown) {
      shown.gone = timed_unmap(shown.at, shown.bytes) == Status::kOk;
      refused += shown.gone ? 0 : 1;
    }
    return refused;
  });
  for (const AddressJob::Shown& shown : job.shown) {
    if (!shown.gone) continue;
    if (shown.extent != nullptr) --shown.extent->shown_elsewhere;
    if (shown.slot != nullptr) slots_.put(shown.slot, Fence(shown.slot->fence));
  }
  std::erase_if(job.shown, [](const AddressJob::Shown& shown) { return shown.gone; });
  if (left != 0) return Tended::kLater;
  if (holds(Clause::kAddressWaitsUnmap)) window_.give_back(job.address, job.granules);
  return Tended::kDone;
}

void Engine::forget_job(AddressJob* job) {
  job->~AddressJob();
  own_free(job);
}

bool Engine::worker_step() {
  Lock lock(mutex_);
  transfers_.collect();
  streams_.collect_exposed();
  bool did = false;
  for (size_t left = piece_jobs_.size(); left > 0 && !piece_jobs_.empty(); --left) {
    const PieceJob job = piece_jobs_.front();
    piece_jobs_.pop_front();
    if (tend_piece(job, lock) == Tended::kLater) {
      piece_jobs_.push_back(job);
    } else {
      did = true;
    }
  }
  for (size_t left = address_jobs_.size(); left > 0 && !address_jobs_.empty(); --left) {
    AddressJob* job = address_jobs_.front();
    address_jobs_.pop_front();
    if (tend_address(*job, lock) == Tended::kLater) {
      address_jobs_.push_back(job);
    } else {
      forget_job(job);
      did = true;
    }
  }
  return did;
}

void Engine::wait_for_work() {
  Lock lock(mutex_);
  if (stop_worker_.load(std::memory_order_relaxed)) return;
  // With work at hand, only the GPU's progress is waited for: look again soon.
  constexpr std::chrono::microseconds kSoon{300};
  constexpr std::chrono::milliseconds kLater{50};
  if (piece_jobs_.empty() && address_jobs_.empty()) {
    work_.wait_for(lock, kLater);
  } else {
    work_.wait_for(lock, kSoon);
  }
}

void Engine::stop_worker() {
  stop_worker_.store(true, std::memory_order_relaxed);
  work_.notify_all();
}

void Engine::wait_not_busy(Buffer& buffer, Lock& lock) {
  // Each time all of it: who was at a piece may use it in place when he is done.
  const auto busy = [&] {
    return (buffer.in_place != 0 && holds(Clause::kInPlaceStays)) ||
           std::any_of(buffer.pieces.begin(), buffer.pieces.end(),
                       [](const Piece& piece) { return piece.busy; });
  };
  while (busy()) look_again(lock);
}

void Engine::collect() {
  const Lock lock(mutex_);
  collect_completed();
}

bool Engine::try_collect() {
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  collect_completed();
  return true;
}

void Engine::collect_completed() {
  count_ops();
  transfers_.collect();
  streams_.collect_exposed();
}

}  // namespace offload
