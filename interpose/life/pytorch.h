// SPDX-License-Identifier: Apache-2.0
#pragma once
// PyTorch's allocator hides tensors inside segments of its own. Two variables, read when torch is
// imported, make it allocate each tensor from the driver.

#include <span>

#include "profiler/base/options.h"

namespace offload {

struct PytorchVariables {
  const char* cuda_alloc_conf = nullptr;  // PYTORCH_CUDA_ALLOC_CONF
  const char* alloc_conf =
      nullptr;  // PYTORCH_ALLOC_CONF, its newer name; PyTorch prefers the older
  const char* no_memory_caching = nullptr;  // PYTORCH_NO_CUDA_MEMORY_CACHING
};

struct PytorchChanges {
  bool set_cuda_alloc_conf = false;    // to what was written into `conf`
  bool set_no_memory_caching = false;  // to "1"
};

// What to set, given what is set. A backend that the user chose stays, and so do all other keys;
// `conf` receives the new PYTORCH_CUDA_ALLOC_CONF. Nothing is set that does not fit.
PytorchChanges plan_pytorch_variables(PytorchAlloc wanted, const PytorchVariables& now,
                                      std::span<char> conf);

// Reads and sets the process's variables. Before main only: setenv is not for threads.
void set_pytorch_variables(PytorchAlloc wanted);

// Whether libc10_cuda is loaded.
bool is_pytorch();
// Which allocator PyTorch takes, by its variables as they are now (scripts change them before they
// import torch).
PytorchAlloc pytorch_allocator();
// Both together: a PyTorch that keeps its own cache.
bool is_native_pytorch();
// One whose backend is the stream-ordered one, as liboffload chooses. It ends the process where a
// free fails, of which the cache that the user would have had knows nothing. Whether it is one
// of the user's own choice cannot be told in a process that another has started.
bool is_async_pytorch();

}  // namespace offload
