// SPDX-License-Identifier: Apache-2.0
#include "interpose/doors/libcuda.h"

#include <dlfcn.h>

#include <atomic>
#include <string_view>

#include "interpose/doors/real_dl.h"

namespace offload {
namespace {

constinit std::atomic<void*> driver_handle{nullptr};

// Keeps the object in the process for ever, as a driver stays anyway.
void* open_loaded(const char* file) {
  return dlopen(file, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void* handle() {
  void* known = driver_handle.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  void* opened = open_loaded("libcuda.so.1");
  if (opened == nullptr) {
    dlerror();  // the program's next dlerror() is not about this
    return nullptr;
  }
  driver_handle.compare_exchange_strong(known, opened, std::memory_order_acq_rel);
  return driver_handle.load(std::memory_order_acquire);
}

const void* base_of_object(const void* address) {
  Dl_info where;
  return dladdr(address, &where) != 0 ? where.dli_fbase : nullptr;
}

int not_found() {
  return 500;
}  // CUDA_ERROR_NOT_FOUND
int not_initialized() {
  return 3;
}  // CUDA_ERROR_NOT_INITIALIZED

}  // namespace

bool in_libcuda(const void* address) {
  Dl_info where;
  if (dladdr(address, &where) == 0 || where.dli_fname == nullptr) return false;
  const std::string_view path = where.dli_fname;
  return path.substr(path.rfind('/') + 1).starts_with("libcuda.so");
}

bool libcuda_is_loaded() {
  return handle() != nullptr;
}

void* driver_symbol(const char* symbol) {
  void* driver = handle();
  return driver == nullptr ? nullptr : real_dlsym(driver, symbol);
}

void* driver_refusal() {
  return reinterpret_cast<void*>(libcuda_is_loaded() ? &not_found : &not_initialized);
}

void* driver_symbol_or_refusal(const char* symbol) {
  void* pointer = driver_symbol(symbol);
  return pointer != nullptr ? pointer : driver_refusal();
}

void note_libcuda(const void* address) {
  if (driver_handle.load(std::memory_order_acquire) != nullptr) return;
  Dl_info where;
  if (dladdr(address, &where) == 0 || where.dli_fname == nullptr) return;
  void* opened = open_loaded(where.dli_fname);
  void* nothing = nullptr;
  if (opened != nullptr)
    driver_handle.compare_exchange_strong(nothing, opened, std::memory_order_acq_rel);
}

bool in_liboffload(const void* address) {
  return base_of_object(address) == base_of_object(reinterpret_cast<const void*>(&in_liboffload));
}

}  // namespace offload
