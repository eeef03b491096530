// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/operation.h"

#include "interpose/driver/errors.h"
#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

// Events of one context cannot be recorded on another's streams, so such an operation cannot be put
// in order with ours. What the driver is about to refuse needs no order.
CUresult Operation::begin_unfollowed() {
  if (!names_something()) return CUDA_SUCCESS;
  pins_.clear();
  if (stream_ == kForeignStream) {
    session_.give_up(Reason::foreign_context,
                     "a context other than the device's primary one uses its memory");
  } else if (stream_ == kUncountedStream) {
    session_.give_up(Reason::too_many_streams,
                     "the program has more streams at once than liboffload can follow");
  }
  return CUDA_SUCCESS;
}

CUresult Operation::refuse(Status status) {
  if (status == Status::kOutOfMemory && !context_lost()) say_out_of_memory(session_, 0);
  return code_of(status);
}

CUresult code_of(Status status) {
  if (const CUresult lost = lost_to(); lost != CUDA_SUCCESS) [[unlikely]]
    return lost;
  switch (status) {
    case Status::kOk:
      return CUDA_SUCCESS;
    case Status::kNotReady:
      return CUDA_ERROR_NOT_READY;
    case Status::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Status::kInvalid:
    case Status::kNotOurs:
      return CUDA_ERROR_INVALID_VALUE;
    case Status::kError:
      break;
  }
  return last_failure();
}

void say_out_of_memory(Session& session, uint64_t wanted_bytes) {
  const ShortText wanted = format_size(wanted_bytes);
  const ShortText limit = format_size(session.config.limit_bytes);
  const ShortText live = format_size(session.engine.live_bytes());
  const ShortText mapped = format_size(session.engine.mapped_bytes());
  const ShortText host = format_size(statistics().host_bytes.get());
  log_warn(
      "out of memory: %s%s for %s; of the %s on the GPU %s are mapped; the program's live buffers "
      "are %s, %s "
      "of them in host memory; all that may move has moved",
      wanted_bytes == 0 ? "no room" : wanted.c_str(), wanted_bytes == 0 ? "" : " asked",
      wanted_bytes == 0 ? "what one operation names" : "a buffer", limit.c_str(), mapped.c_str(),
      live.c_str(), host.c_str());
}

}  // namespace offload
