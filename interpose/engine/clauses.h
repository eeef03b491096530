// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clauses of the hand-over protocol (README.md beside this file), each named where the code
// obeys it. In a test build each can be dropped, one at a time, so that a test shows what it is
// there for: a byte lost, a fault, or a hang. In the library they are constants and cost nothing.

namespace offload {

enum class Clause {
  kPinDuringOp,        // an op pins what it names until its position is noted
  kNoteBeforeUnpin,    // and drops the pins only then
  kClaimChecksPins,    // a claim is dropped when a thread pins the buffer
  kUseInLeave,         // e1 holds the uses
  kFillInLeave,        // e1 holds the fill: a buffer restored and never used is still being filled
  kAllStreamsInLeave,  // e1 holds every stream that named the buffer, not only the last
  kUnnamedMayBeUsed,   // of what no op has named: all that was submitted to any stream
  kGrace,              // no eviction before `grace` ops have passed since the last named use
  kUseRestartsGrace,   // which begins anew with each of them
  kGraceStreams,       // e1 holds the streams that ran an op during grace
  kCopyOutWaitsLeave,  // the copy out waits for e1
  kCopyOutWaitsSlot,   // and for what still reads or writes the slot
  kFillIsCopied,       // the new owner's fill is e2
  kUserWaitsFill,      // a stream waits for the fill at its first use
  kEachStreamWaitsFill,    // each stream, not only the first
  kUseCancels,             // a use cancels a pending eviction
  kFreeCancels,            // so does a free
  kCalledOffSlotWaits,     // the slot of what was called off is free behind that copy
  kFreedSlotWaits,         // and that of what is freed while it is away behind its own
  kCalledOffCopyReads,     // a copy that was called off still reads its extent: it is not destroyed
  kPoolKeepsFence,         // an extent in the pool keeps its fence
  kParkKeepsFence,         // so does a parked buffer
  kFreeWaits,              // a free that synchronises waits for the program's streams
  kUncachedFreeFencesAll,  // one that does not stands behind all that was submitted to any
  kFreeHasPosition,        // a free stands behind the waits that the program put before it
  kAllocationHasPosition,  // who waits for a stream waits for what its allocations wait for
  kBlockKeepsFence,        // a block of a slab remembers what it had to wait for, as a buffer does
  kNewStreamWaits,         // a stream may use blocks that were given out before it was seen
  kParkHoldsFill,  // a freed buffer's fence holds its fill: user streams do not drain our copies
  kRestoreWaitsFence,    // the copy in waits for what still uses the extent
  kRestoreWaitsCopied,   // and for its own eviction
  kRestoreChecksLeave,   // an address shows something else only once e1 has passed
  kRestoreSetsFill,      // fill = e3
  kRestoreForgetsWaits,  // for which no stream has waited yet
  kAwaitedEventStays,    // an event that a thread waits for is not recorded anew meanwhile
  kSlotKeepsFence,       // a slot is free again behind the copy that reads it
  kFailedCopyKeepsSlot,  // and behind the part of a copy out that was submitted before a call
                         // failed
  kFailedCopyReadsSlot,  // and behind that of a copy in
  kUnusedIsEvictable,    // a buffer that no op has named can leave
  kWorkerWaitsLeave,     // an old address is unmapped only once e1 has passed
  kBusyIsWaitedFor,  // what the worker is at is claimed: who comes for it waits until it is done
  kSlotShownAfterCopied,  // the slot is shown only once e2 has passed
  kAddressWaitsFence,     // so is the address of what was freed, behind the free or e1
  kAddressWaitsUnmap,     // an address is given out again only once unmapped
  kFailedMapKeepsFence,   // an extent whose map failed goes back with its fence
  kRestoreReserve,        // slots are kept for evictions that a restore needs
  kAllocationReserve,     // new memory leaves as much free, on device and host together
  kRoomToSwap,            // what never moves leaves room for the largest buffer
  kGrowthCounts,          // for both: what other threads are about to get counts, too
  kPinsDroppedToWait,     // a thread that waits for room holds no pins
  kLineInTurn,            // those who wait are served one after another
  kDroppedPinsCount,      // who found a victim pinned looks again, though nobody pins it by now
  kServedTakes,           // who has waited in line takes what leaves, whoever names it again
  kFirstClaimsAll,        // who has waited there often claims all that may leave, in use or not
  kOthersStandAside,      // and others leave him what he needs
  kInPlaceWaitsCopied,    // a slot is shown for an op only once e2 has passed, and e1 with it
  kInPlaceStays,          // while such an op is submitted, nobody brings home what it uses
  kInPlaceIsUse,          // what it used changes hands behind it
  kExternalFlag,          // nothing that may stand behind an external flag leaves, or is waited for
  kFlagCountsOpening,     // from before the op that waits for it is forwarded
  kFlagToldToNew,         // and where an engine came to be only behind it
  kFlagKeepsInPlace,      // nor is what such an op used in place brought home, or shown
  kFlagLeavesEvent,       // an event is left before a stream waits for one
  kFlagKeepsPool,         // extents that may are not taken from the pool
  kFlagKeepsParked,       // nor parked memory, but by streams behind it
  kFlagKeepsBlocks,       // nor blocks of slabs
  kFlagKeepsPinning,      // nor is host memory pinned: that may wait for all that is queued
  kCaptureLeavesEvent,    // before a stream captures, an event is left for all that it was given
  kCaptureUntouched,      // while it captures, nothing is recorded there and it is not made to wait
  kThawPaysWaits,         // what it should have waited for meanwhile, it waits for afterwards
  kGraphHolds,            // what a graph names does not move
  kFreedIsHeld,           // what is freed while a graph names it goes to nobody else
  kHeldGoesBehindUse,     // and then only behind the graph's launches
  kCount
};

#ifdef OFFLOAD_DROPPABLE_CLAUSES
bool holds(Clause clause);
void drop(Clause clause);  // until restore_clauses()
void restore_clauses();
#else
constexpr bool holds(Clause) {
  return true;
}
#endif

}  // namespace offload
