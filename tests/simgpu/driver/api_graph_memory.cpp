// SPDX-License-Identifier: Apache-2.0
// What graphs own beside their nodes: memory, and objects of the program.
#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/exec/graph.h"
#include "tests/simgpu/exec/graph_memory.h"
#include "tests/simgpu/exec/user_object.h"

using simgpu::Call;
using simgpu::Needs;
using simgpu::UserObject;
namespace graph_memory = simgpu::graph_memory;
namespace user_objects = simgpu::user_objects;

namespace {

bool is_device(CUdevice device) {
  return device >= 0 && device < simgpu::options().devices;
}

}  // namespace

SIMGPU_API cuDeviceGraphMemTrim(CUdevice device) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  graph_memory::trim(device);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                        void* value) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const graph_memory::Totals& totals = graph_memory::totals(device);
  auto* bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      *bytes = totals.used;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      *bytes = totals.used_high;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *bytes = totals.reserved;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *bytes = totals.reserved_high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIMGPU_API cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                        void* value) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  // Only a high mark can be set, and only to zero.
  if (value == nullptr || *static_cast<const cuuint64_t*>(value) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  graph_memory::Totals& totals = graph_memory::totals(device);
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
    totals.used_high = totals.used;
  } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    totals.reserved_high = totals.reserved;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuUserObjectCreate(CUuserObject* object, void* pointer, CUhostFn destroy,
                              unsigned int references, unsigned int flags) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  // That nobody may wait for the destructor must be said.
  if (object == nullptr || destroy == nullptr || references == 0 ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *object = reinterpret_cast<CUuserObject>(user_objects::create(pointer, destroy, references));
  return CUDA_SUCCESS;
}

SIMGPU_API cuUserObjectRetain(CUuserObject object, unsigned int count) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  UserObject* found = user_objects::find(object);
  if (found == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  user_objects::retain(found, count);
  return CUDA_SUCCESS;
}

SIMGPU_API cuUserObjectRelease(CUuserObject object, unsigned int count) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  UserObject* found = user_objects::find(object);
  if (found == nullptr || count == 0 || count > found->references) return CUDA_ERROR_INVALID_VALUE;
  user_objects::release(found, count);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                   unsigned int flags) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  simgpu::Graph* owner = simgpu::graphs::find(graph);
  UserObject* found = user_objects::find(object);
  const bool moves = flags == CU_GRAPH_USER_OBJECT_MOVE;
  if (owner == nullptr || found == nullptr || count == 0 || (flags != 0 && !moves) ||
      (moves && count > found->references)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!moves) user_objects::retain(found, count);
  owner->user_objects[found] += count;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  simgpu::Graph* owner = simgpu::graphs::find(graph);
  UserObject* found = user_objects::find(object);
  if (owner == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto it = owner->user_objects.find(found);
  if (it == owner->user_objects.end() || count == 0 || count > it->second) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  it->second -= count;
  if (it->second == 0) owner->user_objects.erase(it);
  user_objects::release(found, count);
  return CUDA_SUCCESS;
}
