// SPDX-License-Identifier: Apache-2.0
#pragma once
// PyTorch's allocator hides tensors inside segments of its own. Two variables, read when torch is
// imported, make it allocate each tensor from the driver. What the program itself does to them
// later is seen by doors/environment.h.

#include <cstddef>
#include <span>
#include <string_view>

#include "profiler/base/options.h"

namespace offload {

// A PYTORCH_CUDA_ALLOC_CONF that would be longer, its end included, is left alone.
inline constexpr size_t kMostConfBytes = 4096;

enum class PytorchVariable { kNone, kCudaAllocConf, kAllocConf, kNoMemoryCaching };

// Which of them has this name.
PytorchVariable pytorch_variable(std::string_view name);
const char* name_of(PytorchVariable variable);

struct PytorchVariables {
  const char* cuda_alloc_conf = nullptr;  // PYTORCH_CUDA_ALLOC_CONF
  const char* alloc_conf =
      nullptr;  // PYTORCH_ALLOC_CONF, its newer name; PyTorch prefers the older
  const char* no_memory_caching = nullptr;  // PYTORCH_NO_CUDA_MEMORY_CACHING
  bool no_memory_caching_is_ours = false;
};

struct PytorchChanges {
  bool set_cuda_alloc_conf = false;    // to what was written into `conf`
  bool set_no_memory_caching = false;  // to "1"
  bool clear_no_memory_caching = false;
};

// What to set, given what is set. A backend that the user chose stays, and so do all other keys;
// `conf` receives the new PYTORCH_CUDA_ALLOC_CONF. Nothing is set that does not fit. Where the user
// chose `native`, what we have set to do without its cache goes.
PytorchChanges plan_pytorch_variables(PytorchAlloc wanted, const PytorchVariables& now,
                                      std::span<char> conf);

// Reads and sets the process's variables. Before main only: setenv is not for threads. Returns
// whether PYTORCH_NO_CUDA_MEMORY_CACHING is ours: set now, or inherited beside the stream-ordered
// backend, where it means nothing and hardly anybody but a liboffload puts it.
bool set_pytorch_variables(PytorchAlloc wanted);

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
