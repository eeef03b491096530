// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command line of the training program.

#include <cstdint>
#include <string>

namespace gpt {

struct Options {
  int layers = 6;
  int width = 64;
  int heads = 4;
  int sequence = 256;  // tokens
  int batch = 64;      // sequences
  int steps = 8;
  int64_t seed = 1;
  double learning_rate = 0.01;
  std::string text;          // empty: the licence
  int accumulate = 1;        // micro-batches per step
  int eval_every = 0;        // steps; 0: never
  int checkpoint_every = 0;  // layers; 0: no checkpoints
  int devices = 1;           // each trains the same, at the same time
  bool optimizer_stream = false;
  bool async_allocator = false;
  bool vary_sequence = false;
  std::string truth;  // file; empty: none
  bool quiet = false;
  bool help = false;
};

// Throws BadOption with a message for people. --help stops nothing: look at Options::help.
Options parse_options(int count, const char* const* arguments);

std::string help_text();

}  // namespace gpt
