// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/node_ops.h"

#include "tests/simgpu/driver/copy_request.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/exec/host_function_op.h"
#include "tests/simgpu/exec/kernel_op.h"
#include "tests/simgpu/exec/pool_op.h"
#include "tests/simgpu/exec/value_op.h"
#include "tests/simgpu/memory/address_space.h"

namespace simgpu {

namespace {

using Ops = std::vector<std::unique_ptr<Op>>;

struct Make {
  Ops* ops;

  CUresult operator()(const EmptyNode&) const { return CUDA_SUCCESS; }
  CUresult operator()(const ChildNode&) const { return CUDA_SUCCESS; }
  CUresult operator()(const KernelNode& node) const {
    ops->push_back(
        std::make_unique<KernelOp>(node.image, node.kernel, node.shape, node.buffer, node.names));
    return CUDA_SUCCESS;
  }
  CUresult operator()(const CopyNode& node) const {
    CopyRequest request;
    if (CUresult error = read_copy(node.what, &request); error != CUDA_SUCCESS) return error;
    if (request.extent.bytes() == 0) return CUDA_SUCCESS;
    request.to.device = node.to_device;
    request.from.device = node.from_device;
    // What is not there (any more) is a fault when the copy runs, not an error of the launch.
    resolve_copy(&request);
    ops->push_back(std::make_unique<CopyOp>(request.to, request.from, request.extent,
                                            std::vector<std::byte>{}));
    return CUDA_SUCCESS;
  }
  CUresult operator()(const FillNode& node) const {
    const auto& what = node.what;
    const size_t bytes = what.width * what.elementSize;
    if (bytes == 0 || what.height == 0) return CUDA_SUCCESS;
    ops->push_back(std::make_unique<FillOp>(what.dst, what.pitch, bytes, what.height, what.value,
                                            what.elementSize));
    return CUDA_SUCCESS;
  }
  CUresult operator()(const HostNode& node) const {
    ops->push_back(std::make_unique<HostFunctionOp>(node.function, node.data));
    return CUDA_SUCCESS;
  }
  CUresult operator()(const EventRecordNode& node) const {
    EventHandle* entry = event_handles().find(node.event);
    if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    auto record = std::make_shared<Record>();
    entry->captured_in = 0;
    entry->record = record;
    ops->push_back(std::make_unique<RecordOp>(std::move(record)));
    return CUDA_SUCCESS;
  }
  CUresult operator()(const EventWaitNode& node) const {
    const EventHandle* entry = event_handles().find(node.event);
    if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (entry->record != nullptr) ops->push_back(std::make_unique<WaitOp>(entry->record));
    return CUDA_SUCCESS;
  }
  CUresult operator()(const AllocateNode& node) const {
    ops->push_back(std::make_unique<AllocateOp>(node.memory->address, nullptr));
    return CUDA_SUCCESS;
  }
  CUresult operator()(const FreeNode& node) const {
    ops->push_back(std::make_unique<FreeOp>(node.memory->address, std::make_shared<Record>()));
    return CUDA_SUCCESS;
  }
  CUresult operator()(const ValuesNode& node) const { return make_value_ops(node.ops, ops); }
};

CUresult make_value_op(const CUstreamBatchMemOpParams& what, Ops* ops) {
  const bool wide = what.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                    what.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
  const size_t bytes = wide ? 8 : 4;
  switch (what.operation) {
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    case CU_STREAM_MEM_OP_BARRIER:
      return CUDA_SUCCESS;  // memory is always consistent here
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  // Both structs begin alike.
  const CUdeviceptr address = what.waitValue.address;
  const uint64_t value = wide ? what.waitValue.value64 : what.waitValue.value;
  if (address % bytes != 0 || !address_space().is_one_range(address, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (address_space().find(address)->kind == MemoryKind::kManaged) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (what.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
      what.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64) {
    ops->push_back(std::make_unique<WaitValueOp>(address, value, bytes, what.waitValue.flags));
  } else {
    ops->push_back(std::make_unique<WriteValueOp>(address, value, bytes));
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult make_value_ops(const std::vector<CUstreamBatchMemOpParams>& params, Ops* ops) {
  for (const CUstreamBatchMemOpParams& what : params) {
    if (CUresult error = make_value_op(what, ops); error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

CUresult make_node_ops(const NodeParameters& parameters, Ops* ops) {
  return std::visit(Make{ops}, parameters);
}

CUcontext node_context(const NodeParameters& parameters) {
  if (const auto* kernel = std::get_if<KernelNode>(&parameters)) return kernel->context;
  if (const auto* copy = std::get_if<CopyNode>(&parameters)) return copy->context;
  if (const auto* fill = std::get_if<FillNode>(&parameters)) return fill->what.ctx;
  if (const auto* values = std::get_if<ValuesNode>(&parameters)) return values->context;
  return nullptr;
}

}  // namespace simgpu
