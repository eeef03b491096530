// SPDX-License-Identifier: Apache-2.0
// The way back.

#include "tests/unit/engine/clauses/scenarios.h"

namespace offload::model {

namespace {

// A buffer is away, its extents with another, which is freed on a stream that still uses them.
void returns_into_used_memory(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s1, {write(c)});
  w.op(s1, {update(c)});
  w.free_async(c, s1);
  w.op(s0, {read(a)});
}

// A stream that had waited for the buffer's first memory uses it again when it has come back.
void returns_to_who_waited(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s1, {read(a)});
  w.idle(s0, 4);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
  w.free_async(c, s0);
  w.op(s1, {read(a)});
}

// A buffer is wanted back at once, into other memory.
void returns_at_once(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.free_async(b, s1);
  w.op(s1, {update(a)});
  w.op(s0, {write(c)});
}

}  // namespace

std::vector<Scenario> restore_scenarios() {
  const Settings two = {.device_granules = 2};
  const Settings four = {.device_granules = 4};
  return {
      {Clause::kRestoreWaitsFence, "RestoreWaitsFence", two, returns_into_used_memory},
      {Clause::kRestoreForgetsWaits, "RestoreForgetsWaits", two, returns_to_who_waited},
      {Clause::kRestoreSetsFill, "RestoreSetsFill", two, returns_into_used_memory},
      {Clause::kRestoreWaitsCopied, "RestoreWaitsCopied", four, returns_at_once},
      {Clause::kRestoreChecksLeave, "RestoreChecksLeave", four, returns_at_once},
  };
}

}  // namespace offload::model
