// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver's one lock. It covers contexts, streams, memory and the checker; it is held while a
// call changes them and while the executor picks and checks an operation, never while an operation
// runs.

#include <condition_variable>
#include <mutex>

namespace simgpu {

using Lock = std::unique_lock<std::mutex>;

std::mutex& driver_mutex();

}  // namespace simgpu
