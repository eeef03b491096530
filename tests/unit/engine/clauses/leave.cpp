// SPDX-License-Identifier: Apache-2.0
// Pins and claims, and what e1 holds.

#include "tests/unit/engine/clauses/scenarios.h"

namespace offload::model {

namespace {

// Two buffers fill the device; both were written, and their grace is over.
struct Full {
  explicit Full(World& w) : s0(w.add_stream()), s1(w.add_stream()), s2(w.add_stream()) {
    a = w.allocate(granules(2));
    b = w.allocate(granules(2));
    w.op(s0, {write(a)});
    w.op(s0, {write(b)});
    w.idle(s0, 4);
  }
  int s0, s1, s2;
  int a = -1;
  int b = -1;
};

constexpr Settings kFull = {.device_granules = 4};

// A thread is between begin and end of an op when another needs room.
void evict_while_pinned(World& w) {
  const Full full(w);
  w.policy.first = {w.tensor(full.a).id};
  w.as(1);
  World::Op op = w.begin(full.s0, {update(full.a)});
  w.as(0);
  const int c = w.allocate(granules(2));
  w.op(full.s1, {write(c)});
  w.worker();
  w.as(1);
  w.forward(op);
  w.end(op);
  w.as(0);
}

// A thread pins a buffer after it was chosen as a victim, and before it is claimed.
void pin_before_claim(World& w) {
  const Full full(w);
  w.press({full.a, full.b});  // has host memory pinned, so that nothing is let go for that later
  w.op(full.s0, {update(full.a), update(full.b)});
  w.idle(full.s0, 4);
  w.policy.first = {w.tensor(full.a).id};
  w.as(1);
  World::Op op = w.name(full.s1, {update(full.a)});
  w.as(0);
  w.policy.choosing = [&] {
    w.as(1);
    w.start(op);
    w.as(0);
  };
  const int c = w.allocate(granules(2));
  w.as(1);
  w.forward(op);
  w.end(op);
  w.as(0);
  w.op(full.s0, {write(c)});
  w.idle(full.s0, 4);
  const int d = w.allocate(granules(2));
  w.op(full.s0, {write(d)});
}

// Two streams read a buffer; the one that did so first has run nothing since.
void first_reader_is_slow(World& w) {
  const Full full(w);
  w.op(full.s1, {read(full.a)});
  w.op(full.s2, {read(full.a)});
  w.idle(full.s2, 4);
  w.press(full.a);
  const int c = w.allocate(granules(2));
  w.op(full.s0, {write(c)});
}

// Half of a buffer is on its way home when a call fails, and leaves again, never used meanwhile.
// There are slots enough that it does not get its own again, behind whose fence it would be safe.
void leaves_while_it_returns(World& w) {
  const Full full(w);
  w.press({full.a, full.b});
  w.op(full.s0, {read(full.a), read(full.b)});
  w.run_all();
  w.idle(full.s0, 4);
  w.press(full.a);
  const int c = w.allocate(granules(2));
  w.op(full.s0, {write(c)});
  w.free_async(c, full.s0);
  w.port.fail_call(Call::kCopy, 2);
  if (w.try_op(full.s0, {read(full.a)}) == Status::kOk)
    fail(Failure::Kind::kRefused, "no copy failed");
  w.idle(full.s0, 4);
  w.press(full.a);
  const int e = w.allocate(granules(2));
  w.op(full.s1, {write(e)});
}

// An op on another buffer gives its grace to a user that does not name it.
void hidden_user_comes_later(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s0, {write(b)});
  w.idle(s0, 4);
  w.op(s0, {write(a)});
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
  w.op(s0, {hidden_update(a)});
}

// The same, of a buffer that had been idle for long.
void hidden_user_after_a_late_use(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {write(b)});
  w.idle(s0, 6);
  w.op(s0, {update(a)});
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
  w.op(s0, {hidden_update(a)});
}

// The user that does not name the buffer is on another stream, and slow.
void hidden_user_is_slow(World& w) {
  const Full full(w);
  w.op(full.s0, {update(full.a)});
  w.op(full.s1, {hidden_update(full.a)});
  w.idle(full.s0, 4);
  w.press(full.a);
  const int c = w.allocate(granules(2));
  w.op(full.s0, {write(c)});
}

// Written through a pointer that nobody could see, by an op that has not run yet.
void used_unseen(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s1, {hidden_write(a)});
  w.idle(s0, 4);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
}

}  // namespace

std::vector<Scenario> leave_scenarios() {
  return {
      {Clause::kUnnamedMayBeUsed, "UnnamedMayBeUsed", {.device_granules = 2}, used_unseen},
      {Clause::kPinDuringOp, "PinDuringOp", kFull, evict_while_pinned},
      {Clause::kClaimChecksPins, "ClaimChecksPins", kFull, pin_before_claim},
      {Clause::kUseInLeave, "UseInLeave", kFull, first_reader_is_slow},
      {Clause::kAllStreamsInLeave, "AllStreamsInLeave", kFull, first_reader_is_slow},
      {Clause::kFillInLeave,
       "FillInLeave",
       {.device_granules = 4, .largest_extent = 1},
       leaves_while_it_returns},
      {Clause::kGrace, "Grace", {.device_granules = 4, .grace = 3}, hidden_user_comes_later},
      {Clause::kUseRestartsGrace,
       "UseRestartsGrace",
       {.device_granules = 4, .grace = 3},
       hidden_user_after_a_late_use},
      {Clause::kGraceStreams, "GraceStreams", kFull, hidden_user_is_slow},
  };
}

}  // namespace offload::model
