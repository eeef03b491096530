// SPDX-License-Identifier: Apache-2.0
#pragma once
// The training run.

#include "tests/workloads/options.h"

namespace gpt {

// Trains and prints, on stdout: "step N loss X HEXFLOAT" after each step, "eval N loss X HEXFLOAT"
// where asked for, then "peak BYTES" (the most bytes of live tensors at any time) and, last,
// "weights HASH" over all parameters. Of several devices, which train in threads of their own, that
// comes one after the other once all have ended, each behind "device N". Progress goes to stderr.
// Throws what errors.h lists.
void train(const Options& options);

}  // namespace gpt
