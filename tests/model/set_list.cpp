// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "tests/model/sets.h"

namespace offload::model {

namespace {

constexpr int a = 0, b = 1, c = 2, d = 3, e = 4;

Settings settings(uint64_t device) {
  return {.device_granules = device,
          .host_granules = 16,
          .largest_extent = 2,
          .grace = 1,
          .piece_granules = 2,
          .patience = 3,
          .window_granules = 64};
}

// Two buffers of two granules fill the device; both were written, by two streams.
Program full(uint64_t device = 4) {
  Program frame;
  frame.settings = settings(device);
  frame.prologue = {allocate(a, 2), allocate(b, 2), op(0, {write(a)}), op(1, {write(b)}), idle(0)};
  return frame;
}

Program with(Program frame, const std::function<void(Program&)>& change) {
  change(frame);
  return frame;
}

std::vector<Action> uses_and_room() {
  return {op(0, {update(a)}), op(1, {update(a)}),       op(1, {update(b)}), press(a),
          allocate(c, 2),     allocate(c, 2, 1),        release(a, 0),      release(c, 1),
          op(0, {update(c)}), op(1, {read(a), read(c)})};
}

std::vector<Action> append(std::vector<Action> first, const std::vector<Action>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<ProgramSet> one_thread() {
  std::vector<ProgramSet> all;
  const auto eager = [](Program& p) { p.bounds.eager = true; };
  const auto unmapped = [](Program& p) { p.settings.evicted = EvictedShows::kNothing; };
  all.push_back({"plain", "two streams, three buffers, device for two", full(), uses_and_room()});
  all.push_back({"eager", "the same, the GPU never behind", with(full(), eager), uses_and_room()});
  all.push_back({"unmapped", "the same, evicted addresses show nothing", with(full(), unmapped),
                 uses_and_room()});
  all.push_back(
      {"extents",
       "extents of one granule, four buffers of one and two",
       with(full(),
            [](Program& p) {
              p.settings.largest_extent = 1;
              p.settings.piece_granules = 1;
            }),
       {op(0, {update(a)}), op(1, {read(a), read(b)}), press(a), press(b), allocate(c, 1, 1),
        allocate(d, 3), release(b, 1), release(c, 0), op(0, {update(c)}), op(1, {update(d)})}});
  all.push_back({"three",
                 "three streams",
                 with(full(), [](Program& p) { p.streams = 3; }),
                 {op(0, {read(a)}), op(1, {read(a)}), op(2, {read(a)}), op(2, {update(b)}),
                  press(a), allocate(c, 2, 2), allocate(c, 2), release(c, 0), op(2, {update(c)}),
                  idle(2), op(0, {read(b), update(a)})}});
  all.push_back({"readers",
                 "one buffer, which three streams read",
                 with(full(2),
                      [](Program& p) {
                        p.streams = 3;
                        p.prologue = {allocate(a, 2), op(0, {write(a)})};
                      }),
                 {op(0, {read(a)}), op(1, {read(a)}), op(2, {read(a)}), allocate(c, 2),
                  op(2, {update(c)}), release(c, 0)},
                 {},
                 4});
  all.push_back({"freed",
                 "frees and waits between streams",
                 with(full(),
                      [](Program& p) {
                        p.streams = 3;
                        p.settings.min_granules = 1;
                      }),
                 {op(1, {read(a)}), op(0, {read(a)}), release(a, 0), release(a, 2), release(b, 0),
                  release(b), allocate(c, 2, 2), allocate(a, 2, 1), op(2, {update(c)}),
                  op(1, {update(a)}), op(0, {update(b)})}});
  all.push_back({"parts",
                 "buffers that come and go in parts",
                 with(full(6),
                      [](Program& p) {
                        p.settings.largest_extent = 2;
                        p.prologue = {allocate(a, 3), allocate(b, 3), op(0, {write(a)}),
                                      op(1, {write(b)}), idle(0)};
                      }),
                 {op(0, {update(a)}), op(1, {update(b)}), press(a), press(b), allocate(c, 1),
                  allocate(c, 4, 1), release(c, 0), release(a, 1), op(0, {update(c)}), trim()}});
  all.push_back({"phantoms",
                 "names of what is not used, or is gone",
                 full(),
                 {op(0, {phantom(a)}), op(1, {phantom(a), update(b)}), op(1, {phantom(c)}),
                  op(0, {update(a)}), press(a), allocate(c, 2), allocate(d, 2, 1), release(c, 1),
                  release(a, 0), op(0, {update(c), phantom(d)})}});
  all.push_back(
      {"unused",
       "what no op has named, or only unseen",
       with(full(),
            [](Program& p) {
              p.prologue = {allocate(a, 2), allocate(b, 2), idle(0)};
            }),
       {op(0, {hidden_write(a)}), op(1, {hidden_write(b)}), idle(0), press(a), allocate(c, 2),
        op(1, {write(c)}), op(0, {read(b)}), release(a, 1), release(b), op(0, {update(a)})}});
  all.push_back(
      {"hidden",
       "users that name nothing, within grace",
       with(full(10),
            [](Program& p) {
              p.settings.grace = 3;
              p.settings.largest_extent = 1;
            }),
       {op(0, {update(a)}), op(0, {hidden_update(a)}), op(1, {hidden_update(a)}),
        op(1, {hidden_read(b)}), idle(0), idle(1), press(a), allocate(c, 2), op(1, {update(c)})},
       {},
       4});
  all.push_back({"blocks",
                 "blocks of slabs beside buffers",
                 with(full(3),
                      [](Program& p) {
                        p.settings.largest_extent = 1;
                        p.prologue = {
                            allocate(a, 1),    allocate(b, 1),    allocate(e, 0), op(0, {write(a)}),
                            op(1, {write(b)}), op(1, {write(e)}), idle(0)};
                      }),
                 {op(0, {update(a)}), op(1, {update(e)}), press(a), allocate(c, 0),
                  allocate(c, 0, 1), release(e, 1), release(c, 0), release(b), new_stream(),
                  op(2, {update(c)}), op(0, {update(c)})}});
  all.push_back({"in-place",
                 "ops that name more than the device holds",
                 with(full(4),
                      [](Program& p) {
                        p.prologue = {allocate(a, 2), op(0, {write(a)}), op(0, {update(a)}),
                                      allocate(b, 4), op(1, {write(b)})};
                      }),
                 {op(1, {update(b), update(a)}), op(0, {read(a), read(b)}), op(0, {update(a)}),
                  op(1, {read(b)}), press(b), release(b, 1), release(a, 0), allocate(c, 2),
                  op(0, {update(c), update(a)})}});
  all.push_back(
      {"few-slots",
       "host memory for two buffers and the reserve",
       with(full(),
            [](Program& p) {
              p.settings.host_granules = 5;
              p.settings.largest_extent = 1;
              p.settings.piece_granules = 1;
            }),
       {op(0, {update(a)}), op(1, {update(b)}), op(0, {read(b)}), press(a), press(b),
        allocate(c, 2), allocate(d, 1), release(c, 1), op(1, {update(c)}), op(0, {update(d)})}});
  all.push_back(
      {"reserve",
       "the same, and ops that name more than fits, which is refused",
       with(full(3),
            [](Program& p) {
              p.settings.host_granules = 5;
              p.settings.evicted = EvictedShows::kNothing;
              p.bounds.deviations = 0;
              p.prologue = {
                  allocate(a, 2), op(0, {write(a)}), idle(0), allocate(b, 1), op(1, {write(b)}),
                  allocate(c, 1), op(0, {write(c)}), idle(0), allocate(d, 1), op(0, {write(d)}),
                  idle(0)};
            }),
       {op(0, {update(a)}), op(1, {read(a), read(b)}), op(1, {read(a), read(c), read(d)}),
        op(0, {update(c), update(a)}), press(b), press(c), allocate(e, 1), allocate(5, 1),
        op(1, {write(e)}), op(0, {update(5)})},
       {},
       4});
  all.push_back({"many-names",
                 "more names than the list holds",
                 with(full(6),
                      [](Program& p) {
                        p.settings.largest_extent = 1;
                        p.settings.piece_granules = 1;
                        p.prologue = {allocate(a, 1),
                                      allocate(b, 1),
                                      allocate(c, 1),
                                      allocate(d, 1),
                                      allocate(e, 1),
                                      op(0, {write(a)}),
                                      op(1, {write(b)}),
                                      op(0, {write(c)}),
                                      op(1, {write(d)}),
                                      op(0, {write(e)}),
                                      idle(0)};
                      }),
                 {op(0, {read(a), read(b), read(c), read(d), update(e)}), op(1, {update(a)}),
                  op(1, {update(e)}), press(a), press(e), allocate(5, 2), release(5, 1),
                  op(1, {update(5)}), release(d, 0)}});
  all.push_back({"retired",
                 "nothing moves any more",
                 full(),
                 {op(0, {update(a)}), op(1, {update(b)}), press(a), press(b), allocate(c, 2),
                  release(c, 1), retire(), release(a), op(0, {update(c)})}});
  all.push_back({"finished", "only what the GPU has finished with may leave",
                 with(full(), [](Program& p) { p.settings.finished_only = true; }),
                 uses_and_room()});
  all.push_back({"timed", "with the events that measure",
                 with(full(),
                      [](Program& p) {
                        p.bounds.timed = true;
                        p.bounds.deviations = 2;
                      }),
                 uses_and_room()});
  return all;
}

std::vector<ProgramSet> with_trouble() {
  std::vector<ProgramSet> all;
  const auto failing = [](Program& p) {
    p.bounds.failures = 1;
    p.bounds.deviations = 1;
  };
  all.push_back({"failing", "any one call fails", with(full(), failing), uses_and_room()});
  all.push_back({"failing-twice",
                 "any two calls fail",
                 with(full(),
                      [](Program& p) {
                        p.bounds.failures = 2;
                        p.bounds.deviations = 0;
                      }),
                 uses_and_room(),
                 {},
                 2});
  all.push_back({"failing-parts",
                 "the same, with extents of one granule",
                 with(full(),
                      [&](Program& p) {
                        failing(p);
                        p.settings.largest_extent = 1;
                        p.settings.piece_granules = 1;
                        p.settings.evicted = EvictedShows::kNothing;
                      }),
                 {op(0, {update(a)}), op(1, {read(a)}), op(1, {update(b)}), press(a), press(b),
                  allocate(c, 1), allocate(c, 2, 1), release(c, 1), op(1, {update(c)}), trim()}});
  all.push_back({"failing-slots",
                 "the same, with little host memory for two sizes",
                 with(full(6),
                      [&](Program& p) {
                        failing(p);
                        p.settings.host_granules = 5;
                        p.settings.piece_granules = 1;
                        p.prologue = {allocate(a, 2),    allocate(b, 2),
                                      allocate(c, 1),    allocate(d, 1),
                                      op(0, {write(a)}), op(1, {write(b)}),
                                      op(1, {write(c)}), op(1, {write(d)}),
                                      idle(0),           idle(0)};
                      }),
                 {op(0, {update(a)}), op(1, {update(b)}), press(a), press(b), press(c), press(d),
                  allocate(e, 2), release(a, 0), release(e, 1), op(1, {read(c)}), idle(0)},
                 {},
                 4});
  all.push_back({"failing-in-place",
                 "the same, with ops that name more than fits",
                 with(full(4),
                      [&](Program& p) {
                        failing(p);
                        p.prologue = {allocate(a, 2), op(0, {write(a)}), op(0, {update(a)}),
                                      allocate(b, 4), op(1, {write(b)})};
                      }),
                 {op(1, {update(b), update(a)}), op(0, {update(a)}), press(b), release(b, 1),
                  release(a, 0), allocate(c, 2), op(0, {update(c), update(a)})}});
  const auto flags = [](Program& p) { p.settings.patience = 2; };
  const std::vector<Action> flagged = {
      wait_for_flag(1),  set_flag(),    synchronize(0), op(1, {update(b)}), op(0, {update(a)}),
      allocate(c, 2, 0), release(b, 1), press(b),       op(0, {update(c)}), allocate(d, 2)};
  all.push_back({"flags",
                 "a stream waits for what the host does later",
                 with(full(), flags),
                 flagged,
                 {},
                 4});
  all.push_back({"flags-in-place",
                 "the same, with ops behind the flag that name more than fits",
                 with(full(),
                      [](Program& p) {
                        p.settings.patience = 2;
                        p.bounds.deviations = 2;
                        p.prologue = {allocate(d, 2),    op(1, {write(d)}), allocate(a, 2),
                                      op(0, {write(a)}), idle(0),           allocate(b, 4),
                                      op(1, {write(b)}), run_all()};
                      }),
                 {wait_for_flag(1), set_flag(), synchronize(0), op(1, {update(b), update(d)}),
                  op(0, {update(a)}), release(d, 1), release(b, 1), allocate(c, 2, 0),
                  op(0, {update(c)}), press(a)},
                 {},
                 4});
  all.push_back({"full-queues", "a stream takes six items, then the call waits",
                 with(full(), [](Program& p) { p.bounds.queue_items = 6; }), uses_and_room()});
  return all;
}

// A graph that updates the first buffer.
std::vector<Action> captured() {
  return {begin_capture(0), op(0, {update(a)}), end_capture(0)};
}

// Two buffers and a block on a device for no more.
Program beside_a_block() {
  return with(full(3), [](Program& p) {
    p.settings.largest_extent = 1;
    p.settings.piece_granules = 1;
    p.prologue = {allocate(a, 1),    allocate(b, 1),    allocate(e, 0), op(0, {write(a)}),
                  op(1, {write(b)}), op(1, {write(e)}), idle(0)};
  });
}

std::vector<ProgramSet> with_graphs() {
  std::vector<ProgramSet> all;
  all.push_back({"graphs",
                 "a graph of one buffer, launched on either stream, destroyed and made anew",
                 with(full(), [](Program& p) { p.prologue = append(p.prologue, captured()); }),
                 {launch(0), launch(1), destroy_graph(), op(0, {update(a)}), op(1, {update(b)}),
                  press(a), release(a, 0), release(a), allocate(c, 2), allocate(d, 2, 1),
                  op(0, {update(c)}), op(1, {update(d)}), begin_capture(1), end_capture(1)}});
  const std::vector<Action> beside = {begin_capture(1),   end_capture(1),     op(1, {update(a)}),
                                      op(1, {update(b)}), op(0, {update(b)}), op(0, {update(a)}),
                                      press(a),           press(b),           allocate(c, 1),
                                      allocate(d, 0),     release(b, 0),      op(1, {update(d)}),
                                      launch(0),          op(0, {update(c)})};
  const auto open = [](Program& p) { p.prologue.push_back(begin_capture(1)); };
  all.push_back({"captures", "a stream captures, and memory changes hands beside it",
                 with(beside_a_block(), open), beside});
  all.push_back({"failing-captures", "the same, any one call fails",
                 with(beside_a_block(),
                      [&](Program& p) {
                        open(p);
                        p.bounds.failures = 1;
                        p.bounds.deviations = 1;
                      }),
                 beside});
  all.push_back({"threads-graphs",
                 "one makes and launches graphs, the other wants room",
                 with(full(), [](Program& p) { p.prologue = append(p.prologue, captured()); }),
                 {launch(0), destroy_graph(), begin_capture(0), op(0, {update(a)}), end_capture(0),
                  release(a, 0), allocate(c, 2, 0), op(0, {update(c)})},
                 {op(1, {update(b)}), op(1, {read(a)}), allocate(d, 2), op(1, {update(d)}),
                  press(a), press(b), release(a), launch(1)},
                 3});
  return all;
}

std::vector<ProgramSet> two_threads() {
  std::vector<ProgramSet> all;
  const std::vector<Action> first = {op(0, {update(a)}),
                                     op(0, {read(b)}),
                                     allocate(c, 2, 0),
                                     release(a, 0),
                                     op(0, {update(c)}),
                                     press(b),
                                     op(0, {phantom(b), update(a)})};
  const std::vector<Action> second = {op(1, {update(b)}), op(1, {read(a)}),   allocate(d, 2),
                                      release(b, 1),      op(1, {update(d)}), press(a),
                                      release(d)};
  all.push_back({"threads", "two threads, a stream each", full(), first, second, 2});
  all.push_back({"threads-failing", "the same, any one call fails",
                 with(full(),
                      [](Program& p) {
                        p.bounds.failures = 1;
                        p.bounds.deviations = 1;
                      }),
                 first, second, 2});
  all.push_back({"threads-unmapped", "the same, evicted addresses show nothing",
                 with(full(),
                      [](Program& p) {
                        p.settings.evicted = EvictedShows::kNothing;
                        p.settings.largest_extent = 1;
                        p.settings.piece_granules = 1;
                      }),
                 first, second, 2});
  all.push_back({"threads-in-want",
                 "each wants more than is left",
                 with(full(5),
                      [](Program& p) {
                        p.settings.largest_extent = 1;
                        p.settings.piece_granules = 1;
                        p.prologue = {allocate(a, 3), op(0, {write(a)}), allocate(b, 3),
                                      op(1, {write(b)}), idle(0)};
                      }),
                 {op(0, {update(a)}), op(0, {read(a), read(b)}), allocate(c, 3), release(c, 0),
                  op(0, {update(c)}), release(a, 0)},
                 {op(1, {update(b)}), op(1, {update(b), update(a)}), allocate(d, 4, 1), release(d),
                  op(1, {update(d)}), trim()},
                 2});
  all.push_back({"threads-in-place",
                 "each names more than is left, and a call fails",
                 with(full(3),
                      [](Program& p) {
                        p.bounds.failures = 1;
                        p.settings.piece_granules = 1;
                        p.settings.patience = 1000;
                        p.prologue = {allocate(a, 1),    op(0, {write(a)}), allocate(b, 1),
                                      op(1, {write(b)}), idle(0),           allocate(c, 1),
                                      op(1, {write(c)}), allocate(d, 2),    op(0, {write(d)}),
                                      run_all()};
                      }),
                 {op(0, {read(b)}), op(0, {update(a), update(c)}), op(0, {read(d)}),
                  op(0, {update(d), read(b)}), release(d, 0), op(0, {update(e)})},
                 {allocate(e, 1, 1), op(1, {update(c)}), op(1, {write(c), read(b)}), press(b),
                  press(c), op(1, {read(d), update(b)}), release(c, 1), op(1, {write(e)})},
                 2});
  const auto served = [](Program& p) {
    p.refuses = false;
    p.settings.evicted = EvictedShows::kNothing;
    p.settings.patience = 1000;
    p.bounds.deviations = 4;
    p.prologue = {allocate(a, 2), allocate(b, 2), op(0, {write(a)}), op(0, {write(b)}), idle(0),
                  allocate(c, 2), allocate(d, 2), op(1, {write(c)}), op(1, {write(d)}), idle(1)};
  };
  all.push_back({"threads-looping",
                 "one wants all there is, which another uses again and again",
                 with(full(), served),
                 {op(0, {update(a), update(b)})},
                 {op(1, {update(c)}), op(1, {update(d)})},
                 3});
  all.push_back({"threads-two-sizes",
                 "two want room in two sizes; nobody is refused",
                 with(full(4),
                      [&](Program& p) {
                        served(p);
                        p.bounds.deviations = 2;
                        p.prologue = {
                            allocate(a, 1),    allocate(b, 1),    allocate(c, 2), op(0, {write(a)}),
                            op(0, {write(b)}), op(1, {write(c)}), idle(0),        idle(1)};
                      }),
                 {allocate(d, 2, 0), op(0, {update(a)}), op(0, {read(b), update(a)}),
                  op(0, {write(d)}), release(d, 0)},
                 {allocate(e, 1, 1), op(1, {update(c)}), op(1, {write(e)}), release(e, 1)},
                 3});
  all.push_back({"threads-three",
                 "three want all there is",
                 with(full(),
                      [&](Program& p) {
                        served(p);
                        p.streams = 3;
                      }),
                 {op(0, {update(a), update(b)}), op(0, {update(a)})},
                 {op(1, {update(c), update(d)}), op(1, {update(c)})},
                 2,
                 {op(2, {read(a), read(c)}), op(2, {read(b), read(d)})}});
  all.push_back({"threads-served",
                 "each wants all there is; nobody is refused",
                 with(full(), served),
                 {op(0, {update(a), update(b)}), op(0, {update(a)}), op(0, {update(a), update(c)})},
                 {op(1, {update(c), update(d)}), op(1, {update(d)}), op(1, {update(d), update(b)})},
                 2});
  all.push_back(
      {"threads-flagged",
       "one waits for a flag that the other sets",
       with(full(), [](Program& p) { p.settings.patience = 2; }),
       {wait_for_flag(0), op(0, {update(a)}), allocate(c, 2, 0), op(0, {update(c)}), release(a, 0)},
       {set_flag(), op(1, {update(b)}), allocate(d, 2, 1), release(b, 1), synchronize(1),
        op(1, {update(d)})},
       2});
  all.push_back({"threads-retired",
                 "one retires",
                 full(),
                 {retire(), op(0, {update(a)}), allocate(c, 2, 0), release(a, 0)},
                 append(second, {op(1, {read(a), read(b)})}),
                 2});
  return all;
}

}  // namespace

const std::vector<ProgramSet>& program_sets() {
  static const std::vector<ProgramSet> sets = [] {
    std::vector<ProgramSet> all = one_thread();
    for (auto* more : {with_trouble, with_graphs, two_threads}) {
      for (ProgramSet& set : more()) all.push_back(std::move(set));
    }
    return all;
  }();
  return sets;
}

}  // namespace offload::model
