// SPDX-License-Identifier: Apache-2.0
#pragma once
// Can an address of ours show device memory, then host memory, then device memory again, and do
// kernels read and write both? Documentation allows it, reports disagree, and copies alone prove
// nothing: so it is tried once per process with a small kernel, on addresses and streams of its
// own.

#include "interpose/driver/device.h"

namespace offload {

// Null: it works. Else what did not, as the beginning of a sentence. Takes some milliseconds.
// Leaves nothing behind.
const char* probe_host_mapping(const Device& device);

}  // namespace offload
