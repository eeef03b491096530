// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/host_function_op.h"

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/statistics.h"
#include "tests/simgpu/driver/thread_state.h"
#include "tests/simgpu/exec/engine.h"

namespace simgpu {

void HostFunctionOp::run(Lock& lock) {
  ++statistics().host_functions;
  const CUresult status = stream->context->sticky;
  // It may tell any thread that what is before it is finished.
  engine().knowledge().learn_by_all(stream->clock);
  lock.unlock();
  thread_state().in_host_function = true;
  if (function_ != nullptr) {
    function_(data_);
  } else {
    callback_(handle_, status, data_);
  }
  thread_state().in_host_function = false;
  lock.lock();
}

}  // namespace simgpu
