// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small programs to explore: what each host thread does, one action after another, on tensors that
// have letters. What cannot be done (a tensor that is not there, memory that is refused) is left
// out.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/engine/model/world.h"

namespace offload::model {

struct Action {
  enum class Kind : uint8_t {
    kOp,
    kAllocate,
    kFree,
    kPress,  // the policy wants it to leave
    kIdle,
    kSynchronize,
    kWaitForFlag,
    kFlagBefore,  // one that the engine is told of (prologues only)
    kSetFlag,
    kTrim,
    kRetire,
    kRunAll,  // the GPU catches up (prologues only)
    kNewStream,
    kBeginCapture,  // ops on the stream are recorded until it ends: they make the one graph there
                    // is
    kEndCapture,
    kLaunch,
    kDestroyGraph,
    kCount
  };
  Kind kind = Kind::kOp;
  int stream = -1;             // -1: a call without a stream
  int var = -1;                // the tensor's letter
  uint64_t granules = 0;       // or, below 1: a block of a slab
  std::vector<Arg> args = {};  // tensor: the letter
  std::string text = {};
};

Action op(int stream, std::vector<Arg> args);
Action allocate(int var, uint64_t granules, int stream = -1);
Action release(int var, int stream = -1);
Action press(int var);
Action idle(int stream);
Action synchronize(int stream);
Action wait_for_flag(int stream);
Action flag_before(int stream);
Action set_flag();
Action trim();
Action retire();
Action run_all();
Action new_stream();
Action begin_capture(int stream);
Action end_capture(int stream);
Action launch(int stream);
Action destroy_graph();
inline constexpr int kLetters = 7;
inline constexpr int kGraph = kLetters;  // the graph, where it is used like a tensor

struct Bounds {
  // From the plain course of things, in which a thread goes on until it has to wait, and the GPU
  // does only what somebody waits for (or, if `eager`, whatever somebody asks for): a thread is
  // stopped in the midst of a call for another, or the GPU is further (or less far) than that when
  // it is asked.
  uint32_t deviations = 3;
  bool eager = false;
  uint32_t failures = 0;     // calls of the driver that fail
  Call only = Call::kCount;  // of this kind only; kCount: of any
  uint32_t queue_items = 0;  // that a stream takes before the submitting call blocks; 0: any number
  bool worker = true;
  bool timed = false;        // with the events that only measure
  uint64_t states = 20'000;  // then the rest is left out, and counted as cut short
};

struct Program {
  std::string name;
  Settings settings;
  Bounds bounds;
  int streams = 2;
  std::vector<Action> prologue;  // one order only: the GPU late
  std::vector<std::vector<Action>> threads;
  bool refuses = true;  // a refused op is no failure
  std::string text() const;
};

}  // namespace offload::model
