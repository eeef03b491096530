// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the parts of the engine's memory need: a port over a modelled device, streams, statistics.

#include <memory>

#include "interpose/engine/streams.h"
#include "tests/unit/engine/arena_heap.h"
#include "tests/unit/engine/model/port.h"
#include "tests/unit/engine/model/schedules.h"

namespace offload::model {

inline constexpr uint64_t kGranularity = 4096;

struct Parts {
  explicit Parts(Schedule& schedule, uint64_t device_granules = 64)
      : device(device_granules * kGranularity, schedule),
        port(device, crew),
        statistics(std::make_unique<Statistics>()),
        streams(std::make_unique<Streams>(port, *statistics, 512)) {}
  ~Parts() {
    streams.reset();
    free_own_heap();
  }

  Crew crew;
  Device device;
  ModelPort port;
  std::unique_ptr<Statistics> statistics;
  std::unique_ptr<Streams> streams;
};

}  // namespace offload::model
