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
  };
}

}  // namespace offload::model
