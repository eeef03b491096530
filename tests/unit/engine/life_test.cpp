// SPDX-License-Identifier: Apache-2.0
// Keeping, retiring, a lost context, what the program may ask, tables of pointers.

#include <gtest/gtest.h>

#include "profiler/base/log.h"
#include "tests/unit/engine/model/inspect.h"
#include "tests/unit/engine/model/play.h"

namespace offload::model {
namespace {

constexpr Settings kFour = {.device_granules = 4};

TEST(Keep, WhatIsKeptIsThereAndStays) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    w.idle(s, 3);
    w.policy.first = {w.tensor(a).id};
    const int c = w.allocate(granules(2));
    w.op(s, {write(c)});
    w.run(s);
    EXPECT_TRUE(w.away(a));
    EXPECT_EQ(w.engine->keep(w.tensor(a).address + 100, w.pins()), Status::kOk);
    EXPECT_FALSE(w.away(a));
    // The content is there now, without another word.
    std::vector<Memory::Run> runs;
    ASSERT_TRUE(w.device.memory().resolve(w.tensor(a).address, granules(2), &runs));
    EXPECT_EQ(runs[0].cells[0], w.tensor(a).expected[0]);
    w.idle(s, 3);
    const int d = w.allocate(granules(2));
    w.op(s, {write(d)});
    EXPECT_FALSE(w.away(a));
    EXPECT_EQ(w.engine->keep(1000, w.pins()), Status::kNotOurs);
  });
}

TEST(Ask, WhatIsFreedCanBeHadAgain) {
  Eager eager;
  World w({.device_granules = 8}, eager);
  uint64_t before = 0;
  uint64_t after = 0;
  uint64_t total = 0;
  w.engine->memory_info(&before, &total);
  const int block = w.allocate(1000);
  w.free(block);
  w.engine->memory_info(&after, &total);
  EXPECT_EQ(after, before);
}

TEST(Ask, NoSizeIsTooLargeToBeRefused) {
  Eager eager;
  World w({.device_granules = 8}, eager);
  for (const uint64_t below : {0, 1, 4096, 0xffff}) {
    Address address = 0;
    EXPECT_EQ(w.engine->allocate(~uint64_t{0} - below, &w.pins(), &address), Status::kOutOfMemory);
  }
}

TEST(Retire, AllThatTheCardHasCanBeHadThen) {
  set_log_sink([](std::string_view) {});
  const auto fill = [](World& w) {
    const int s = w.add_stream();
    w.op(s, {write(w.allocate(granules(2)))});
    w.engine->retire("a test", w.pins());
    for (int i = 0; i < 199; ++i) {
      const int next = w.allocate(granules(2));
      ASSERT_GE(next, 0) << "after " << i;
      w.op(s, {write(next)});
    }
  };
  // It is long, and how the copies run does not matter to it.
  expect_holds({.device_granules = 4, .card_granules = 400}, fill, {.seeds = 2, .orders = 2});
}

TEST(Retire, EverythingComesHomeAndNothingMovesAfter) {
  set_log_sink([](std::string_view) {});
  expect_holds({.device_granules = 4, .card_granules = 8}, [](World& w) {
    const int s = w.add_stream();
    std::vector<int> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(w.allocate(granules(2)));
      w.op(s, {write(all.back())});
      w.idle(s, 3);
    }
    EXPECT_EQ(w.statistics->host_bytes.get(), granules(4));
    w.engine->retire("a test", w.pins());
    EXPECT_TRUE(w.engine->retired());
    EXPECT_EQ(w.statistics->host_bytes.get(), 0u);
    for (const int each : all) {
      std::vector<Memory::Run> runs;
      ASSERT_TRUE(w.device.memory().resolve(w.tensor(each).address, granules(2), &runs));
      w.run(s);
      EXPECT_EQ(runs[0].cells[0], w.tensor(each).expected[0]);
    }
    w.idle(s, 3);
    EXPECT_EQ(w.try_allocate(granules(2)), -1);
    w.free(all[0]);
    const int again = w.allocate(granules(2));
    w.op(s, {write(again)});
  });
}

TEST(Retire, WhatDoesNotFitComesHomeWhenItIsUsed) {
  set_log_sink([](std::string_view) {});
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    std::vector<int> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(w.allocate(granules(2)));
      w.op(s, {write(all.back())});
      w.idle(s, 3);
    }
    w.engine->retire("a test", w.pins());
    EXPECT_FALSE(w.engine->retired());
    for (const int each : all) w.op(s, {update(each)});
  });
}

// Where the card has no more, it is asked in vain for the larger size and for the smaller.
TEST(Retire, EndsWhereBuffersOfTwoSizesDoNotFit) {
  set_log_sink([](std::string_view) {});
  expect_holds({.device_granules = 4, .card_granules = 4}, [](World& w) {
    const int s = w.add_stream();
    const int large = w.allocate(granules(2));
    const int small = w.allocate(granules(1));
    for (const int each : {large, small}) w.op(s, {write(each)});
    w.idle(s, 4);
    const int all = w.allocate(granules(4));
    w.op(s, {write(all)});
    w.engine->retire("a test", w.pins());
    EXPECT_FALSE(w.engine->retired());
    for (const int each : {large, small, all}) w.op(s, {update(each)});
  });
}

// Frees of other threads, while the first waits, move buffers about in the list.
TEST(Retire, NoBufferIsForgottenWhileOthersFree) {
  set_log_sink([](std::string_view) {});
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Late late(Late::First::kUsers);
    World w({.device_granules = 6, .card_granules = 30, .largest_extent = 1}, late);
    const int s = w.add_stream();
    std::vector<int> all;
    for (int i = 0; i < 8; ++i) {
      all.push_back(w.allocate(granules(2)));
      w.op(s, {write(all.back())});
      w.idle(s, 3);
    }
    for (int i = 0; i < 3; ++i) {  // so that those at the end of the list are away
      w.op(s, {read(all[static_cast<size_t>(i)])});
      w.idle(s, 3);
    }
    EXPECT_TRUE(w.away(all[7]));
    w.crew.run({[&] {
                  const World::Inside inside(w);
                  w.engine->retire("a test", w.pins());
                },
                [&] {
                  w.free_async(all[0], s);
                  w.free_async(all[1], s);
                }},
               seed);
    EXPECT_EQ(w.statistics->host_bytes.get(), 0u);
    w.finish();
  }
}

// What had happened by then is counted; what had not is said not to be.
TEST(ContextGone, CopiesThatAreNotCountedAreKnown) {
  for (const bool collected : {true, false}) {
    const auto schedule = make_schedule("eager");
    World w({.device_granules = 2}, *schedule);
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.idle(s, 3);
    const int b = w.allocate(granules(2));
    w.op(s, {write(b)});
    w.run_all();
    if (collected) w.engine->collect();
    EXPECT_EQ(w.lose_context(), collected);
    EXPECT_EQ(w.statistics->copies_out.get(), collected ? 1u : 0u);
  }
}

TEST(ContextGone, AllMemoryIsGivenBackAndANewContextWorks) {
  for (const EvictedShows shows : {EvictedShows::kHostCopy, EvictedShows::kNothing}) {
    for (const char* name : {"eager", "users", "needed", "random:3"}) {
      const auto schedule = make_schedule(name);
      World w({.device_granules = 4, .evicted = shows}, *schedule);
      const int s = w.add_stream();
      for (int i = 0; i < 3; ++i) {
        const int a = w.allocate(granules(2));
        w.op(s, {write(a)});
        w.idle(s, 3);
      }
      w.free_async(0, s);
      const int small = w.allocate(1000);
      w.op(s, {write(small)});
      w.lose_context();
      EXPECT_EQ(w.device.memory().device_used(), 0u);
      EXPECT_EQ(w.statistics->mapped_bytes.get(), 0u);
      EXPECT_EQ(w.statistics->live_bytes.get(), 0u);
      EXPECT_EQ(w.statistics->host_bytes.get(), 0u);
      EXPECT_EQ(w.statistics->rounding_waste_bytes.get(), 0u);
      const int fresh = w.add_stream();
      std::vector<int> all;
      for (int i = 0; i < 4; ++i) {
        all.push_back(w.allocate(granules(2)));
        w.op(fresh, {write(all.back())});
        w.idle(fresh, 3);
      }
      for (const int each : all) w.op(fresh, {update(each)});
      w.free(all[0]);
      for (size_t i = 1; i < all.size(); ++i) w.op(fresh, {read(all[i])});
      w.run_all();
      w.worker();
      EXPECT_GE(w.statistics->demand_misses.get(), 1u);
    }
  }
}

TEST(Asked, MemoryInfoCountsWhatCouldBeMappedWithoutMoving) {
  expect_holds({.device_granules = 8}, [](World& w) {
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    const int s = w.add_stream();
    w.engine->memory_info(&free_bytes, &total_bytes);
    EXPECT_EQ(free_bytes, granules(8));
    EXPECT_EQ(total_bytes, granules(8));
    const int a = w.allocate_async(granules(6), s);
    w.op(s, {write(a)});
    w.engine->memory_info(&free_bytes, &total_bytes);
    EXPECT_EQ(free_bytes, granules(2));
    w.idle(s, 3);
    w.allocate_async(granules(6), s);
    w.engine->memory_info(&free_bytes, &total_bytes);
    EXPECT_EQ(w.engine->live_bytes(), granules(12));
    EXPECT_EQ(free_bytes, 0U);
    EXPECT_EQ(total_bytes, granules(12));
    w.free_async(a, s);
    w.engine->memory_info(&free_bytes, &total_bytes);
    EXPECT_EQ(free_bytes, granules(2));
    EXPECT_EQ(total_bytes, granules(8));
    EXPECT_EQ(w.engine->live_bytes(), granules(6));
    EXPECT_LE(w.engine->mapped_bytes(), granules(8));
  });
}

TEST(Asked, TrimGivesBackWhatNobodyUses) {
  expect_holds({.device_granules = 8}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate_async(granules(4), s);
    const int b = w.allocate_async(granules(2), s);
    w.op(s, {write(a), write(b)});
    w.free_async(a, s);
    w.run_all();
    w.engine->trim(granules(3));
    EXPECT_EQ(w.engine->mapped_bytes(), granules(2));
    w.worker();
    w.check(b);
  });
}

TEST(Asked, DescribeKnowsLiveAllocationsOnly) {
  Eager eager;
  World w(kFour, eager);
  const int s = w.add_stream();
  const int a = w.allocate(granules(1) + 512);
  const int small = w.allocate(700);
  AllocationInfo info;
  EXPECT_TRUE(w.engine->describe(w.tensor(a).address + granules(1), &info));
  EXPECT_EQ(info.base, w.tensor(a).address);
  EXPECT_EQ(info.bytes, granules(1) + 512);
  EXPECT_FALSE(w.engine->describe(w.tensor(a).address + granules(1) + 512, &info));
  EXPECT_TRUE(w.engine->describe(w.tensor(small).address + 699, &info));
  EXPECT_FALSE(w.engine->describe(w.tensor(small).address + 700, &info));
  w.free_async(a, s);
  w.free_async(small, s);
  EXPECT_FALSE(w.engine->describe(w.tensor(a).address, &info));
  EXPECT_FALSE(w.engine->describe(w.tensor(small).address, &info));
  EXPECT_EQ(w.engine->free(w.tensor(a).address, &w.pins()), Status::kInvalid);
  EXPECT_EQ(w.engine->free(w.tensor(small).address, &w.pins()), Status::kInvalid);
  EXPECT_EQ(w.engine->free(12345, &w.pins()), Status::kNotOurs);
}

// An address a little before or after a buffer names it.
TEST(Names, TheGapsNameTheirBuffer) {
  expect_holds(kFour, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int b = w.allocate(granules(2));
    w.op(s, {write(a)});
    w.op(s, {write(b)});
    for (const int64_t offset : {-int64_t{kGranule}, int64_t{3 * kGranule} - 8}) {
      w.idle(s, 3);
      w.press(a);
      EXPECT_EQ(w.states(a), "L");
      w.op(s, {{a, Mode::kUpdate, true, offset}});
      EXPECT_EQ(w.states(a), "R");
    }
  });
}

// A table of pointers that came from the host names what it holds, in a block or in a buffer.
TEST(Tables, ATableNamesWhatItHolds) {
  for (const uint64_t bytes : {uint64_t{1024}, granules(1)}) {
    expect_holds({.device_granules = 8}, [bytes](World& w) {
      const int s = w.add_stream();
      const int a = w.allocate(granules(2));
      const int b = w.allocate(granules(2));
      const int table = w.allocate(bytes);
      w.op(s, {write(a), write(b)});
      w.copy_table(s, table, {a, b});
      w.idle(s, 3);
      w.press({a, b});
      w.op(s, {read(table), hidden_update(a), hidden_update(b)});
      EXPECT_EQ(w.states(a), "R");
      EXPECT_EQ(w.states(b), "R");
      // Overwritten in part: the rest still names.
      w.copy_table(s, table, {a});
      w.idle(s, 3);
      w.press({b});
      w.op(s, {read(table), hidden_update(b)});
      EXPECT_EQ(w.states(b), "R");
    });
  }
}

// A table of tables, and one that is reached by no other way than through the first.
TEST(Tables, ATableOfTablesNamesWhatTheyHold) {
  for (const uint64_t bytes : {uint64_t{1024}, granules(1)}) {
    expect_holds({.device_granules = 8}, [bytes](World& w) {
      const int s = w.add_stream();
      const int a = w.allocate(granules(2));
      const int inner = w.allocate(bytes);
      const int outer = w.allocate(bytes);
      w.op(s, {write(a)});
      w.copy_table(s, outer, {inner});
      w.copy_table(s, inner, {a});
      w.idle(s, 3);
      w.press({a});
      w.op(s, {read(outer), hidden_update(a)});
      EXPECT_EQ(w.states(a), "R");
    });
  }
}

TEST(Tables, ACopyOfATableNamesTheSame) {
  expect_holds({.device_granules = 8}, [](World& w) {
    const int s = w.add_stream();
    const int a = w.allocate(granules(2));
    const int table = w.allocate(1024);
    const int copy = w.allocate(1024);
    w.op(s, {write(a)});
    w.copy_table(s, table, {a});
    World::Op op = w.begin(s, {read(table), write(copy)});
    w.forward(op);
    w.engine->data_copied(w.tensor(copy).address,
                          reinterpret_cast<const void*>(w.tensor(table).address), 1024);
    w.end(op);
    w.free_async(table, s);
    w.idle(s, 3);
    w.press({a});
    w.op(s, {read(copy), hidden_update(a)});
    EXPECT_EQ(w.states(a), "R");
  });
}

// Two that point to each other, and to everything.
TEST(Tables, ACircleEnds) {
  Eager eager;
  World w({.device_granules = 8}, eager);
  const int s = w.add_stream();
  const int a = w.allocate(granules(2));
  const int one = w.allocate(1024);
  const int two = w.allocate(1024);
  w.op(s, {write(a)});
  const std::vector<int> all(60, two);
  std::vector<int> back(60, one);
  back.push_back(a);
  w.copy_table(s, one, all);
  w.copy_table(s, two, back);
  w.op(s, {read(one), hidden_update(a)});
  w.check(a);
}

TEST(Tables, FreedMemoryHoldsNoTable) {
  Eager eager;
  World w({.device_granules = 8}, eager);
  const int s = w.add_stream();
  const int a = w.allocate(granules(2));
  const int table = w.allocate(1024);
  w.op(s, {write(a)});
  w.copy_table(s, table, {a});
  w.free(table);
  const int again = w.allocate(1024);
  ASSERT_EQ(w.tensor(again).address, w.tensor(table).address);
  w.idle(s, 3);
  w.press(a);
  w.op(s, {write(again)});
  EXPECT_EQ(w.states(a), "L");
}

// More names than the list of pins has room for: everything is brought back, nothing leaves.
TEST(Pins, AnOpThatNamesMoreThanFits) {
  Late late(Late::First::kUsers);
  World w({.device_granules = 12, .host_granules = 12000, .largest_extent = 1}, late);
  w.check_books = false;
  const int s = w.add_stream();
  const int a = w.allocate(granules(1));
  const int b = w.allocate(granules(1));
  const int last = w.allocate(granules(1));
  w.op(s, {write(a), write(b), write(last)});
  w.idle(s, 3);
  w.press({last});
  const int filler = w.allocate(granules(10));
  w.op(s, {write(filler)});
  w.free(filler);
  World::Op op = w.name(s, {});
  for (uint32_t i = 0; i < kMaxPins; ++i) {
    w.engine->name(*op.pins, w.tensor(i % 2 == 0 ? a : b).address);
  }
  op.args = {update(last)};
  w.engine->name(*op.pins, w.tensor(last).address);
  w.start(op);
  ASSERT_EQ(op.status, Status::kOk);
  EXPECT_EQ(w.states(last), "R");
  w.press({last});
  EXPECT_EQ(w.states(last), "R");
  w.forward(op);
  w.end(op);
  w.finish();
}

}  // namespace
}  // namespace offload::model
