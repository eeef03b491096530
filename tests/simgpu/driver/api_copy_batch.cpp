// SPDX-License-Identifier: Apache-2.0
// Many copies in one call. All are checked before any is submitted; among themselves they have no
// order, here they run one after the other.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/copy_request.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"

using simgpu::Call;
using simgpu::CopyRequest;
using simgpu::DefaultStream;
using simgpu::engine;
using simgpu::Needs;

namespace {

struct Item {
  CopyRequest request;
  CUmemcpySrcAccessOrder order = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
};

bool is_order(CUmemcpySrcAccessOrder order) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

CUresult submit(CUstream handle, std::vector<Item> items, size_t* failed) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  // "The stream must not be legacy NULL."
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
  simgpu::Stream* stream = call.stream(handle, DefaultStream::kPerThread);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult error = Call::stream_error(*stream); error != CUDA_SUCCESS) return error;
  const auto when = stream->capture != nullptr ? simgpu::When::kInGraph : simgpu::When::kNow;
  for (size_t i = 0; i < items.size(); ++i) {
    CopyRequest& request = items[i].request;
    if (request.extent.bytes() != 0 && is_order(items[i].order) &&
        simgpu::resolve_copy(&request, when)) {
      continue;
    }
    if (failed != nullptr) *failed = i;
    return CUDA_ERROR_INVALID_VALUE;
  }
  engine().make_room(call.lock, *stream);
  for (Item& item : items) {
    CopyRequest& request = item.request;
    if (stream->capture != nullptr) {
      const CUresult error = simgpu::captures::add(
          *stream, simgpu::CopyNode{simgpu::write_copy(request),
                                    reinterpret_cast<CUcontext>(stream->context), request.to.device,
                                    request.from.device});
      if (error != CUDA_SUCCESS) return error;
      continue;
    }
    std::vector<std::byte> staged;
    if (request.from.pageable && item.order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL) {
      staged = simgpu::stage(request.from, request.extent);
    }
    engine().add(call.lock, *stream,
                 std::make_unique<simgpu::CopyOp>(request.to, request.from, request.extent,
                                                  std::move(staged)));
  }
  return CUDA_SUCCESS;
}

template <DefaultStream>
CUresult batch_1(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                 CUmemcpyAttributes* attributes, size_t* first, size_t attribute_count,
                 size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  if (to == nullptr || from == nullptr || sizes == nullptr || count == 0 || attributes == nullptr ||
      first == nullptr || attribute_count == 0 || attribute_count > count || first[0] != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<Item> items(count);
  size_t attribute = 0;
  for (size_t i = 0; i < count; ++i) {
    if (attribute + 1 < attribute_count && first[attribute + 1] == i) ++attribute;
    items[i].request.to.address = to[i];
    items[i].request.from.address = from[i];
    items[i].request.extent = {sizes[i], 1, 1};
    items[i].order = attributes[attribute].srcAccessOrder;
  }
  return submit(stream, std::move(items), failed);
}

template <DefaultStream preset>
CUresult batch_2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                 CUmemcpyAttributes* attributes, size_t* first, size_t attribute_count,
                 CUstream stream) {
  return batch_1<preset>(to, from, sizes, count, attributes, first, attribute_count, nullptr,
                         stream);
}

bool place_of(const CUmemcpy3DOperand& operand, const CUextent3D& extent, simgpu::Place* place) {
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return false;
  const auto& pointer = operand.op.ptr;
  place->address = pointer.ptr;
  place->pitch = pointer.rowLength != 0 ? pointer.rowLength : extent.width;
  place->slice = place->pitch * (pointer.layerHeight != 0 ? pointer.layerHeight : extent.height);
  return place->pitch >= extent.width;
}

template <DefaultStream>
CUresult boxes_1(size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed,
                 unsigned long long flags, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  if (count == 0 || ops == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Item> items(count);
  for (size_t i = 0; i < count; ++i) {
    CopyRequest& request = items[i].request;
    request.extent = {ops[i].extent.width, ops[i].extent.height, ops[i].extent.depth};
    items[i].order = ops[i].srcAccessOrder;
    if (place_of(ops[i].dst, ops[i].extent, &request.to) &&
        place_of(ops[i].src, ops[i].extent, &request.from)) {
      continue;
    }
    if (failed != nullptr) *failed = i;
    return CUDA_ERROR_INVALID_VALUE;
  }
  return submit(stream, std::move(items), failed);
}

template <DefaultStream preset>
CUresult boxes_2(size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, unsigned long long flags,
                 CUstream stream) {
  return boxes_1<preset>(count, ops, nullptr, flags, stream);
}

}  // namespace

SIMGPU_STREAM_API(cuMemcpyBatchAsync, _ptsz, batch_1,
                  (CUdeviceptr * to, CUdeviceptr* from, size_t* sizes, size_t n,
                   CUmemcpyAttributes* attributes, size_t* first, size_t m, size_t* failed,
                   CUstream s),
                  (to, from, sizes, n, attributes, first, m, failed, s))
SIMGPU_STREAM_API(cuMemcpyBatchAsync_v2, _ptsz, batch_2,
                  (CUdeviceptr * to, CUdeviceptr* from, size_t* sizes, size_t n,
                   CUmemcpyAttributes* attributes, size_t* first, size_t m, CUstream s),
                  (to, from, sizes, n, attributes, first, m, s))
SIMGPU_STREAM_API(cuMemcpy3DBatchAsync, _ptsz, boxes_1,
                  (size_t n, CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed, unsigned long long flags,
                   CUstream s),
                  (n, ops, failed, flags, s))
SIMGPU_STREAM_API(cuMemcpy3DBatchAsync_v2, _ptsz, boxes_2,
                  (size_t n, CUDA_MEMCPY3D_BATCH_OP* ops, unsigned long long flags, CUstream s),
                  (n, ops, flags, s))
