// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver as the command line reaches it: by name, at run time, never linked.

#include <cuda.h>
#include <dlfcn.h>

#include <string>
#include <type_traits>

namespace offload::cli {

class Driver {
 public:
  explicit Driver(const char* file) : handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) error_ = dlerror();
  }
  bool loaded() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  bool has(const char* symbol) const { return dlsym(handle_, symbol) != nullptr; }
  // Calls an entry; an entry that is missing answers CUDA_ERROR_NOT_FOUND.
  template <class Function, class... Arguments>
  CUresult call(const char* symbol, Function*, Arguments... arguments) const {
    auto* entry = reinterpret_cast<Function*>(dlsym(handle_, symbol));
    return entry == nullptr ? CUDA_ERROR_NOT_FOUND : entry(arguments...);
  }
  std::string name(CUresult code) const {
    const char* text = nullptr;
    // Only the type is taken: the entry itself would have to be linked.
    auto* type = static_cast<std::remove_pointer_t<decltype(&::cuGetErrorName)>*>(nullptr);
    if (call("cuGetErrorName", type, code, &text) != CUDA_SUCCESS || text == nullptr) {
      text = "an unknown error";
    }
    return std::string(text) + " (" + std::to_string(code) + ")";
  }

 private:
  void* handle_;  // never closed: drivers do not like it
  std::string error_;
};

// Named once: cuda.h renames entries that have versions, and the symbol must be the renamed one.
#define DRIVER_NAME_OF(entry) #entry
#define DRIVER_NAME(entry) DRIVER_NAME_OF(entry)
#define CALL(driver, entry, ...)                                                             \
  (driver).call(DRIVER_NAME(entry), static_cast<std::remove_pointer_t<decltype(&::entry)>*>( \
                                        nullptr) __VA_OPT__(, ) __VA_ARGS__)

}  // namespace offload::cli
