// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "interpose/cli/commands.h"
#include "interpose/cli/doctor.h"

namespace offload::cli {

// The measurements launch kernels that have to be compiled for the device at hand, and stand with
// the checks that do so.
int run_probe() {
  std::puts("The measurements on a GPU are part of tests/device/check.sh in the source tree.");
  return kExitDone;
}

}  // namespace offload::cli
