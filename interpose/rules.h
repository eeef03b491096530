// SPDX-License-Identifier: Apache-2.0
#pragma once
// What we owe to programs of every kind at the driver's door, each rule named where the code obeys
// it. In a test build one can be dropped, so that a client shows what it is there for
// (tests/clients/rules.py). In the library they are constants and cost nothing. Those of the
// engine: engine/clauses.h.

namespace offload {

enum class Rule {
  // What an operation names.
  kRangesAreNamed,            // both ends of a copy, what a fill writes
  kEveryWordIsNamed,          // each word of a parameter, not only the first
  kArgumentBlockIsNamed,      // arguments that come as one block, too
  kTablesAreFollowed,         // what a table of pointers points to
  kForeignTablesAreFollowed,  // also one in memory that is not ours
  kKeptStays,                 // what is given to where its use cannot be seen stays at home

  // Waiting for the host.
  kHostIsWaitedFor,  // an operation that does is told to the engine
  kEarlyWaitsCount,  // and to the one that comes later
  kCollectivesWait,  // a communication library's kernels wait for what others do
  kGraphsWait,       // and a graph, if one of its nodes does

  // Captures and graphs.
  kCallsRelaxTheMode,             // our own calls spoil no capture
  kCaptureTakesFromDriver,        // what a capture wants to allocate is the driver's
  kJoiningIsSeen,                 // a stream that waits for an event of a capture captures, too
  kDefaultStreamFreezes,          // blocking streams that capture must not meet the default stream
  kCapturedIsHeld,                // what a captured operation names stays while the graph lives
  kNodesAreHeld,                  // so does what a node made by hand names
  kInstanceNames,                 // an instance names what its graph names
  kCloneNames,                    // and so does a clone
  kUpdateReplaces,                // an update makes it what the other graph names
  kLaunchNames,                   // the launch of an instance is a use of all that
  kCopiedTablesAreLookedThrough,  // and of what the tables name that its nodes copy

  // Streams and contexts.
  kStreamsHaveNumbers,        // a handle may come back as another stream
  kStreamEndIsTold,           // what was given to a stream that is destroyed is waited for
  kHandlesMeanContexts,       // 0, 1 and 2 mean streams of the current context
  kOtherContextsAreFollowed,  // streams of another context that use our memory are put in order
  kSessionEndsWithContext,    // a context that is gone takes all that was in it along

  // Devices.
  kAllDevicesAreLookedAt,  // an operation may name memory of any device
  kCopyTellsContexts,      // a plain copy of another device's memory becomes one that is told whose
  kTablesOfOthersStay,     // what a table on one names of another stays at home
  kPeersReach,             // who gets access to a device's memory gets it to ours
  kEarlierPeersReach,      // also who got it before there was a session
  kLaterIsReached,         // and to what is mapped later
  kPoolAccessReaches,      // ours is the default pool: its access is ours

  // The driver and other libraries.
  kLibrariesTakeFromDriver,  // what a communication library allocates is the driver's
  kDriverGetsMemory,         // what the driver lacks for itself it gets of ours
  kUnknownEndsMoving,        // an entry that we do not know may do anything
  kCount
};

#ifdef OFFLOAD_DROPPABLE_RULES
bool obeys(Rule rule);
#else
constexpr bool obeys(Rule) {
  return true;
}
#endif

}  // namespace offload
