// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/runtime/registry.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>

#include "tests/simgpu/runtime/call.h"

namespace simgpu::runtime {

struct FatBinary {
  const void* wrapper;
  std::mutex lock;  // guards what follows
  CUlibrary library = nullptr;
  cudaError_t status = cudaSuccess;
};

namespace {

struct Function {
  FatBinary* fat_binary;
  const char* name;  // the program's
  CUkernel kernel = nullptr;
};

struct Variable {
  FatBinary* fat_binary;
  const char* name;
  size_t bytes;
};

struct Registry {
  std::shared_mutex lock;
  std::unordered_map<const void*, Function> functions;
  std::unordered_map<const void*, Variable> variables;
  std::unordered_set<CUkernel> kernels;
};

Registry& registry() {
  // Never destroyed: programs unregister from atexit handlers, in any order.
  static auto* const one = new Registry;
  return *one;
}

cudaError_t load(FatBinary* fat_binary, CUlibrary* library) {
  const std::lock_guard lock(fat_binary->lock);
  if (fat_binary->library == nullptr && fat_binary->status == cudaSuccess) {
    fat_binary->status = call(driver().cuLibraryLoadData, &fat_binary->library, fat_binary->wrapper,
                              nullptr, nullptr, 0U, nullptr, nullptr, 0U);
  }
  *library = fat_binary->library;
  return fat_binary->status;
}

}  // namespace

FatBinary* register_fat_binary(const void* wrapper) {
  return new FatBinary{wrapper, {}};
}

void register_function(FatBinary* fat_binary, const void* host_function, const char* name) {
  Registry& all = registry();
  const std::unique_lock lock(all.lock);
  all.functions.insert_or_assign(host_function, Function{fat_binary, name});
}

void register_variable(FatBinary* fat_binary, const void* host_variable, const char* name,
                       size_t bytes) {
  Registry& all = registry();
  const std::unique_lock lock(all.lock);
  all.variables.insert_or_assign(host_variable, Variable{fat_binary, name, bytes});
}

void forget(FatBinary* fat_binary) {
  Registry& all = registry();
  const std::unique_lock lock(all.lock);
  std::erase_if(all.functions, [&](const auto& entry) {
    if (entry.second.fat_binary != fat_binary) return false;
    all.kernels.erase(entry.second.kernel);
    return true;
  });
  std::erase_if(all.variables,
                [&](const auto& entry) { return entry.second.fat_binary == fat_binary; });
  if (fat_binary->library != nullptr) call(driver().cuLibraryUnload, fat_binary->library);
  delete fat_binary;
}

cudaError_t find_kernel(const void* host_function, CUkernel* kernel) {
  Registry& all = registry();
  Function function{};
  {
    const std::shared_lock lock(all.lock);
    const auto found = all.functions.find(host_function);
    if (found == all.functions.end()) {
      *kernel = static_cast<CUkernel>(const_cast<void*>(host_function));
      return all.kernels.contains(*kernel) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
    }
    function = found->second;
  }
  *kernel = function.kernel;
  if (*kernel != nullptr) return cudaSuccess;
  CUlibrary library = nullptr;
  cudaError_t status = load(function.fat_binary, &library);
  if (status != cudaSuccess) return status;
  status = call(driver().cuLibraryGetKernel, kernel, library, function.name);
  // The driver knows a missing name; the runtime says that the function is none.
  if (status == cudaErrorSymbolNotFound) return cudaErrorInvalidDeviceFunction;
  if (status != cudaSuccess) return status;
  const std::unique_lock lock(all.lock);
  const auto found = all.functions.find(host_function);
  if (found != all.functions.end()) found->second.kernel = *kernel;
  all.kernels.insert(*kernel);
  return cudaSuccess;
}

void remember_kernel(CUkernel kernel) {
  Registry& all = registry();
  const std::unique_lock lock(all.lock);
  all.kernels.insert(kernel);
}

cudaError_t find_variable(const void* host_variable, CUdeviceptr* address, size_t* bytes) {
  Registry& all = registry();
  Variable variable{};
  {
    const std::shared_lock lock(all.lock);
    const auto found = all.variables.find(host_variable);
    if (found == all.variables.end()) return cudaErrorInvalidSymbol;
    variable = found->second;
  }
  CUlibrary library = nullptr;
  const cudaError_t status = load(variable.fat_binary, &library);
  if (status != cudaSuccess) return status;
  *bytes = variable.bytes;
  return call(driver().cuLibraryGetGlobal, address, bytes, library, variable.name);
}

}  // namespace simgpu::runtime
