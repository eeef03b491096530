// SPDX-License-Identifier: Apache-2.0
// Cancelling, parking, frees, blocks of slabs.

#include "tests/unit/engine/clauses/scenarios.h"

namespace offload::model {

namespace {

// A buffer that is about to leave is used again.
void use_while_leaving(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {write(b)});
  w.idle(s0, 4);
  w.press(a);
  w.op(s0, {update(a)});
  w.idle(s0, 4);
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
}

// A buffer that is about to leave is freed, and its memory used again.
void free_while_leaving(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {write(b)});
  w.idle(s0, 4);
  w.press(a);
  w.free_async(a, s0);
  const int d = w.allocate_async(granules(2), s0);
  w.op(s0, {write(d)});
  w.idle(s0, 4);
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
}

// The copy of an eviction that was called off waits in its lane while the extent's other work ends.
void called_off_copy_waits(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int z = w.allocate(granules(1));
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.run_all();
  w.op(s1, {write(z)});
  w.idle(s0, 4);
  w.press(z);
  w.press(a);
  w.free_async(a, s0);
  w.run(s0);
  w.worker();
  const int d = w.allocate(granules(1));
  w.op(s0, {write(d)});
  w.worker();  // the address of `a` shows nothing any more
  const int e = w.allocate(granules(1));
  w.op(s0, {write(e)});
}

// Freed on one stream, used on another.
void parked_is_reused(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {update(a)});
  w.free_async(a, s0);
  const int d = w.allocate_async(granules(2), s1);
  w.op(s1, {write(d)});
}

// Freed without a stream, and used on another than before.
void freed_for_another(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {update(a)});
  w.free(a);
  const int d = w.allocate(granules(2));
  w.op(s1, {write(d)});
}

// The stream of a free waits for another, which used the buffer.
void free_behind_a_wait(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int s2 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {write(b)});
  w.op(s1, {read(a)});
  w.free_async(b, s0);
  const int c = w.allocate_async(granules(2), s2);  // waits for an event behind the last op of s0
  w.op(s2, {write(c)});
  w.free_async(a, s0);  // makes s0 wait for s1 first
  const int d = w.allocate_async(granules(2), s2);
  w.op(s2, {write(d)});
}

// A buffer was brought back for an op that could not be served, and is freed before any use.
void freed_while_it_returns(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {write(b)});
  w.idle(s0, 4);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
  w.idle(s0, 4);
  w.press(c);
  const int d = w.allocate(granules(2));
  w.free(d);
  if (w.try_op(s0, {read(a), read(b), read(c)}) == Status::kOk) {
    fail(Failure::Kind::kRefused, "three buffers fit where two do");
  }
  w.free(a);
  const int e = w.allocate(granules(2));
  w.op(s1, {write(e)});
}

// Memory is allocated on one stream, then the program waits for everything and uses another.
void waits_for_everything(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(1));
  const int b = w.allocate(granules(1));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.press(a);
  const int small = w.allocate_async(4000, s0);
  w.free(b);  // waits for all streams
  w.op(s1, {write(small)});
}

// A block is allocated and freed while the extent under it is still copied out of; then another
// buffer comes back into that extent.
void block_passes_on(World& w) {
  const int s0 = w.add_stream();
  const int z = w.allocate(granules(1));
  const int a = w.allocate(granules(1));
  w.op(s0, {write(z)});
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.press(z);
  w.allocate(granules(1));
  w.run_all();
  w.press(a);
  w.free(w.allocate(4000));
  w.op(s0, {update(z)});
}

// A stream that the engine has not seen yet uses a block.
void block_for_a_new_stream(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(1));
  w.allocate(granules(1));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.press(a);
  const int small = w.allocate(4000);
  const int s1 = w.add_stream();
  w.op(s1, {write(small)});
}

}  // namespace

std::vector<Scenario> give_scenarios() {
  const Settings two = {.device_granules = 2, .min_granules = 1};
  const Settings three = {.device_granules = 3};
  const Settings four = {.device_granules = 4};
  const Settings ones = {.device_granules = 2, .largest_extent = 1};
  const Settings uncached = {.device_granules = 4, .fenced_free = true};
  const Settings never_in_place = {.device_granules = 4, .evicted = EvictedShows::kNothing};
  return {
      {Clause::kUseCancels, "UseCancels", four, use_while_leaving},
      {Clause::kFreeCancels, "FreeCancels", four, free_while_leaving},
      {Clause::kCalledOffCopyReads, "CalledOffCopyReads", three, called_off_copy_waits},
      {Clause::kParkKeepsFence, "ParkKeepsFence", two, parked_is_reused},
      {Clause::kFreeWaits, "FreeWaits", four, freed_for_another},
      {Clause::kUncachedFreeFencesAll, "UncachedFreeFencesAll", uncached, freed_for_another},
      {Clause::kFreeHasPosition, "FreeHasPosition", four, free_behind_a_wait},
      {Clause::kParkHoldsFill, "ParkHoldsFill", never_in_place, freed_while_it_returns},
      {Clause::kAllocationHasPosition, "AllocationHasPosition", ones, waits_for_everything},
      {Clause::kBlockKeepsFence, "BlockKeepsFence", ones, block_passes_on},
      {Clause::kNewStreamWaits, "NewStreamWaits", ones, block_for_a_new_stream},
  };
}

}  // namespace offload::model
