// SPDX-License-Identifier: Apache-2.0
#include "interpose/naming/ask_driver.h"

#include <string_view>

#include "interpose/driver/table.h"

namespace offload {

LayoutAnswer ask_driver(const void* function, size_t index, ParameterInfo* out) {
  const auto handle = reinterpret_cast<CUfunction>(const_cast<void*>(function));
  const auto kernel = reinterpret_cast<CUkernel>(const_cast<void*>(function));
  const CUresult as_function =
      real<Entry::cuFuncGetParamInfo>()(handle, index, &out->offset, &out->size);
  if (as_function == CUDA_SUCCESS) return LayoutAnswer::kParameter;
  const CUresult as_kernel =
      real<Entry::cuKernelGetParamInfo>()(kernel, index, &out->offset, &out->size);
  if (as_kernel == CUDA_SUCCESS) return LayoutAnswer::kParameter;
  // INVALID_VALUE is how either says that there is no such parameter.
  const bool ended =
      as_function == CUDA_ERROR_INVALID_VALUE || as_kernel == CUDA_ERROR_INVALID_VALUE;
  return ended ? LayoutAnswer::kEnd : LayoutAnswer::kRefused;
}

bool is_collective(const void* function) {
  const auto handle = reinterpret_cast<CUfunction>(const_cast<void*>(function));
  const auto kernel = reinterpret_cast<CUkernel>(const_cast<void*>(function));
  const char* name = nullptr;
  if (real<Entry::cuFuncGetName>()(&name, handle) != CUDA_SUCCESS &&
      real<Entry::cuKernelGetName>()(&name, kernel) != CUDA_SUCCESS)
    return false;
  if (name == nullptr) return false;
  const std::string_view text = name;  // mangled
  return text.find("ncclDevKernel") != std::string_view::npos ||
         text.find("ncclKernel") != std::string_view::npos;
}

}  // namespace offload
