// SPDX-License-Identifier: Apache-2.0
#pragma once
// The training program's own account of its tensors: what a library that watches it should be able
// to find out.
//
// JSON, one object a line. The first line is {"format":1,"program":"train_gpt",...options that
// shape the run}. Then, as they happen:
//   {"op":N,"kind":"kernel"|"copy in"|"copy
//   out"|"fill","name":KERNEL,"queue":"compute"|"optimizer","step":S,
//    "thread":"main"|"backward"}
// for each operation submitted, N counting from 0, and
//   {"tensor":I,"role":R,"name":NAME,"layer":L,"bytes":B,"address":"0x..","step":S,"born":N,
//    "uses":[[N,"r"|"w"|"rw"],...],"freed":N,"clock":[A,F]}
// for each tensor when it is freed. I counts allocations from 0. `born` and `freed` are how many
// operations had been submitted when it was allocated and freed, so op N uses a tensor only if born
// <= N < freed. `step` is that of its birth, counted from 1 as on stdout, 0 before the first. layer
// -1: of no layer. Roles: parameter, gradient (of a parameter), optimizer state, activation (saved
// by the forward pass for the backward pass), temporary (everything else that dies in its step,
// gradients of activations included), input, logits (and their gradient and log-probabilities),
// workspace (inside one operation).

#include <cstdint>
#include <fstream>
#include <string>

#include "tests/workloads/tensor.h"

namespace gpt {

class Truth {
 public:
  // Throws BadOption if the file cannot be written. `run` is JSON members that describe the run.
  Truth(const std::string& path, const std::string& run);

  // The caller serialises the calls.
  void op(int64_t op, const char* kind, const char* name, const char* queue, int64_t step);
  void freed(const Buffer& buffer, int64_t ops, int64_t clock);

  // Names the calling thread for the ops that it submits.
  static void name_thread(const char* name);

 private:
  std::ofstream out_;
};

}  // namespace gpt
