// SPDX-License-Identifier: Apache-2.0
// Modules, libraries, and the kernels in them.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/driver/say.h"
#include "tests/simgpu/memory/machine.h"

using simgpu::Call;
using simgpu::Code;
using simgpu::code_handles;
using simgpu::Function;
using simgpu::function_handles;
using simgpu::Needs;

namespace {

CUresult load(Call& call, const void* data, bool library, Code** made) {
  if (call.error != CUDA_SUCCESS) return call.error;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Reading an image may run code (libraries of twins) that needs the lock.
  call.lock.unlock();
  std::string error;
  std::shared_ptr<const simgpu::Image> image = simgpu::load_image(data, &error);
  call.lock.lock();
  if (image == nullptr) {
    simgpu::say("an image cannot be loaded: %s", error.c_str());
    return CUDA_ERROR_INVALID_IMAGE;
  }
  Code* code = code_handles().create();
  code->image = std::move(image);
  code->context = library ? nullptr : call.context;
  code->library = library;
  *made = code;
  return CUDA_SUCCESS;
}

CUresult load_file(const char* path, std::string* data) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  data->assign(std::istreambuf_iterator<char>(file), {});
  return CUDA_SUCCESS;
}

Function* function_of(Code* code, const simgpu::Kernel* kernel) {
  for (Function* function : code->functions) {
    if (function->kernel == kernel) return function;
  }
  Function* function = function_handles().create();
  function->kernel = kernel;
  function->code = code;
  code->functions.push_back(function);
  return function;
}

CUresult unload(Code* code) {
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (Function* function : code->functions) function_handles().destroy(function);
  if (code->code_device >= 0) {
    simgpu::device_memory(code->code_device).free(code->code_offset, code->code_bytes);
  }
  code_handles().destroy(code);
  return CUDA_SUCCESS;
}

CUresult find_function(Call& call, const void* code_handle, const char* name, Function** found) {
  if (call.error != CUDA_SUCCESS) return call.error;
  Code* code = code_handles().find(code_handle);
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const simgpu::Kernel* kernel = code->image->find(name);
  if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
  *found = function_of(code, kernel);
  return CUDA_SUCCESS;
}

// Fills `handles` with all functions, or as many as fit.
template <class Handle>
CUresult enumerate(Call& call, Handle* handles, unsigned count, const void* code_handle) {
  if (call.error != CUDA_SUCCESS) return call.error;
  Code* code = code_handles().find(code_handle);
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (handles == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto kernels = code->image->kernels();
  for (size_t i = 0; i < std::min<size_t>(count, kernels.size()); ++i) {
    handles[i] = reinterpret_cast<Handle>(function_of(code, kernels[i]));
  }
  return CUDA_SUCCESS;
}

CUresult count_functions(Call& call, unsigned* count, const void* code_handle) {
  if (call.error != CUDA_SUCCESS) return call.error;
  const Code* code = code_handles().find(code_handle);
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(code->image->kernels().size());
  return CUDA_SUCCESS;
}

CUresult load_module(CUmodule* module, const void* data) {
  Call call(Needs::kContext);
  if (module == nullptr) return call.error != CUDA_SUCCESS ? call.error : CUDA_ERROR_INVALID_VALUE;
  Code* code = nullptr;
  const CUresult result = load(call, data, false, &code);
  if (result == CUDA_SUCCESS) *module = reinterpret_cast<CUmodule>(code);
  return result;
}

CUresult load_library(CUlibrary* library, const void* data) {
  Call call(Needs::kDriver);
  if (library == nullptr) return call.error != CUDA_SUCCESS ? call.error : CUDA_ERROR_INVALID_VALUE;
  Code* code = nullptr;
  const CUresult result = load(call, data, true, &code);
  if (result == CUDA_SUCCESS) *library = reinterpret_cast<CUlibrary>(code);
  return result;
}

}  // namespace

SIMGPU_API cuModuleLoadData(CUmodule* module, const void* image) {
  const simgpu::ApiName api_name(__func__);
  return load_module(module, image);
}

SIMGPU_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                              void**) {
  const simgpu::ApiName api_name(__func__);
  return load_module(module, image);
}

SIMGPU_API cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  const simgpu::ApiName api_name(__func__);
  return load_module(module, image);
}

SIMGPU_API cuModuleLoad(CUmodule* module, const char* path) {
  const simgpu::ApiName api_name(__func__);
  std::string data;
  const CUresult result = load_file(path, &data);
  return result == CUDA_SUCCESS ? load_module(module, data.c_str()) : result;
}

SIMGPU_API cuModuleUnload(CUmodule module) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  return unload(code_handles().find(module));
}

SIMGPU_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  Call call(Needs::kContext);
  Function* found = nullptr;
  const CUresult result = find_function(call, module, name, &found);
  if (result == CUDA_SUCCESS) *function = reinterpret_cast<CUfunction>(found);
  return result;
}

SIMGPU_API cuModuleGetFunctionCount(unsigned int* count, CUmodule module) {
  Call call(Needs::kContext);
  return count_functions(call, count, module);
}

SIMGPU_API cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule module) {
  Call call(Needs::kContext);
  return enumerate(call, functions, count, module);
}

// Variables in modules are not modelled: none is ever found.
SIMGPU_API cuModuleGetGlobal_v2(CUdeviceptr*, size_t*, CUmodule module, const char*) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  return code_handles().find(module) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

SIMGPU_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  const simgpu::ApiName api_name(__func__);
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

SIMGPU_API cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                             unsigned int, CUlibraryOption*, void**, unsigned int) {
  const simgpu::ApiName api_name(__func__);
  return load_library(library, code);
}

SIMGPU_API cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**,
                                 unsigned int, CUlibraryOption*, void**, unsigned int) {
  const simgpu::ApiName api_name(__func__);
  std::string data;
  const CUresult result = load_file(path, &data);
  return result == CUDA_SUCCESS ? load_library(library, data.c_str()) : result;
}

SIMGPU_API cuLibraryUnload(CUlibrary library) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  return unload(code_handles().find(library));
}

SIMGPU_API cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  Call call(Needs::kDriver);
  Function* found = nullptr;
  const CUresult result = find_function(call, library, name, &found);
  if (result == CUDA_SUCCESS) *kernel = reinterpret_cast<CUkernel>(found);
  return result;
}

SIMGPU_API cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
  Call call(Needs::kDriver);
  return count_functions(call, count, library);
}

SIMGPU_API cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count, CUlibrary library) {
  Call call(Needs::kDriver);
  return enumerate(call, kernels, count, library);
}

// A library's module is the library itself: both name the same code.
SIMGPU_API cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  Code* code = code_handles().find(library);
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *module = reinterpret_cast<CUmodule>(code);
  return CUDA_SUCCESS;
}

SIMGPU_API cuLibraryGetGlobal(CUdeviceptr*, size_t*, CUlibrary library, const char*) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  return code_handles().find(library) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

SIMGPU_API cuLibraryGetManaged(CUdeviceptr*, size_t*, CUlibrary library, const char*) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  return code_handles().find(library) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}
