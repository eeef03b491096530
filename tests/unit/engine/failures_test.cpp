// SPDX-License-Identifier: Apache-2.0
// Each call of the driver fails once, at each place in a program that takes all the ways: nothing
// is lost, and later calls work.

#include <gtest/gtest.h>

#include "profiler/base/log.h"
#include "tests/unit/engine/model/inspect.h"
#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

// Evicts, restores here and elsewhere, cancels, splits, parks, uses blocks and several streams.
void take_all_ways(World& w) {
  const int s0 = w.add_stream();
  const int s1 = w.add_stream();
  std::vector<int> all;
  const auto allocate = [&](uint64_t bytes, int stream) {
    const int next = stream < 0 ? w.try_allocate(bytes) : w.try_allocate_async(bytes, stream);
    if (next < 0) return -1;
    all.push_back(next);
    (void)w.try_op(s0, {write(next)});
    return next;
  };
  const auto use = [&](int stream, int tensor) {
    if (tensor >= 0 && w.tensor(tensor).live && w.tensor(tensor).written) {
      (void)w.try_op(stream, {update(tensor)});
    }
  };
  const auto free = [&](int tensor, int stream) {
    if (tensor < 0) return;
    if (stream < 0) {
      w.free(tensor);
    } else {
      w.free_async(tensor, stream);
    }
  };
  const int a = allocate(granules(2), -1);
  const int b = allocate(granules(3), s0);
  const int small = allocate(1000, -1);
  w.idle(s0, 3);
  const int c = allocate(granules(4), -1);
  use(s1, a);
  use(s1, b);
  w.idle(s1, 3);
  if (c >= 0) w.press(c);
  use(s0, c);
  free(small, s1);
  allocate(2000, s1);
  free(b, s1);
  const int d = allocate(granules(1), s0);
  w.worker();
  use(s0, a);
  use(s1, d);
  free(a, -1);
  const int last = w.add_stream();
  use(last, d);
  w.destroy_stream(last);
  w.idle(s0, 3);
  for (const int each : all) use(s0, each);
  w.engine->trim(granules(4));
  w.step();
  w.worker();
}

constexpr const char* kCalls[] = {"Create", "Map",  "Unmap", "Pin",         "CreateEvent",
                                  "Record", "Wait", "Query", "Synchronize", "Copy"};

class Failures : public testing::TestWithParam<Call> {
 protected:
  void SetUp() override {
    set_log_sink([](std::string_view) {});
  }
};

TEST_P(Failures, NothingIsLostAndLaterCallsWork) {
  uint64_t failures = 0;
  for (const EvictedShows shows : {EvictedShows::kHostCopy, EvictedShows::kNothing}) {
    for (const Status status : {Status::kError, Status::kOutOfMemory}) {
      for (const char* name : {"eager", "users", "out", "needed", "random:1", "random:2"}) {
        uint64_t nth = 1;
        for (bool failed = true; failed; ++nth) {
          const auto schedule = make_schedule(name);
          World w({.device_granules = 7, .host_granules = 30, .evicted = shows}, *schedule);
          try {
            w.port.fail_call(GetParam(), nth, status);
            take_all_ways(w);
            failed = w.port.failures() != 0;
            failures += w.port.failures();
            w.port.fail_call(GetParam(), 0);
            w.finish();
          } catch (const Failure& failure) {
            FAIL() << name_of(failure.kind) << ": " << failure.what << ", call " << nth
                   << ", schedule " << name;
          }
        }
      }
    }
  }
  EXPECT_GE(failures, 6u) << "the program makes hardly a call of this kind";
}

std::string call_name(const testing::TestParamInfo<Call>& call) {
  return kCalls[static_cast<size_t>(call.param)];
}

INSTANTIATE_TEST_SUITE_P(Each, Failures,
                         testing::Values(Call::kCreate, Call::kMap, Call::kUnmap, Call::kPin,
                                         Call::kCreateEvent, Call::kRecord, Call::kWait,
                                         Call::kQuery, Call::kSynchronize, Call::kCopy),
                         call_name);

// A card that turns out to be smaller than the limit.
TEST(Card, IsSmallerThanTheLimit) {
  expect_holds({.device_granules = 8, .card_granules = 5}, [](World& w) {
    const int s = w.add_stream();
    std::vector<int> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(w.allocate(granules(2)));
      w.op(s, {write(all.back())});
      w.idle(s, 2);
    }
    for (const int each : all) w.op(s, {update(each)});
    EXPECT_LE(w.statistics->mapped_bytes.get(), granules(5));
  });
}

// Memory that another process gives back is found again.
TEST(Card, ARefusalIsNotForEver) {
  Eager eager;
  World w({.device_granules = 4, .move = false}, eager);
  w.port.fail_call(Call::kCreate, 1, Status::kOutOfMemory);
  EXPECT_GE(w.try_allocate(granules(4)), 0);
}

}  // namespace
}  // namespace offload::model
