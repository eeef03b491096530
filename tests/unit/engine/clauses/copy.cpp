// SPDX-License-Identifier: Apache-2.0
// The copy out, and who waits for it.

#include "tests/unit/engine/clauses/scenarios.h"

namespace offload::model {

namespace {

// A buffer's extents go to another, whose writer is on another stream.
void hand_over(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s1, {write(c)});
}

// Two streams read what has just come back.
void two_readers_of_what_returns(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int s2 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
  w.free(c);
  w.op(s1, {read(a)});
  w.op(s2, {read(a)});
}

// A slot goes to another buffer while its former owner is still read from it.
void slot_is_reused(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int v = w.allocate(granules(1));
  const int u = w.allocate(granules(1));
  const int x = w.allocate(granules(1));
  w.op(s1, {write(x)});
  w.op(s1, {write(u)});
  w.op(s0, {write(v)});
  w.idle(s0, 4);
  w.press(v);
  const int c = w.allocate(granules(1));
  w.run_all();
  w.free(c);
  w.op(s0, {update(v)});  // comes back; its slot is the last in the line of free ones
  w.press(u);
  w.press(x);
}

Settings tight(uint64_t device, uint64_t host) {
  return {.device_granules = device, .host_granules = host, .largest_extent = 2};
}

void run_ready(World& w, Lane lane) {
  Queue& queue = *static_cast<Queue*>(w.port.lane(lane).stream);
  while (w.device.can_run(queue)) w.device.run_head(queue);
}

// Two copies out fail half-way. Their slots give way to those of another size while the halves that
// were submitted are still queued.
void half_a_copy_out(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int small[2] = {w.allocate(granules(1)), w.allocate(granules(1))};
  for (const int each : small) w.op(s1, {write(each)});
  w.op(s0, {write(a)});
  w.idle(s1, 4);
  w.run(s1);
  for (int i = 0; i < 2; ++i) {
    w.port.fail_call(Call::kCopy, 2);
    w.press(a);
    w.idle(s1, 4);
  }
  for (const int each : small) w.press(each);
}

// Two evictions are called off. Their slots give way to those of another size while the copies are
// still queued.
void called_off(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int small[2] = {w.allocate(granules(1)), w.allocate(granules(1))};
  for (const int each : small) w.op(s1, {write(each)});
  w.op(s0, {write(a)});
  w.idle(s1, 4);
  w.run(s1);
  for (int i = 0; i < 2; ++i) {
    w.press(a);
    w.op(s0, {update(a)});
    w.idle(s1, 4);
  }
  for (const int each : small) w.press(each);
}

// Two buffers are freed while they are away, and their slots give way while the copies are queued.
void freed_while_away(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int away[2] = {w.allocate(granules(2)), w.allocate(granules(2))};
  int small[4] = {};
  for (int& each : small) each = w.allocate(granules(1));
  for (const int each : small) w.op(s1, {write(each)});
  for (const int each : away) w.op(s0, {write(each)});
  w.idle(s1, 4);
  w.run(s1);
  w.press({away[0], away[1]});
  w.allocate(granules(4));
  for (const int each : away) w.free_async(each, s0);
  for (const int each : small) w.press(each);
}

// A copy in fails half-way, and the buffer is freed. Its slot gives way to those of another size
// while the half that was submitted is still queued.
void half_a_copy_in(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int x = w.allocate(granules(2));
  const int small[2] = {w.allocate(granules(1)), w.allocate(granules(1))};
  w.op(s1, {write(x)});
  w.op(s0, {write(a)});
  for (const int each : small) w.op(s0, {write(each)});
  w.idle(s0, 4);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.free_async(c, s0);
  for (int i = 0; i < 2; ++i) {  // so that the other slots are busy
    w.press(x);
    w.op(s1, {update(x)});
    w.idle(s0, 4);
  }
  w.port.fail_call(Call::kCopy, 2);
  if (w.try_op(s0, {read(a)}) == Status::kOk) fail(Failure::Kind::kMisuse, "no copy failed");
  w.run(s0);
  run_ready(w, Lane::kOut);
  w.free_async(a, s0);
  for (const int each : small) w.press(each);
}

}  // namespace

std::vector<Scenario> copy_scenarios() {
  const Settings full = {.device_granules = 2};
  const Settings slots = {.device_granules = 3, .host_granules = 3, .largest_extent = 1};
  return {
      {Clause::kCopyOutWaitsLeave, "CopyOutWaitsLeave", full, hand_over},
      {Clause::kFillIsCopied, "FillIsCopied", full, hand_over},
      {Clause::kPoolKeepsFence, "PoolKeepsFence", full, hand_over},
      {Clause::kUserWaitsFill, "UserWaitsFill", full, hand_over},
      {Clause::kEachStreamWaitsFill, "EachStreamWaitsFill", full, two_readers_of_what_returns},
      {Clause::kCopyOutWaitsSlot, "CopyOutWaitsSlot", slots, slot_is_reused},
      {Clause::kSlotKeepsFence, "SlotKeepsFence", slots, slot_is_reused},
      {Clause::kFailedCopyKeepsSlot, "FailedCopyKeepsSlot", tight(4, 5), half_a_copy_out},
      {Clause::kFailedCopyReadsSlot, "FailedCopyReadsSlot", tight(6, 7), half_a_copy_in},
      {Clause::kCalledOffSlotWaits, "CalledOffSlotWaits", tight(4, 5), called_off},
      {Clause::kFreedSlotWaits, "FreedSlotWaits", tight(8, 7), freed_while_away},
  };
}

}  // namespace offload::model
