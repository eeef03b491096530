// SPDX-License-Identifier: Apache-2.0
// Slots, old addresses, room.

#include "tests/unit/engine/clauses/scenarios.h"
#include "tests/unit/engine/model/inspect.h"

namespace offload::model {

namespace {

// The worker looks at an address that queued work still uses.
void worker_is_early(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.op(s0, {update(a)});
  w.idle(s0, 4);
  w.press(a);
  const int c = w.allocate(granules(2));
  w.worker();
  w.op(s1, {write(c)});
}

// An op that names nothing reads an evicted buffer through its address once that shows the slot.
void stray_reads_the_slot(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.press(a);
  w.allocate(granules(2));
  w.run(s0);
  w.worker();
  Memory& memory = w.device.memory();
  const Handle shown = memory.shown_at(w.tensor(a).address);
  if (shown == 0 || memory.place_of(shown) != Place::kHost) return;
  w.op(s0, {hidden_read(a)});
  w.run(s0);
}

// Memory is allocated again before its former address was given up.
void address_comes_again(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.free_async(a, s0);
  const int b = w.allocate_async(granules(1), s0);
  w.op(s0, {write(b)});
}

// Freed memory is taken apart, and the worker looks at its address while queued work uses it.
void worker_is_early_again(World& w) {
  address_comes_again(w);
  w.worker();
}

// The first who gets the extents cannot map them.
void map_fails(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  w.press(a);
  w.port.fail_call(Call::kMap, 1);
  if (w.try_allocate(granules(2)) >= 0) fail(Failure::Kind::kMisuse, "the map did not fail");
  const int c = w.allocate(granules(2));
  w.op(s1, {write(c)});
}

void only_unused_can_leave(World& w) {
  const int s0 = w.add_stream();
  w.allocate(granules(2));
  w.allocate(granules(2));
  w.idle(s0, 4);
  const int c = w.allocate(granules(2));
  w.op(s0, {write(c)});
}

// One buffer that all others would have to leave for.
void one_wants_all(World& w) {
  const int s0 = w.add_stream();
  std::vector<int> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(w.allocate(granules(1)));
    w.op(s0, {write(all.back())});
  }
  w.idle(s0, 4);
  w.try_allocate(granules(4));
  for (const int each : all) w.op(s0, {update(each)});
}

// Blocks of slabs, as many as are given out, beside two buffers of which one is away.
void blocks_leave_room(World& w) {
  const int s0 = w.add_stream();
  const int a = w.allocate(granules(2));
  w.op(s0, {write(a)});
  w.idle(s0, 4);
  const int b = w.allocate(granules(3));
  w.op(s0, {write(b)});
  w.idle(s0, 4);
  while (w.try_allocate(2048) >= 0) {
  }
  w.op(s0, {update(a)});
  w.op(s0, {update(b)});
}

// Two threads whose ops fill the device each, with memory of different sizes: while one waits for
// the GPU to be done with an extent that it will split or join, the other pins what it has.
void two_threads_in_want(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  std::vector<Arg> sets[2];
  for (const uint64_t size : {2, 2, 2, 4, 1, 1}) {
    const int tensor = w.allocate(granules(size));
    w.op(s0, {write(tensor)});
    w.idle(s0, 2);
    sets[sets[0].size() < 3 ? 0 : 1].push_back(update(tensor));
  }
  w.synchronize(s0);
  const auto work = [&w](int stream, const std::vector<Arg>& args) {
    for (int i = 0; i < 6; ++i) {
      w.op(stream, args);
      w.op(stream, {args[1]});  // so that there is more to wait for than for the first
      w.op(stream, {args[2]});
    }
  };
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    w.crew.run({[&] { work(s0, sets[0]); }, [&] { work(s1, sets[1]); }}, seed);
  }
}

// More threads than the turns that a request has, and each wants all there is. One after another
// they are served.
void each_in_turn(World& w) {
  constexpr size_t kThreads = 10;
  std::vector<std::function<void()>> bodies;
  for (size_t i = 0; i < kThreads; ++i) {
    const int stream = w.add_stream();
    const int tensor = w.allocate(granules(2));
    w.op(stream, {write(tensor)});
    bodies.emplace_back([&w, stream, tensor] {
      for (int round = 0; round < 2; ++round) w.op(stream, {update(tensor)});
    });
  }
  w.crew.run(bodies, 3);
}

}  // namespace

std::vector<Scenario> host_scenarios() {
  const Settings two = {.device_granules = 2};
  const Settings ones = {.device_granules = 2, .largest_extent = 1};
  const Settings six = {.device_granules = 6};
  const Settings four = {.device_granules = 4};
  const Settings four_and_four = {.device_granules = 4,
                                  .host_granules = 4,
                                  .largest_extent = 1,
                                  .evicted = EvictedShows::kNothing};
  const Settings unmapped = {
      .device_granules = 4, .largest_extent = 1, .evicted = EvictedShows::kNothing};
  const Settings one_at_a_time = {.device_granules = 2, .evicted = EvictedShows::kNothing};
  return {
      {Clause::kWorkerWaitsLeave, "WorkerWaitsLeave", two, worker_is_early},
      {Clause::kSlotShownAfterCopied, "SlotShownAfterCopied", two, stray_reads_the_slot},
      {Clause::kAddressWaitsFence, "AddressWaitsFence", ones, worker_is_early_again},
      {Clause::kAddressWaitsUnmap, "AddressWaitsUnmap", ones, address_comes_again},
      {Clause::kFailedMapKeepsFence, "FailedMapKeepsFence", two, map_fails},
      {Clause::kUnusedIsEvictable, "UnusedIsEvictable", four, only_unused_can_leave},
      {Clause::kRestoreReserve, "RestoreReserve", four_and_four, one_wants_all},
      {Clause::kRoomToSwap, "RoomToSwap", unmapped, blocks_leave_room},
      {Clause::kPinsDroppedToWait, "PinsDroppedToWait", six, two_threads_in_want},
      {Clause::kLineInTurn, "LineInTurn", one_at_a_time, each_in_turn, Clause::kOthersStandAside},
  };
}

}  // namespace offload::model
