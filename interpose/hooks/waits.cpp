// SPDX-License-Identifier: Apache-2.0
// Operations that wait for what the host or another device does later: nothing behind them may be
// waited for by us. And flags in device memory, written in stream order.

#include "interpose/hooks/define.h"
#include "interpose/hooks/node_names.h"
#include "interpose/life/early_waits.h"
#include "interpose/rules.h"

namespace offload {
namespace {

constexpr auto kNamesNothing = [](Operation&) { return CUDA_SUCCESS; };

// As operate(), with the engine told around the call, or the one that comes later.
template <Entry E, typename Name, typename... Arguments>
CUresult operate_waiting(CUstream stream, Name&& name, Arguments... arguments) {
  if (session() == nullptr) {
    const CUresult result = real<E>()(arguments...);
    if (result == CUDA_SUCCESS && !forwards_for_ever() && obeys(Rule::kEarlyWaitsCount))
      note_early_wait(stream, RealType<E>::per_thread);
    return result;
  }
  const auto name_and_wait = [&](Operation& operation) {
    name(operation);
    if (obeys(Rule::kHostIsWaitedFor)) operation.may_wait();
    return CUDA_SUCCESS;
  };
  return operate<E>(stream, name_and_wait, arguments...);
}

bool waits(const CUstreamBatchMemOpParams& operation) {
  return operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
         operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}
bool writes(const CUstreamBatchMemOpParams& operation) {
  return operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
         operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

}  // namespace

bool name_memory_operations(Operation& operation, const CUstreamBatchMemOpParams* operations,
                            unsigned count) {
  bool any_wait = false;
  for (unsigned i = 0; i < count; ++i) {
    any_wait |= waits(operations[i]);
    if (waits(operations[i])) operation.name(operations[i].waitValue.address);
    if (writes(operations[i])) operation.name(operations[i].writeValue.address);
  }
  return any_wait;
}

template <Entry E>
CUresult stream_wait_value_32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  const auto name = [=](Operation& operation) { operation.name(at); };
  return operate_waiting<E>(stream, name, stream, at, value, flags);
}

template <Entry E>
CUresult stream_wait_value_64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  const auto name = [=](Operation& operation) { operation.name(at); };
  return operate_waiting<E>(stream, name, stream, at, value, flags);
}

template <Entry E>
CUresult stream_write_value_32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  const auto name = [=](Operation& operation) { return operation.name(at), CUDA_SUCCESS; };
  return operate<E>(stream, name, stream, at, value, flags);
}

template <Entry E>
CUresult stream_write_value_64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  const auto name = [=](Operation& operation) { return operation.name(at), CUDA_SUCCESS; };
  return operate<E>(stream, name, stream, at, value, flags);
}

template <Entry E>
CUresult stream_batch_mem_op(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations,
                             unsigned flags) {
  if (operations == nullptr) return real<E>()(stream, count, operations, flags);
  bool any_wait = false;
  for (unsigned i = 0; i < count; ++i) any_wait |= waits(operations[i]);
  const auto name = [=](Operation& operation) {
    name_memory_operations(operation, operations, count);
    return CUDA_SUCCESS;
  };
  return any_wait ? operate_waiting<E>(stream, name, stream, count, operations, flags)
                  : operate<E>(stream, name, stream, count, operations, flags);
}

template <Entry E>
CUresult launch_host_func(CUstream stream, CUhostFn function, void* data) {
  return operate_waiting<E>(stream, kNamesNothing, stream, function, data);
}

template <Entry E>
CUresult stream_add_callback(CUstream stream, CUstreamCallback function, void* data,
                             unsigned flags) {
  return operate_waiting<E>(stream, kNamesNothing, stream, function, data, flags);
}

template <Entry E>
CUresult wait_external_semaphores(const CUexternalSemaphore* semaphores,
                                  const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* parameters,
                                  unsigned count, CUstream stream) {
  return operate_waiting<E>(stream, kNamesNothing, semaphores, parameters, count, stream);
}

}  // namespace offload

#define FAMILY_waits DEFINE_HOOK
#include "interpose/hooks/families.h"
