// SPDX-License-Identifier: Apache-2.0
// Ops that name more than fits, and use the rest where it is.

#include "tests/unit/engine/clauses/scenarios.h"

namespace offload::model {

namespace {

// Six granules of tensors on a device of four, and an op that names them all. One extent leaves,
// whole: a piece that is called home again would leave a slot behind, and whoever seeks room waits
// for that.
struct Oversized {
  explicit Oversized(World& w) : s0(w.add_stream()), s1(w.add_stream()) {
    a = w.allocate(granules(2));
    w.op(s0, {write(a)});
    w.op(s0, {update(a)});
    b = w.allocate(granules(4));
    w.op(s1, {write(b)});
  }
  int s0, s1;
  int a = -1;
  int b = -1;
};

void uses_all(World& w) {
  const Oversized both(w);
  w.op(both.s1, {update(both.b), update(both.a)});
}

// The op is submitted but not noted yet when another thread has everything brought home.
void comes_home_meanwhile(World& w) {
  const Oversized both(w);
  w.run_all();
  bool begun = false;
  w.crew.run({[&] {
                World::Op op = w.begin(both.s1, {update(both.b), update(both.a)});
                w.forward(op);
                begun = true;
                for (int i = 0; i < 10; ++i) w.crew.yield();
                w.end(op);
              },
              [&] {
                while (!begun) w.crew.yield();
                const World::Inside inside(w);
                w.engine->retire("a test", w.pins());
              }},
             7);
}

// Brought home once there is room, while the op that used it in place is still queued.
void comes_home_after(World& w) {
  const Oversized both(w);
  w.op(both.s1, {update(both.b), update(both.a)});
  w.free_async(both.b, both.s1);
  w.op(both.s0, {update(both.a)});
}

}  // namespace

std::vector<Scenario> in_place_scenarios() {
  const Settings four = {.device_granules = 4, .largest_extent = 2};
  const Settings lifted = {.device_granules = 4, .card_granules = 8, .largest_extent = 2};
  return {
      {Clause::kInPlaceWaitsCopied, "InPlaceWaitsCopied", four, uses_all},
      {Clause::kInPlaceStays, "InPlaceStays", lifted, comes_home_meanwhile},
      {Clause::kInPlaceIsUse, "InPlaceIsUse", four, comes_home_after},
  };
}

}  // namespace offload::model
