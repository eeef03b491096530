// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/sessions.h"

#include <algorithm>
#include <ctime>
#include <iterator>

#include "interpose/driver/errors.h"
#include "interpose/driver/table.h"
#include "interpose/engine/edges.h"
#include "interpose/graphs/captures.h"
#include "interpose/life/early_waits.h"
#include "interpose/life/exit.h"
#include "interpose/life/fail_closed.h"
#include "interpose/life/make_session.h"
#include "interpose/life/not_cancelled.h"
#include "interpose/life/start.h"
#include "interpose/rules.h"
#include "profiler/base/log.h"

namespace offload {

constinit std::atomic<Session*> first_session{nullptr};
constinit std::atomic<uint32_t> operations_look_{0};

namespace {

constexpr uint32_t kAllocationsBetweenChecks = 64;
constexpr int kLooksForForwarding = 100;  // a millisecond each

constinit std::atomic<Session*> newest{nullptr};
constinit std::atomic<bool> seen{false};
constinit std::atomic<bool> forwarding{false};  // for ever
constinit std::atomic<bool> gave_up{false};
constinit std::atomic<void*> refused_contexts[kMostDevices]{};  // that cannot be managed
constinit PlainMutex making;   // only ever one session at a time is made; held across driver calls:
                               // who allocates first meanwhile waits for it, and holds nothing
constinit PlainMutex linking;  // who changes the list; held across nothing

bool is_refused(const void* context) {
  return std::any_of(std::begin(refused_contexts), std::end(refused_contexts),
                     [context](const std::atomic<void*>& refused) {
                       return refused.load(std::memory_order_relaxed) == context;
                     });
}

// With the mutex of those who make sessions. The oldest is forgotten, and will be looked at again.
void refuse(void* context) {
  static constinit size_t next = 0;
  refused_contexts[next++ % std::size(refused_contexts)].store(context, std::memory_order_relaxed);
}

void forward_after_sticky_error() {
  if (lost_to() != CUDA_ERROR_DEINITIALIZED) {
    statistics().set_reason(Reason::context_error);
    statistics().passed_through(PassThrough::context_error);
  }
  forward_from_now_on();
}

// With the mutex of those who change the list.
void several_are_at_work() {
  static constinit bool known = false;
  const Session* first = first_session.load(std::memory_order_relaxed);
  const bool several = first != nullptr && next_of(*first) != nullptr;
  if (several != known) operations_look_.fetch_add(several ? 1 : ~0u, std::memory_order_relaxed);
  known = several;
}

// Who comes later stands behind, so that the first stays the first.
void link(Session& made) {
  const std::lock_guard lock(linking);
  std::atomic<Session*>* end = &first_session;
  while (Session* each = end->load(std::memory_order_relaxed)) end = &each->next;
  end->store(&made, std::memory_order_release);
  several_are_at_work();
}

// False: somebody else has done it.
bool unlink(const Session& gone) {
  const std::lock_guard lock(linking);
  std::atomic<Session*>* at = &first_session;
  while (Session* each = at->load(std::memory_order_relaxed)) {
    if (each == &gone) {
      at->store(next_of(gone), std::memory_order_release);
      several_are_at_work();
      return true;
    }
    at = &each->next;
  }
  return false;
}

// `waits(&opening)` is what is pending. It is asked again while one is being forwarded: its end is
// told to the sessions that its beginning was told to.
template <typename Waits>
void tell(Session& made, Waits&& waits) {
  constexpr timespec kPause{0, 1'000'000};
  OwnVector<Engine::Waiting> pending;
  bool opening = true;
  for (int looks = 0; opening && looks < kLooksForForwarding; ++looks) {
    pending = waits(&opening);
    if (opening) nanosleep(&kPause, nullptr);
  }
  for (const Engine::Waiting& waiting : pending) made.engine.external_wait_before(waiting);
}

// What waits for the host on a stream that another engine follows, or none: streams of this device
// may stand behind it.
void tell_of_waits(Session& made) {
  const RelaxedCapture relaxed;
  for_each_session([&made](Session& each) {
    if (&each == &made) return;
    this_thread.inside = true;
    tell(made, [&each](bool* opening) { return each.engine.external_waits(opening); });
    this_thread.inside = false;
  });
  tell(made, &early_waits);
}

Session* make_in_current(CUcontext context) {
  const NotCancelled not_cancelled;
  find_all_real();
  const std::lock_guard lock(making);
  if (Session* made = session_in(context); made != nullptr) return made;
  if (forwarding.load(std::memory_order_relaxed)) return nullptr;
  Session* made = nullptr;
  {
    const RelaxedCapture relaxed;
    this_thread.inside = true;
    made = make_session();
    this_thread.inside = false;
  }
  if (made == nullptr) {
    refuse(context);
    return nullptr;
  }
  made->earlier = newest.load(std::memory_order_relaxed);
  newest.store(made, std::memory_order_release);
  set_sticky_listener(&forward_after_sticky_error);
  end_session_at_exit();
  if (forwarding.load(std::memory_order_relaxed)) return nullptr;
  link(*made);
  tell_of_waits(*made);
  catch_up();
  return made;
}

}  // namespace

Session* last_session() {
  return newest.load(std::memory_order_acquire);
}

bool allocations_seen() {
  return seen.load(std::memory_order_relaxed);
}

void note_allocation() {
  if (!seen.load(std::memory_order_relaxed)) seen.store(true, std::memory_order_relaxed);
}

NativeMemory* native_memory() {
  Session* first = session();
  if (first == nullptr || !first->native) return nullptr;
  Session* here = session_in(current_context());
  return here != nullptr ? &here->native_memory : nullptr;
}

NativeMemory* native_memory_on(CUdevice device) {
  Session* there = session_on(device);
  return there != nullptr && there->native ? &there->native_memory : nullptr;
}

Session* session_for_allocation() {
  note_allocation();
  if (this_thread.inside || forwarding.load(std::memory_order_relaxed)) return nullptr;
  if (++this_thread.allocations % kAllocationsBetweenChecks == 1) check_current_context();
  CUcontext context = current_context();
  if (context == nullptr) return nullptr;
  if (Session* known = session_in(context); known != nullptr) return known;
  if (is_refused(context) || !driver_in_use()) return nullptr;
  return make_in_current(context);
}

Session* session_for_allocation_in(CUcontext context) {
  if (Session* known = session_in(context); known != nullptr) return known;
  if (this_thread.inside || forwarding.load(std::memory_order_relaxed) || is_refused(context) ||
      !driver_in_use())
    return nullptr;
  {
    const OwnCall call(context);
    this_thread.inside = false;
    make_in_current(context);
    this_thread.inside = true;
  }
  return session_in(context);
}

CUresult answer_to_free(CUresult by_driver, CUdeviceptr address) {
  if (by_driver != CUDA_ERROR_INVALID_VALUE || !forwarding.load(std::memory_order_relaxed))
    return by_driver;
  for (const Session* known = last_session(); known != nullptr; known = known->earlier) {
    if (known->engine.owns(address)) return CUDA_SUCCESS;
  }
  return by_driver;
}

// What a thread had named for an operation is not pinned while it waits for another device.
void give_up(Reason reason, const char* sentence) {
  statistics().set_reason(reason);
  gave_up.store(true, std::memory_order_release);
  bool said = false;
  for_each_session([&](Session& each) {
    if (!each.config.move) return;
    each.engine.retire(sentence, each.pins(), !said);
    each.pins().withdraw();
    said = true;
  });
}

bool given_up() {
  return gave_up.load(std::memory_order_acquire);
}

bool start_over_in_child() {
  if (last_session() != nullptr || forwarding.load(std::memory_order_relaxed)) return false;
  if (!making.try_lock()) return false;
  making.unlock();
  seen.store(false, std::memory_order_relaxed);
  return true;
}

void forward_from_now_on() {
  forwarding.store(true, std::memory_order_relaxed);
  first_session.store(nullptr, std::memory_order_release);
}

bool forwards_for_ever() {
  return forwarding.load(std::memory_order_relaxed);
}

void a_context_died() {
  for (std::atomic<void*>& refused : refused_contexts)
    refused.store(nullptr, std::memory_order_relaxed);
  forget_streams();
}

void context_died(CUcontext context) {
  captured_context_died(context);
  forget_early_waits(context);
  if (Session* first = session(); first != nullptr) first->layouts.forget_all();  // its functions
  for_each_session([context](Session& each) {
    if (each.device.context != context) each.engine.other_context_gone(context);
  });
  Session* dying = session_in(context);
  if (dying == nullptr || !obeys(Rule::kSessionEndsWithContext) || !unlink(*dying)) return;
  forget_streams();
  dying->worker.stop();
  if (!dying->engine.context_gone()) dying->worker.ended_uncounted();
  dying->native_memory.forget();
  dying->port.give_back_addresses();
}

void note_result(CUresult result) {
  if (is_sticky(result)) note_sticky(result);
}

}  // namespace offload
