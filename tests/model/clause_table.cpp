// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/model/sets.h"

namespace offload::model {

namespace {

constexpr int a = 0, b = 1, c = 2, d = 3, e = 4, f = 5, g = 6;

Program from_set(const char* name, uint64_t index) {
  for (const ProgramSet& set : program_sets()) {
    if (set.name == name) return set.program(index);
  }
  return {};
}

struct Sizes {
  uint64_t device;
  uint32_t largest = 2;
  uint32_t grace = 1;
  uint64_t host = 16;
};

Program script(const char* name, Sizes memory, std::vector<Action> prologue,
               std::vector<Action> thread, uint32_t failures = 0) {
  Program made;
  made.name = name;
  made.settings = {.device_granules = memory.device,
                   .host_granules = memory.host,
                   .largest_extent = memory.largest,
                   .grace = memory.grace,
                   .piece_granules = 1,
                   .patience = 3,
                   .window_granules = 64};
  made.bounds.deviations = 2;
  made.bounds.states = 100'000;
  made.bounds.failures = failures;
  made.streams = 2;
  made.prologue = std::move(prologue);
  made.threads = {std::move(thread)};
  return made;
}

// The GPU does whatever somebody asks for.
Program eager(Program program) {
  program.bounds.eager = true;
  program.bounds.deviations = 0;
  return program;
}

// Nothing may be refused.
Program served(Program program) {
  program.refuses = false;
  return program;
}

Program unmapped(Program program) {
  program.settings.evicted = EvictedShows::kNothing;
  return program;
}

Program fenced(Program program) {
  program.settings.fenced_free = true;
  return program;
}

Program only(Program program, Call call, uint32_t deviations) {
  program.bounds.only = call;
  program.bounds.deviations = deviations;
  return program;
}

Program two(Program program, std::vector<Action> other, uint32_t deviations) {
  program.threads.push_back(std::move(other));
  program.bounds.deviations = deviations;
  return program;
}

// Each of two threads names what the other would have to give away.
Program each_wants_more() {
  return served(two(
      unmapped(script(
          "each wants more", {.device = 4},
          {allocate(a, 2), op(0, {write(a)}), allocate(b, 2), op(1, {write(b)}), idle(0), idle(1),
           allocate(c, 2), op(0, {write(c)}), allocate(d, 2), op(1, {write(d)}), idle(0), idle(1)},
          {op(0, {update(a), update(c)})})),
      {op(1, {update(b), update(d)})}, 4));
}

// A stream is used while another thread gives the driver what makes it wait for the host.
Program used_while_forwarded() {
  return two(script("used while the flag is forwarded", {.device = 4},
                    {allocate(a, 2), allocate(b, 2), op(0, {write(a)}), op(0, {write(b)}), idle(0),
                     idle(0), run_all()},
                    {wait_for_flag(1)}),
             {op(1, {read(b)}), idle(0), idle(0), press(b), allocate(c, 2, 0), op(0, {read(b)}),
              synchronize(0), set_flag()},
             2);
}

// An op has found one buffer at home and fetches another, when a thread that has waited often
// claims the first.
Program claimed_meanwhile() {
  Program made = served(two(
      unmapped(script("claimed meanwhile", {.device = 2, .largest = 1, .grace = 0},
                      {allocate(a, 1), allocate(e, 1), op(0, {write(a)}), op(0, {write(e)}),
                       idle(0), allocate(b, 1), allocate(c, 1), op(0, {write(b)}),
                       op(0, {write(c)}), idle(0), run_all()},
                      {op(0, {update(b), update(c)}), op(0, {update(b), update(c)}), allocate(d, 1),
                       release(c, 0), op(0, {write(d), read(a)}), op(0, {read(b)})})),
      {op(1, {read(e)})}, 3));
  made.settings.patience = 1000;
  made.bounds.worker = 0;
  made.bounds.states = 400'000;
  return made;
}

// Two threads need a slab each, and one more leaves room for what is away.
Program slabs_at_once() {
  Program made = two(unmapped(script("slabs at once", {.device = 2, .largest = 1, .grace = 0},
                                     {allocate(a, 1), op(0, {write(a)}), allocate(b, 1),
                                      op(0, {write(b)}), idle(0), allocate(e, 1, 0),
                                      op(0, {write(e)}), release(e, 0), idle(0), run_all(), trim()},
                                     {allocate(c, 0), op(0, {read(a)})})),
                     {allocate(d, 0)}, 2);
  made.settings.patience = 50;
  made.bounds.worker = false;
  return made;
}

Program comes_home_meanwhile() {
  Program made = two(script("comes home meanwhile", {.device = 4},
                            {allocate(a, 2), op(0, {write(a)}), op(0, {update(a)}), allocate(b, 4),
                             op(1, {write(b)}), run_all()},
                            {op(1, {update(b), update(a)})}),
                     {retire()}, 2);
  made.settings.card_granules = 8;
  return made;
}

// Two buffers fill a device of four granules; their grace is over.
std::vector<Action> full() {
  return {allocate(a, 2), allocate(b, 2), op(0, {write(a)}), op(0, {write(b)}), idle(0), idle(0)};
}

std::vector<Action> operator+(std::vector<Action> first, const std::vector<Action>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<NeededBy> scripts() {
  const Sizes four{.device = 4};
  const Sizes ones{.device = 2, .largest = 1};
  return {
      {Clause::kUserWaitsFill, "UserWaitsFill", claimed_meanwhile()},
      {Clause::kFillInLeave, "FillInLeave",
       only(
           script("leaves while it returns", {.device = 4, .largest = 1},
                  full() + std::vector<Action>{press(a), press(b), op(0, {read(a), read(b)}),
                                               run_all(), idle(0), press(a), allocate(c, 2),
                                               op(0, {write(c)}), release(c, 0)},
                  {op(0, {read(a)}), idle(0), idle(0), press(a), allocate(e, 2), op(1, {write(e)})},
                  1),
           Call::kCopy, 1)},
      {Clause::kGrace, "Grace",
       script("hidden user comes later", {.device = 4, .grace = 3},
              {allocate(a, 2), allocate(b, 2), op(0, {write(b)}), idle(0), idle(0), idle(0)},
              {op(0, {write(a)}), press(a), allocate(c, 2), op(0, {write(c)}),
               op(0, {hidden_update(a)})})},
      {Clause::kGraceStreams, "GraceStreams",
       script("hidden user is slow", {.device = 4, .grace = 2}, full(),
              {op(0, {update(a)}), op(1, {hidden_update(a)}), idle(0), idle(0), press(a),
               allocate(c, 2), op(0, {write(c)})})},
      {Clause::kUseRestartsGrace, "UseRestartsGrace",
       script("hidden user after a late use", {.device = 4, .grace = 3},
              full() + std::vector<Action>{idle(0), idle(0)},
              {op(0, {update(a)}), press(a), allocate(c, 2), op(0, {write(c)}),
               op(0, {hidden_update(a)})})},
      {Clause::kFreeWaits, "FreeWaits",
       script("freed for another", four, {allocate(a, 2), op(0, {write(a)}), op(0, {update(a)})},
              {release(a), allocate(d, 2), op(1, {write(d)})})},
      {Clause::kUncachedFreeFencesAll, "UncachedFreeFencesAll",
       fenced(script("freed for another, fenced", four,
                     {allocate(a, 2), op(0, {write(a)}), op(0, {update(a)})},
                     {release(a), allocate(d, 2), op(1, {write(d)})}))},
      {Clause::kRestoreForgetsWaits, "RestoreForgetsWaits",
       script("returns to who waited", {.device = 2},
              {allocate(a, 2), op(0, {write(a)}), op(1, {read(a)}), idle(0), idle(0), press(a),
               allocate(c, 2), op(0, {write(c)})},
              {release(c, 0), op(1, {read(a)})})},
      {Clause::kAddressWaitsFence, "AddressWaitsFence",
       script("an address is given up early", ones, {allocate(a, 2), op(0, {write(a)})},
              {release(a, 0), allocate(b, 1, 0), op(0, {write(b)})})},
      {Clause::kCalledOffSlotWaits, "CalledOffSlotWaits",
       script("called off, and the slot gives way", {.device = 4, .host = 5},
              {allocate(a, 2), allocate(b, 1), allocate(c, 1), op(1, {write(b)}), op(1, {write(c)}),
               run_all(), op(0, {write(a)}), idle(1), idle(1), press(a), op(0, {update(a)}),
               idle(1), idle(1), press(a), op(0, {update(a)}), idle(1), idle(1)},
              {press(b), press(c)})},
      {Clause::kFreedSlotWaits, "FreedSlotWaits",
       script(
           "freed while away, and the slot gives way", {.device = 8, .host = 7},
           {allocate(a, 2), allocate(b, 2), allocate(c, 1), allocate(d, 1), allocate(e, 1),
            allocate(f, 1), op(1, {write(c)}), op(1, {write(d)}), op(1, {write(e)}),
            op(1, {write(f)}), run_all(), op(0, {write(a)}), op(0, {write(b)}), idle(1), idle(1),
            press(a), press(b)},
           {allocate(g, 4), release(a, 0), release(b, 0), press(c), press(d), press(e), press(f)})},
      {Clause::kFlagKeepsInPlace, "FlagKeepsInPlace",
       script(
           "used in place behind the flag", {.device = 6},
           {allocate(a, 2), allocate(c, 2), op(0, {write(a)}), op(0, {write(c)}), begin_capture(0),
            op(0, {update(c)}), end_capture(0), allocate(b, 4), op(1, {write(b)}), run_all()},
           {wait_for_flag(1), op(1, {update(b), update(a)}), destroy_graph(), release(c, 0),
            op(1, {update(a)}), set_flag()})},
      {Clause::kFlagLeavesEvent, "FlagLeavesEvent",
       eager(served(
           script("used before the flag", four,
                  {allocate(a, 2), allocate(b, 2), op(1, {write(a)}), idle(0), idle(0), run_all()},
                  {wait_for_flag(1), op(1, {write(b)}), allocate(c, 2, 0), op(0, {write(c)}),
                   synchronize(0), set_flag()})))},
      {Clause::kFlagKeepsPool, "FlagKeepsPool",
       script("the pool is behind the flag", ones,
              {allocate(a, 2), op(0, {write(a)}), idle(0), idle(0), press(a), allocate(b, 1),
               op(0, {write(b)}), idle(0), idle(0), run_all()},
              {wait_for_flag(1), release(a, 1), allocate(c, 1, 0), op(0, {write(c)}),
               synchronize(0), set_flag()})},
      {Clause::kFlagKeepsParked, "FlagKeepsParked",
       script(
           "what is parked is behind the flag", four,
           {allocate(a, 2), allocate(b, 2), op(1, {write(a)}), op(0, {write(b)}), idle(0), idle(0)},
           {wait_for_flag(1), release(a, 1), allocate(c, 2, 0), op(0, {write(c)}), synchronize(0),
            set_flag()})},
      {Clause::kFlagKeepsBlocks, "FlagKeepsBlocks",
       script("a block is behind the flag", four,
              {allocate(a, 0), allocate(b, 0), op(1, {write(a)}), op(1, {write(b)})},
              {wait_for_flag(1), release(a, 1), allocate(c, 0, 0), op(0, {write(c)}),
               synchronize(0), set_flag()})},
      {Clause::kFlagKeepsPinning, "FlagKeepsPinning",
       unmapped(script("pins behind the flag", four, full() + std::vector<Action>{run_all()},
                       {wait_for_flag(1), allocate(c, 2, 0), set_flag()}))},
      {Clause::kUseCancels, "UseCancels",
       script("used while leaving", four, full(),
              {press(a), op(0, {update(a)}), idle(0), allocate(c, 2), op(0, {write(c)})})},
      {Clause::kFreeCancels, "FreeCancels",
       script("freed while leaving", four, full(),
              {press(a), release(a, 0), allocate(d, 2, 0), op(0, {write(d)}), idle(0),
               allocate(c, 2), op(0, {write(c)})})},
      {Clause::kCalledOffCopyReads, "CalledOffCopyReads",
       script("called off copy waits", {.device = 3},
              {allocate(b, 1), allocate(a, 2), op(0, {write(a)}), idle(0), run_all(),
               op(1, {write(b)}), idle(0), idle(0), press(b), press(a)},
              {release(a, 0), synchronize(0), allocate(d, 1), op(0, {write(d)}), allocate(e, 1),
               op(0, {write(e)})})},
      {Clause::kAllocationHasPosition, "AllocationHasPosition",
       script("waits for everything", ones,
              {allocate(a, 1), allocate(b, 1), op(0, {write(a)}), idle(0), idle(0), press(a)},
              {allocate(e, 0, 0), release(b), op(1, {write(e)})})},
      {Clause::kBlockKeepsFence, "BlockKeepsFence",
       script("block passes on", ones,
              {allocate(b, 1), allocate(a, 1), op(0, {write(b)}), op(0, {write(a)}), idle(0),
               idle(0), press(b), allocate(c, 1), run_all(), press(a)},
              {allocate(e, 0), release(e), op(0, {update(b)})})},
      {Clause::kNewStreamWaits, "NewStreamWaits",
       script("block for a new stream", ones,
              {allocate(a, 1), allocate(c, 1), op(0, {write(a)}), idle(0), idle(0), press(a)},
              {allocate(e, 0), new_stream(), op(2, {write(e)})})},
      {Clause::kParkHoldsFill, "ParkHoldsFill",
       unmapped(script(
           "freed while it returns", four,
           full() + std::vector<Action>{press(a), allocate(c, 2), op(0, {write(c)}), idle(0),
                                        idle(0), press(c), allocate(d, 2), release(d)},
           {op(0, {read(a), read(b), read(c)}), release(a), allocate(e, 2), op(1, {write(e)})}))},
      {Clause::kRestoreWaitsCopied, "RestoreWaitsCopied",
       script("returns at once", four,
              {allocate(a, 2), allocate(b, 2), op(0, {write(a)}), idle(0), idle(0), press(a)},
              {allocate(c, 2), release(b, 1), op(1, {update(a)}), op(0, {write(c)})})},
      {Clause::kFailedCopyReadsSlot, "FailedCopyReadsSlot",
       script("half a copy in", {.device = 6, .host = 7},
              {allocate(a, 2),
               allocate(b, 2),
               allocate(c, 1),
               allocate(d, 1),
               op(1, {write(b)}),
               op(0, {write(a)}),
               op(0, {write(c)}),
               op(0, {write(d)}),
               idle(0),
               idle(0),
               press(a),
               allocate(e, 2),
               release(e, 0),
               press(b),
               op(1, {update(b)}),
               idle(0),
               idle(0),
               press(b),
               op(1, {update(b)}),
               idle(0),
               idle(0)},
              {op(0, {read(a)}), synchronize(0), release(a, 0), press(c), press(d)}, 1)},
      {Clause::kPinsDroppedToWait, "PinsDroppedToWait", each_wants_more()},
      {Clause::kDroppedPinsCount, "DroppedPinsCount",
       served(two(unmapped(script("pins are dropped meanwhile", four,
                                  full() + std::vector<Action>{allocate(c, 2), op(0, {write(c)}),
                                                               idle(0), idle(0)},
                                  {op(0, {update(b), update(c)})})),
                  {op(1, {update(a)})}, 2))},
      // While something waits for the host nobody goes first, and this stands alone.
      {Clause::kServedTakes, "ServedTakes", {}, "threads-served", Clause::kOthersStandAside},
      {Clause::kLineInTurn, "LineInTurn", {}, "threads-three", Clause::kOthersStandAside},
      {Clause::kFirstClaimsAll, "FirstClaimsAll", {}, "threads-looping"},
      {Clause::kOthersStandAside, "OthersStandAside", {}, "threads-looping"},
      {Clause::kInPlaceStays, "InPlaceStays", comes_home_meanwhile()},
      {Clause::kExternalFlag, "ExternalFlag",
       script("read before and behind the flag", four,
              {allocate(a, 2), allocate(b, 2), op(0, {write(a)}), op(0, {write(b)}), idle(0),
               idle(0), run_all()},
              {wait_for_flag(1), op(1, {read(b)}), idle(0), idle(0), press(b), allocate(c, 2, 0),
               op(0, {read(b)}), synchronize(0), set_flag()}),
       nullptr, Clause::kFlagKeepsInPlace},
      {Clause::kAwaitedEventStays, "AwaitedEventStays", used_while_forwarded()},
      {Clause::kFlagCountsOpening, "FlagCountsOpening", used_while_forwarded(), nullptr,
       Clause::kFlagKeepsInPlace},
      {Clause::kFlagToldToNew, "FlagToldToNew",
       script("the flag was there before", four, std::vector<Action>{flag_before(1)} + full(),
              {op(1, {read(b)}), idle(0), idle(0), press(b), allocate(c, 2, 0), op(0, {read(b)}),
               synchronize(0), set_flag()}),
       nullptr, Clause::kFlagKeepsInPlace},
      {Clause::kUnusedIsEvictable, "UnusedIsEvictable",
       served(script("only what is unused can leave", four,
                     {allocate(a, 2), allocate(b, 2), idle(0), idle(0)},
                     {allocate(c, 2), op(0, {write(c)})}))},
      {Clause::kAddressWaitsUnmap, "AddressWaitsUnmap",
       script("an address comes again", ones, {allocate(a, 2), op(0, {write(a)})},
              {release(a, 0), allocate(b, 1, 0), op(0, {write(b)})})},
      {Clause::kRestoreReserve, "RestoreReserve",
       unmapped(script(
           "one wants all", {.device = 4, .largest = 1, .host = 4},
           {allocate(a, 1), op(0, {write(a)}), allocate(b, 1), op(0, {write(b)}), allocate(c, 1),
            op(0, {write(c)}), allocate(d, 1), op(0, {write(d)}), idle(0), idle(0)},
           {allocate(e, 4), op(0, {update(a)}), op(0, {update(b)}), op(0, {update(c)}),
            op(0, {update(d)})}))},
      {Clause::kRoomToSwap, "RoomToSwap",
       unmapped(script("blocks leave room", {.device = 4, .largest = 1},
                       {allocate(a, 2), op(0, {write(a)}), idle(0), idle(0), allocate(b, 3),
                        op(0, {write(b)}), idle(0), idle(0)},
                       {allocate(c, 0), allocate(d, 0), allocate(e, 0), op(0, {update(a)}),
                        op(0, {update(b)})}))},
      {Clause::kGrowthCounts, "GrowthCounts", slabs_at_once()},
      {Clause::kSlotShownAfterCopied, "SlotShownAfterCopied",
       script("a stray reads the slot", {.device = 2},
              {allocate(a, 2), op(0, {write(a)}), idle(0), idle(0)},
              {press(a), allocate(c, 2), synchronize(0), idle(1), op(0, {hidden_read(a)}),
               synchronize(0)})},
  };
}

}  // namespace

const std::vector<NeededBy>& clause_table() {
#define NEEDED(clause, set, index)                   \
  NeededBy {                                         \
    Clause::k##clause, #clause, from_set(set, index) \
  }
  static const std::vector<NeededBy> table = [] {
    std::vector<NeededBy> all = {
        NEEDED(PinDuringOp, "threads", 2),
        NEEDED(NoteBeforeUnpin, "threads", 2),
        NEEDED(ClaimChecksPins, "threads", 2),
        NEEDED(UseInLeave, "readers", 63),
        NEEDED(AllStreamsInLeave, "readers", 63),
        NEEDED(UnnamedMayBeUsed, "unused", 40),
        NEEDED(CopyOutWaitsLeave, "plain", 4),
        NEEDED(CopyOutWaitsSlot, "extents", 15),
        NEEDED(FillIsCopied, "plain", 4),
        NEEDED(UserWaitsFill, "plain", 4),
        NEEDED(EachStreamWaitsFill, "three", 16),
        NEEDED(PoolKeepsFence, "plain", 4),
        NEEDED(ParkKeepsFence, "freed", 50),
        NEEDED(FreeHasPosition, "freed", 50),
        NEEDED(RestoreWaitsFence, "plain", 4),
        NEEDED(RestoreChecksLeave, "plain", 4),
        NEEDED(RestoreSetsFill, "plain", 4),
        NEEDED(SlotKeepsFence, "extents", 15),
        NEEDED(FailedCopyKeepsSlot, "failing-slots", 66),
        NEEDED(FailedMapKeepsFence, "failing", 4),
        NEEDED(InPlaceWaitsCopied, "in-place", 0),
        NEEDED(InPlaceIsUse, "in-place", 0),
        NEEDED(AllocationReserve, "reserve", 6272),
        NEEDED(WorkerWaitsLeave, "plain", 4),
        NEEDED(BusyIsWaitedFor, "plain", 4),
        NEEDED(CaptureLeavesEvent, "captures", 8),
        NEEDED(CaptureUntouched, "captures", 9),
        NEEDED(ThawPaysWaits, "captures", 2179),
        NEEDED(GraphHolds, "graphs", 8),
        NEEDED(FreedIsHeld, "graphs", 106),
        NEEDED(HeldGoesBehindUse, "graphs", 107),
    };
    for (NeededBy& each : scripts()) all.push_back(std::move(each));
    return all;
  }();
#undef NEEDED
  return table;
}

}  // namespace offload::model
