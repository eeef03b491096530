// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a graph names may be memory of several devices: what it holds, by engine. As GraphHold, it
// is filled and emptied by the engines.

#include "interpose/engine/engine.h"
#include "interpose/life/heap.h"

namespace offload {

class GraphHolds {
 public:
  struct One {
    Engine* engine;
    GraphHold hold;
  };

  GraphHold& of(Engine& engine) {
    for (One& one : of_) {
      if (one.engine == &engine) return one.hold;
    }
    of_.push_back({&engine, {}});
    return of_.back().hold;
  }
  // What is held in both is in `twice`, to be released.
  void merge(const GraphHolds& from, GraphHolds* twice) {
    for (const One& one : from.of_) {
      GraphHold& own = of(*one.engine);
      for (const GraphHold::Held& held : one.hold) {
        if (!own.add(held)) twice->of(*one.engine).add(held);
      }
    }
  }
  // `to` holds all this, too.
  void hold_also(GraphHolds* to) const {
    for (const One& one : of_) one.engine->hold_also(one.hold, &to->of(*one.engine));
  }
  void release() {
    for (One& one : of_) one.engine->release(&one.hold);
  }

 private:
  OwnVector<One> of_;
};

}  // namespace offload
