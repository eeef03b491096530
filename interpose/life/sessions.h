// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sessions at work, one per device, and how they come and go. Most processes have one: what
// looks at all of them costs those no more than a load and a branch. A session that is taken away
// leads on to the next one still, so whoever looks at it at that moment misses none.

#include "interpose/life/session.h"

namespace offload {

extern std::atomic<Session*> first_session;
// The one made last, working or not; null if there was none.
Session* last_session();

// What the hooks of this thread work with: the first session, of whichever device; null: forward. A
// load and a thread-local flag.
inline Session* session() {
  Session* first = first_session.load(std::memory_order_acquire);
  return first != nullptr && !this_thread.inside ? first : nullptr;
}
// The one that was made next after it, of another device; null: there is none.
inline Session* next_of(const Session& session) {
  return session.next.load(std::memory_order_acquire);
}

// Whether an operation has to look twice: a stream may capture, or there are several devices. How
// many reasons there are.
extern std::atomic<uint32_t> operations_look_;
inline bool operations_look() {
  return operations_look_.load(std::memory_order_relaxed) != 0;
}

// Calls `use` with each session that the hooks of this thread work with.
template <typename Use>
void for_each_session(Use&& use) {
  for (Session* each = session(); each != nullptr; each = next_of(*each)) use(*each);
}
// The first of them for which `wanted` is true, or null.
template <typename Wanted>
Session* find_session(Wanted&& wanted) {
  for (Session* each = session(); each != nullptr; each = next_of(*each)) {
    if (wanted(*each)) return each;
  }
  return nullptr;
}
// Whose memory that is.
inline Session* owner_of(CUdeviceptr address) {
  return find_session([address](const Session& each) { return each.engine.owns(address); });
}
inline Session* session_in(CUcontext context) {
  return find_session([context](const Session& each) { return each.device.context == context; });
}
inline Session* session_on(CUdevice device) {
  return find_session([device](const Session& each) { return each.device.device == device; });
}

// For an allocation in this thread's current context: makes the session, if there is none yet and
// there can be one. Null: the driver serves.
Session* session_for_allocation();
// The same in another context, which an allocation on one of its streams is served from.
Session* session_for_allocation_in(CUcontext context);
// Whether the program ever asked for memory that a session could have served.
bool allocations_seen();
// One that is left to the driver because the options say so.
void note_allocation();
// The count of what the driver serves under this thread's context, or on a device; null: it is not
// counted.
NativeMemory* native_memory();
NativeMemory* native_memory_on(CUdevice device);

// What a free gets where there is no session: the driver's answer. But where hooks forward although
// memory of ours is alive, the driver does not know the address, and the program, which is cleaning
// up, has done nothing wrong.
CUresult answer_to_free(CUresult by_driver, CUdeviceptr address);

// What is evicted comes home, on every device, and nothing moves from here on. `sentence` ends the
// one line that is said.
void give_up(Reason reason, const char* sentence);
// Whether that was done: who comes later moves nothing either.
bool given_up();

// Hooks forward from now on.
void forward_from_now_on();
bool forwards_for_ever();
// In a forked child: true, and as before the first allocation, if there never was a session.
bool start_over_in_child();
// Some context died: its handle may be another's tomorrow.
void a_context_died();
// That context died. If it is a session's, the session goes with it, and the next allocation makes
// another.
void context_died(CUcontext context);
// A forwarded call came back with this.
void note_result(CUresult result);

}  // namespace offload
