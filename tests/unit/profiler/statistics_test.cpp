// SPDX-License-Identifier: Apache-2.0
#include "profiler/statistics.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace offload {
namespace {

TEST(Statistics, PeaksStayWhenLevelsFall) {
  auto s = std::make_unique<Statistics>();
  s->add_live(100);
  s->add_live(50);
  s->remove_live(100);
  s->add_live(20);
  s->mapped_bytes.add(80);
  s->mapped_bytes.subtract(30);
  Snapshot now{};
  s->read(now);
  EXPECT_EQ(now.live_bytes.now, 70u);
  EXPECT_EQ(now.live_bytes.peak, 150u);
  EXPECT_EQ(now.mapped_bytes.now, 50u);
  EXPECT_EQ(now.mapped_bytes.peak, 80u);
}

TEST(Statistics, ThePeakHasAPlace) {
  auto s = std::make_unique<Statistics>();
  s->start();
  s->operations.add(10);
  s->rounding_waste_bytes.add(7);
  s->add_live(100);
  s->operations.add(10);
  s->rounding_waste_bytes.add(1);
  s->add_live(100);
  s->remove_live(150);
  s->operations.add(10);
  s->rounding_waste_bytes.add(1000);
  s->add_live(149);
  Snapshot now{};
  s->read(now);
  EXPECT_EQ(now.peak.bytes, 200u);
  EXPECT_EQ(now.peak.operation, 20u);
  EXPECT_EQ(now.peak.rounding_waste_bytes, 8u);
  EXPECT_LE(now.peak.time_ns, now.elapsed_ns);
}

TEST(Statistics, ManyThreadsLoseNothing) {
  auto s = std::make_unique<Statistics>();
  constexpr int kThreads = 4;
  constexpr std::uint64_t kRounds = 20000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        s->launches.add();
        s->add_live(3);
        s->waited(HostWait::slots, 2);
        if (i % 2 == 0) s->remove_live(3);
        s->moved_out(4096, 4096, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Snapshot now{};
  s->read(now);
  EXPECT_EQ(now.launches, kThreads * kRounds);
  EXPECT_EQ(now.live_bytes.now, kThreads * kRounds / 2 * 3);
  EXPECT_GE(now.live_bytes.peak, now.live_bytes.now);
  EXPECT_EQ(now.peak.bytes, now.live_bytes.peak);
  EXPECT_EQ(now.waits_of(HostWait::slots).count, kThreads * kRounds);
  EXPECT_EQ(now.waits_of(HostWait::slots).ns, 2 * kThreads * kRounds);
  EXPECT_EQ(now.bytes_out, 4096 * kThreads * kRounds);
  ASSERT_EQ(now.top_count, 1u);
  EXPECT_EQ(now.top[0].copies_out, kThreads * kRounds);
}

TEST(Statistics, TheFirstReasonStays) {
  auto s = std::make_unique<Statistics>();
  Snapshot now{};
  s->read(now);
  EXPECT_EQ(now.reason, Reason::no_allocations);
  EXPECT_FALSE(now.reason_given);
  s->allocations.add();
  s->read(now);
  EXPECT_EQ(now.reason, Reason::it_fitted);
  s->set_reason(Reason::unknown_entry);
  s->set_reason(Reason::context_error);
  s->read(now);
  EXPECT_EQ(now.reason, Reason::unknown_entry);
  EXPECT_TRUE(now.reason_given);
}

TEST(Statistics, WhatWasRefusedDidNotFit) {
  auto s = std::make_unique<Statistics>();
  Snapshot now{};
  s->allocations.add();
  s->refused_elsewhere.add();
  s->read(now);
  EXPECT_EQ(now.reason, Reason::other_memory_ran_out);
  s->allocations_refused.add();
  s->read(now);
  EXPECT_EQ(now.reason, Reason::nothing_movable);
  EXPECT_FALSE(now.reason_given);
}

// Of two devices; the sum was highest when neither was.
TEST(Statistics, PartsCountForTheWhole) {
  auto whole = std::make_unique<Statistics>();
  auto first = std::make_unique<Statistics>();
  auto second = std::make_unique<Statistics>();
  whole->start();
  whole->add_part(*first);
  whole->add_part(*second);
  first->add_live(100);
  first->remove_live(60);
  whole->operations.add(7);
  second->operations.add(5);
  second->add_live(70);
  second->remove_live(50);
  second->add_live(60);
  first->mapped_bytes.add(30);
  second->mapped_bytes.add(20);
  second->mapped_bytes.subtract(5);
  first->moved_out(10, 10, 3);
  second->moved_out(10, 10, 4);
  second->waited(HostWait::slots, 9);
  second->set_reason(Reason::host_memory_exhausted);
  Snapshot now{};
  whole->read(now);
  EXPECT_EQ(now.live_bytes.now, 120u);
  EXPECT_EQ(now.live_bytes.peak, 120u);
  EXPECT_EQ(now.peak.bytes, 120u);
  EXPECT_EQ(now.peak.operation, 7u);
  EXPECT_EQ(now.mapped_bytes.now, 45u);
  EXPECT_EQ(now.mapped_bytes.peak, 50u);
  EXPECT_EQ(now.operations, 7u) << "one operation may have to do with both";
  EXPECT_EQ(now.bytes_out, 20u);
  EXPECT_EQ(whole->sum(&Statistics::copies_out), 2u);
  EXPECT_EQ(now.waits_of(HostWait::slots).ns, 9u);
  EXPECT_EQ(now.reason, Reason::host_memory_exhausted);
  ASSERT_EQ(now.top_count, 1u);
  EXPECT_EQ(now.top[0].copies_out, 2u);
  first->read(now);
  EXPECT_EQ(now.live_bytes.now, 40u);
  EXPECT_EQ(now.live_bytes.peak, 100u);
  EXPECT_EQ(now.bytes_out, 10u);
}

TEST(Statistics, CausesHaveNamesAndSentences) {
  EXPECT_EQ(name_of(HostWait::reuse_of_an_address), "reuse_of_an_address");
  EXPECT_EQ(name_of(PassThrough::capture), "capture");
  EXPECT_EQ(sentence_of(Reason::policy_none), "OFFLOAD_POLICY=none moves nothing");
}

TEST(Statistics, CountersDoNotShareCacheLines) {
  auto s = std::make_unique<Statistics>();
  auto line = [](const void* member) {
    return reinterpret_cast<std::uintptr_t>(member) / kCacheLine;
  };
  EXPECT_NE(line(&s->launches), line(&s->operations));
  EXPECT_NE(line(&s->live_bytes), line(&s->mapped_bytes));
}

}  // namespace
}  // namespace offload
