// SPDX-License-Identifier: Apache-2.0
#pragma once
// For each clause of the protocol a program that needs it: it holds under all schedules, and loses
// a byte, faults or hangs under one of them once the clause is dropped.

#include <ostream>
#include <vector>

#include "interpose/engine/clauses.h"
#include "tests/unit/engine/model/play.h"

namespace offload::model {

struct Scenario {
  Clause clause;
  const char* name;
  Settings settings;
  Program program;
  // Dropped with and without the clause: another that would do instead, where it may.
  Clause instead = Clause::kCount;
};

inline void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

// Those that only threads meeting in the midst of a call need: tests/model shows them.
inline constexpr Clause kExploredOnly[] = {
    Clause::kNoteBeforeUnpin,   Clause::kAllocationReserve, Clause::kGrowthCounts,
    Clause::kDroppedPinsCount,  Clause::kServedTakes,       Clause::kFirstClaimsAll,
    Clause::kAwaitedEventStays, Clause::kBusyIsWaitedFor,   Clause::kOthersStandAside};

std::vector<Scenario> leave_scenarios();     // pins, claims, e1
std::vector<Scenario> copy_scenarios();      // the copy out, and who waits for it
std::vector<Scenario> give_scenarios();      // cancelling, the pool, parking, frees, blocks
std::vector<Scenario> restore_scenarios();   // the way back
std::vector<Scenario> host_scenarios();      // slots, old addresses, room
std::vector<Scenario> flag_scenarios();      // external flags
std::vector<Scenario> graph_scenarios();     // captures and graphs
std::vector<Scenario> in_place_scenarios();  // ops that name more than fits

}  // namespace offload::model
