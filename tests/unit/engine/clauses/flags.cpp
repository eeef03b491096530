// SPDX-License-Identifier: Apache-2.0
// External flags: the program waits for one stream before it sets the flag that another waits for.

#include "tests/unit/engine/clauses/scenarios.h"

namespace offload::model {

namespace {

// Two buffers fill the device, each written by a stream of its own.
struct Full {
  explicit Full(World& w) : s0(w.add_stream()), s1(w.add_stream()) {
    a = w.allocate(granules(2));
    b = w.allocate(granules(2));
    w.op(s0, {write(a)});
    w.op(s1, {write(b)});
    w.idle(s0, 4);
    w.synchronize(s0);
  }
  int s0, s1;
  int a = -1;
  int b = -1;
};

// What is used behind the flag would leave for what is not, if the policy had its way.
void use_behind_the_flag(World& w, int before, int behind, int used) {
  w.op(behind, {update(used)});
  w.idle(before, 4);
  w.policy.first = {w.tensor(used).id};
  const int c = w.allocate_async(granules(2), before);
  w.op(before, {write(c)});
}

// A buffer that is used behind the flag would leave for it.
void victim_behind_the_flag(World& w) {
  const Full full(w);
  w.wait_for_flag(full.s1, 0);
  use_behind_the_flag(w, full.s0, full.s1, full.b);
  w.synchronize(full.s0);
  w.set_flag(0);
}

// Another thread uses the stream while the driver is given the op that waits for the flag.
void flag_being_forwarded(World& w) {
  const Full full(w);
  w.wait_for_flag(full.s1, 0, [&] { use_behind_the_flag(w, full.s0, full.s1, full.b); });
  w.synchronize(full.s0);
  w.set_flag(0);
}

// The flag was there before the engine.
void flag_before_the_engine(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {write(b)});
  w.idle(s0, 4);
  w.synchronize(s0);
  const int s1 = w.add_stream();
  w.flag_before(s1, 0);
  use_behind_the_flag(w, s0, s1, b);
  w.synchronize(s0);
  w.set_flag(0);
}

// The only buffer that can leave was used on that stream before the flag.
void used_before_the_flag(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s1, {write(a)});
  w.idle(s0, 4);
  w.wait_for_flag(s1, 0);
  w.op(s1, {write(b)});
  const int c = w.allocate_async(granules(2), s0);
  w.op(s0, {write(c)});
  w.synchronize(s0);
  w.set_flag(0);
}

// Half of a buffer was away when it was freed behind the flag: the other half is in the pool.
void pool_behind_the_flag(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.press(a);
  const int b = w.allocate(granules(1));
  w.op(s0, {write(b)});
  w.idle(s0, 4);
  w.run_all();
  w.wait_for_flag(s1, 0);
  w.free_async(a, s1);
  const int c = w.allocate_async(granules(1), s0);
  w.op(s0, {write(c)});
  w.synchronize(s0);
  w.set_flag(0);
}

// Freed behind the flag, and wanted by another stream; there is something else that can leave.
void parked_behind_the_flag(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int b = w.allocate(granules(2));
  w.op(s1, {write(a)});
  w.op(s0, {write(b)});
  w.idle(s0, 4);
  w.wait_for_flag(s1, 0);
  w.free_async(a, s1);
  const int c = w.allocate_async(granules(2), s0);
  w.op(s0, {write(c)});
  w.synchronize(s0);
  w.set_flag(0);
}

// A block of a slab that has no other is freed behind the flag.
void block_behind_the_flag(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int blocks[2] = {w.allocate(2000), w.allocate(2000)};
  for (const int each : blocks) w.op(s1, {write(each)});
  w.wait_for_flag(s1, 0);
  w.free_async(blocks[0], s1);
  const int c = w.allocate_async(2000, s0);
  w.op(s0, {write(c)});
  w.synchronize(s0);
  w.set_flag(0);
}

// More than fits is used behind the flag, a part of it in host memory. Then there is room for that,
// and it is used again.
void in_place_behind_the_flag(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  const int c = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {write(c)});
  const int graph = w.make_graph({update(c)});
  const int b = w.allocate(granules(4));
  w.op(s1, {write(b)});
  w.run_all();
  w.wait_for_flag(s1, 0);
  w.op(s1, {update(b), update(a)});
  w.destroy_graph(graph);
  w.free_async(c, s0);
  w.op(s1, {update(a)});
  w.set_flag(0);
}

// There is no room, and host memory would have to be pinned to make some.
void pins_behind_the_flag(World& w) {
  const Full full(w);
  w.wait_for_flag(full.s1, 0);
  w.try_allocate_async(granules(2), full.s0);
  w.set_flag(0);
}

}  // namespace

std::vector<Scenario> flag_scenarios() {
  const Settings four = {.device_granules = 4};
  const Settings unmapped = {.device_granules = 4, .evicted = EvictedShows::kNothing};
  const Settings six = {.device_granules = 6, .largest_extent = 2};
  const Settings ones = {.device_granules = 2, .largest_extent = 1};
  return {
      {Clause::kExternalFlag, "ExternalFlag", four, victim_behind_the_flag},
      {Clause::kFlagCountsOpening, "FlagCountsOpening", four, flag_being_forwarded},
      {Clause::kFlagToldToNew, "FlagToldToNew", four, flag_before_the_engine},
      {Clause::kFlagKeepsInPlace, "FlagKeepsInPlace", six, in_place_behind_the_flag},
      {Clause::kFlagLeavesEvent, "FlagLeavesEvent", four, used_before_the_flag},
      {Clause::kFlagKeepsPinning, "FlagKeepsPinning", unmapped, pins_behind_the_flag},
      {Clause::kFlagKeepsPool, "FlagKeepsPool", ones, pool_behind_the_flag},
      {Clause::kFlagKeepsParked, "FlagKeepsParked", four, parked_behind_the_flag},
      {Clause::kFlagKeepsBlocks, "FlagKeepsBlocks", four, block_behind_the_flag},
  };
}

}  // namespace offload::model
