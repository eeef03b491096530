// SPDX-License-Identifier: Apache-2.0
// Streams: creation, queries, waiting, host functions, values in memory.
#include <algorithm>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/context_life.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/host_function_op.h"
#include "tests/simgpu/exec/node_ops.h"
#include "tests/simgpu/memory/pool.h"

using simgpu::Call;
using simgpu::Context;
using simgpu::DefaultStream;
using simgpu::engine;
using simgpu::Needs;
using simgpu::Stream;

namespace {

constexpr int kLowestPriority = 0;
constexpr int kHighestPriority = -5;

// The prologue of a question about a stream, which a capture does not mind.
struct StreamQuestion : Call {
  StreamQuestion(CUstream handle, DefaultStream preset) : Call(Needs::kContext) {
    if (error != CUDA_SUCCESS) return;
    stream = Call::stream(handle, preset);
    error = stream == nullptr ? no_stream(handle) : stream->context->sticky;
  }
  Stream* stream = nullptr;
};

// The prologue of a call that gives a stream work.
struct StreamCall : Call {
  StreamCall(CUstream handle, DefaultStream preset) : Call(Needs::kContext) {
    if (error != CUDA_SUCCESS) return;
    stream = Call::stream(handle, preset);
    if (stream == nullptr) {
      error = no_stream(handle);
    } else {
      error = Call::stream_error(*stream);
    }
  }
  Stream* stream = nullptr;
};

CUresult create_stream(Call& call, Context* context, CUstream* handle, unsigned flags,
                       int priority) {
  if (handle == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  priority = std::min(std::max(priority, kHighestPriority), kLowestPriority);
  simgpu::StreamHandle* entry = simgpu::stream_handles().create();
  entry->stream = engine().create_stream(call.lock, context, flags, priority);
  *handle = reinterpret_cast<CUstream>(entry);
  return CUDA_SUCCESS;
}

CUresult create_stream(CUstream* handle, unsigned flags, int priority) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  return create_stream(call, call.context, handle, flags, priority);
}

template <DefaultStream preset>
CUresult synchronize(CUstream handle) {
  StreamCall call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (CUresult error = Call::wait_error(*call.stream); error != CUDA_SUCCESS) return error;
  if (CUresult error = Call::unsafe_error(); error != CUDA_SUCCESS) return error;
  engine().gather(call.lock, *call.stream);
  engine().synchronize(call.lock, {{call.stream, call.stream->submitted}}, "cuStreamSynchronize");
  simgpu::pools::after_synchronisation();
  return call.stream->context->sticky;
}

template <DefaultStream preset>
CUresult query(CUstream handle) {
  StreamCall call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (CUresult error = Call::wait_error(*call.stream); error != CUDA_SUCCESS) return error;
  if (CUresult error = Call::unsafe_error(); error != CUDA_SUCCESS) return error;
  engine().gather(call.lock, *call.stream);
  if (!engine().query(call.lock, simgpu::Target{call.stream, call.stream->submitted}))
    return CUDA_ERROR_NOT_READY;
  return call.stream->context->sticky;
}

template <DefaultStream preset>
CUresult get_id(CUstream handle, unsigned long long* id) {
  StreamQuestion call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = call.stream->id;
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult get_flags(CUstream handle, unsigned* flags) {
  StreamQuestion call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = call.stream->flags;
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult get_priority(CUstream handle, int* priority) {
  StreamQuestion call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = call.stream->priority;
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult get_context(CUstream handle, CUcontext* context) {
  StreamQuestion call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = reinterpret_cast<CUcontext>(call.stream->context);
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult get_context_2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  StreamQuestion call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* found = call.stream->context;
  *context = reinterpret_cast<CUcontext>(found);
  if (green != nullptr) *green = simgpu::green_handle(found);
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult get_device(CUstream handle, CUdevice* device) {
  StreamQuestion call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = call.stream->context->device;
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult get_attribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  StreamQuestion call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *value = {};
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
    value->priority = call.stream->priority;
  } else if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
    value->syncPolicy = CU_SYNC_POLICY_AUTO;
  }
  return CUDA_SUCCESS;
}

// Hints (cache windows, synchronisation policy) change nothing here; a priority does.
template <DefaultStream preset>
CUresult set_attribute(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  StreamQuestion call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) call.stream->priority = value->priority;
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult copy_attributes(CUstream to, CUstream from) {
  StreamQuestion call(to, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  Stream* source = call.Call::stream(from, preset);
  if (source == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  call.stream->priority = source->priority;
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult launch_host_function(CUstream handle, CUhostFn function, void* data) {
  StreamCall call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.stream->capture != nullptr) {
    return simgpu::captures::add(*call.stream, simgpu::HostNode{function, data});
  }
  engine().submit(call.lock, *call.stream,
                  std::make_unique<simgpu::HostFunctionOp>(function, data));
  return CUDA_SUCCESS;
}

template <DefaultStream preset>
CUresult add_callback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags) {
  StreamCall call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = Call::wait_error(*call.stream); error != CUDA_SUCCESS) return error;
  engine().submit(call.lock, *call.stream,
                  std::make_unique<simgpu::HostFunctionOp>(callback, handle, data));
  return CUDA_SUCCESS;
}

// In one piece: nothing comes between the operations of a batch.
CUresult submit_values(StreamCall& call, std::vector<CUstreamBatchMemOpParams> what,
                       unsigned flags) {
  if (call.error != CUDA_SUCCESS) return call.error;
  std::vector<std::unique_ptr<simgpu::Op>> ops;
  if (CUresult error = simgpu::make_value_ops(what, &ops); error != CUDA_SUCCESS) return error;
  if (call.stream->capture != nullptr) {
    return simgpu::captures::add(
        *call.stream, simgpu::ValuesNode{reinterpret_cast<CUcontext>(call.stream->context),
                                         std::move(what), flags});
  }
  engine().make_room(call.lock, *call.stream);
  for (auto& op : ops) engine().add(call.lock, *call.stream, std::move(op));
  return CUDA_SUCCESS;
}

CUstreamBatchMemOpParams value_op(CUstreamBatchMemOpType operation, CUdeviceptr address,
                                  uint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams what = {};
  what.waitValue.operation = operation;
  what.waitValue.address = address;
  what.waitValue.value64 = value;
  what.waitValue.flags = flags;
  return what;
}

template <DefaultStream preset, CUstreamBatchMemOpType operation>
CUresult value_call(CUstream handle, CUdeviceptr address, uint64_t value, unsigned flags) {
  StreamCall call(handle, preset);
  return submit_values(call, {value_op(operation, address, value, flags)}, 0);
}

template <DefaultStream preset>
CUresult write_value_32(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return value_call<preset, CU_STREAM_MEM_OP_WRITE_VALUE_32>(handle, address, value, flags);
}
template <DefaultStream preset>
CUresult write_value_64(CUstream handle, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return value_call<preset, CU_STREAM_MEM_OP_WRITE_VALUE_64>(handle, address, value, flags);
}
template <DefaultStream preset>
CUresult wait_value_32(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return value_call<preset, CU_STREAM_MEM_OP_WAIT_VALUE_32>(handle, address, value, flags);
}
template <DefaultStream preset>
CUresult wait_value_64(CUstream handle, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return value_call<preset, CU_STREAM_MEM_OP_WAIT_VALUE_64>(handle, address, value, flags);
}

template <DefaultStream preset>
CUresult batch(CUstream handle, unsigned count, CUstreamBatchMemOpParams* what, unsigned flags) {
  constexpr unsigned kMostOps = 255;
  StreamCall call(handle, preset);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (flags != 0 || count > kMostOps || (count != 0 && what == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return submit_values(call, {what, what + count}, flags);
}

}  // namespace

SIMGPU_API cuStreamCreate(CUstream* stream, unsigned int flags) {
  const simgpu::ApiName api_name(__func__);
  return create_stream(stream, flags, 0);
}

SIMGPU_API cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  const simgpu::ApiName api_name(__func__);
  return create_stream(stream, flags, priority);
}

// "The API ignores the context that is current to the calling thread."
SIMGPU_API cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned int flags,
                                  int priority) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  Context* context = simgpu::find_green(green);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->sticky != CUDA_SUCCESS) return context->sticky;
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  return create_stream(call, context, stream, flags, priority);
}

SIMGPU_API cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* green) {
  StreamQuestion call(handle, DefaultStream::kLegacy);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *green = simgpu::green_handle(call.stream->context);
  return CUDA_SUCCESS;
}

SIMGPU_API cuStreamDestroy_v2(CUstream stream) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS && call.error != CUDA_ERROR_ILLEGAL_ADDRESS) return call.error;
  simgpu::StreamHandle* entry = simgpu::stream_handles().find(stream);
  if (entry == nullptr || entry->stream == nullptr) return Call::no_stream(stream);
  simgpu::captures::leave(*entry->stream);
  engine().retire_stream(call.lock, entry->stream);
  simgpu::stream_handles().destroy(entry);
  return call.error;
}

SIMGPU_API cuStreamDestroy(CUstream stream) {
  const simgpu::ApiName api_name(__func__);
  return cuStreamDestroy_v2(stream);
}

SIMGPU_STREAM_API(cuStreamSynchronize, _ptsz, synchronize, (CUstream s), (s))
SIMGPU_STREAM_API(cuStreamQuery, _ptsz, query, (CUstream s), (s))
SIMGPU_STREAM_API(cuStreamGetId, _ptsz, get_id, (CUstream s, unsigned long long* id), (s, id))
SIMGPU_STREAM_API(cuStreamGetFlags, _ptsz, get_flags, (CUstream s, unsigned int* f), (s, f))
SIMGPU_STREAM_API(cuStreamGetPriority, _ptsz, get_priority, (CUstream s, int* p), (s, p))
SIMGPU_STREAM_API(cuStreamGetCtx, _ptsz, get_context, (CUstream s, CUcontext* c), (s, c))
SIMGPU_STREAM_API(cuStreamGetCtx_v2, _ptsz, get_context_2,
                  (CUstream s, CUcontext* c, CUgreenCtx* g), (s, c, g))
SIMGPU_STREAM_API(cuStreamGetDevice, _ptsz, get_device, (CUstream s, CUdevice* d), (s, d))
SIMGPU_STREAM_API(cuStreamGetAttribute, _ptsz, get_attribute,
                  (CUstream s, CUstreamAttrID id, CUstreamAttrValue* value), (s, id, value))
SIMGPU_STREAM_API(cuStreamSetAttribute, _ptsz, set_attribute,
                  (CUstream s, CUstreamAttrID id, const CUstreamAttrValue* value), (s, id, value))
SIMGPU_STREAM_API(cuStreamCopyAttributes, _ptsz, copy_attributes, (CUstream to, CUstream from),
                  (to, from))
SIMGPU_STREAM_API(cuLaunchHostFunc, _ptsz, launch_host_function,
                  (CUstream s, CUhostFn function, void* data), (s, function, data))
SIMGPU_STREAM_API(cuStreamAddCallback, _ptsz, add_callback,
                  (CUstream s, CUstreamCallback callback, void* data, unsigned int flags),
                  (s, callback, data, flags))
SIMGPU_STREAM_API(cuStreamWriteValue32_v2, _ptsz, write_value_32,
                  (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned int f), (s, a, v, f))
SIMGPU_STREAM_API(cuStreamWriteValue64_v2, _ptsz, write_value_64,
                  (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned int f), (s, a, v, f))
SIMGPU_STREAM_API(cuStreamWaitValue32_v2, _ptsz, wait_value_32,
                  (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned int f), (s, a, v, f))
SIMGPU_STREAM_API(cuStreamWaitValue64_v2, _ptsz, wait_value_64,
                  (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned int f), (s, a, v, f))
SIMGPU_STREAM_API(cuStreamBatchMemOp_v2, _ptsz, batch,
                  (CUstream s, unsigned int n, CUstreamBatchMemOpParams* what, unsigned int f),
                  (s, n, what, f))
