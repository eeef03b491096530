// SPDX-License-Identifier: Apache-2.0
// The last error of each thread, and names and texts of codes.

#include <cuda_runtime_api.h>

#include <iterator>

#include "tests/simgpu/runtime/call.h"

namespace simgpu::runtime {

ThreadState& thread_state() {
  static thread_local ThreadState state;
  return state;
}

cudaError_t remember(cudaError_t status) {
  if (status != cudaSuccess) thread_state().last_error = status;
  return status;
}

bool is_sticky(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

namespace {

struct Text {
  cudaError_t code;
  const char* name;
  const char* text;
};

#define ERROR_TEXT(code, text) \
  Text {                       \
    code, #code, text          \
  }
constexpr Text kTexts[] = {
#include "tests/simgpu/runtime/errors.def"
};
#undef ERROR_TEXT

const Text* find_text(cudaError_t code) {
  for (const Text& text : kTexts) {
    if (text.code == code) return &text;
  }
  return nullptr;
}

}  // namespace
RUNTIME_WIPED(cudaGetLastError, (), ()) {
  ThreadState& state = thread_state();
  const cudaError_t last = state.last_error;
  if (!is_sticky(last)) state.last_error = cudaSuccess;
  return last;
}

RUNTIME_WIPED(cudaPeekAtLastError, (), ()) {
  return thread_state().last_error;
}

extern "C" __attribute__((visibility("default"))) const char* cudaGetErrorName(cudaError_t error) {
  const Text* found = find_text(error);
  return found != nullptr ? found->name : "unrecognized error code";
}

extern "C" __attribute__((visibility("default"))) const char* cudaGetErrorString(
    cudaError_t error) {
  const Text* found = find_text(error);
  return found != nullptr ? found->text : "unrecognized error code";
}

}  // namespace simgpu::runtime
