// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the handles that the program holds point to. Driver's lock.

#include <cuda.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/handle_pool.h"
#include "tests/simgpu/exec/record.h"
#include "tests/simgpu/exec/shared_event.h"
#include "tests/simgpu/module/module.h"

namespace simgpu {

struct GraphNode;

struct StreamHandle {
  Stream* stream = nullptr;  // null: its green context has ended
};

struct EventHandle {
  Context* context = nullptr;
  unsigned flags = 0;
  RecordRef record;  // null: never recorded
  // Of several processes: null for others. `shared_number` is what it stood at when this process
  // recorded it last; if it has moved on since, another process did.
  std::shared_ptr<SharedEvent> shared;
  uint64_t shared_number = 0;
  bool recorded_elsewhere() const;
  // Last recorded in a capturing stream: the capture, and what was captured before it. 0: it was
  // not.
  uint64_t captured_in = 0;
  std::vector<GraphNode*> captured;
};

struct Code;

// Both a CUfunction and a CUkernel: launches take either.
struct Function {
  const Kernel* kernel = nullptr;
  Code* code = nullptr;
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  int attributes[CU_FUNC_ATTRIBUTE_MAX] = {};
};

// Both a CUmodule and a CUlibrary.
struct Code {
  std::shared_ptr<const Image> image;
  Context* context = nullptr;  // modules only
  bool library = false;
  bool launched = false;  // its code is on the device
  size_t code_bytes = 0;
  uint64_t code_offset = 0;  // and takes memory there, with SIMGPU_CODE_BYTES
  int code_device = -1;
  std::vector<Function*> functions;
};

HandlePool<Context>& contexts();
// A fault: every later call fails so, in the context and in all that share its memory.
void lose(Context& context, CUresult error);
HandlePool<StreamHandle>& stream_handles();
HandlePool<EventHandle>& event_handles();
HandlePool<Code>& code_handles();
HandlePool<Function>& function_handles();

}  // namespace simgpu
