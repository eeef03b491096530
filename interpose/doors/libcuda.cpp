// SPDX-License-Identifier: Apache-2.0
#include "interpose/doors/libcuda.h"

#include <dlfcn.h>

#include <atomic>
#include <string_view>

#include "interpose/doors/objects.h"
#include "interpose/doors/real_dl.h"

// Where this library begins and ends, by the linker's word.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start[];
[[gnu::visibility("hidden")]] extern const char _end[];
}

namespace offload {
namespace {

constexpr size_t kMostPath = 4096;
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

int not_found() {
  return 500;
}  // CUDA_ERROR_NOT_FOUND
int not_initialized() {
  return 3;
}  // CUDA_ERROR_NOT_INITIALIZED

}  // namespace

bool is_libcuda_file(const char* path) {
  return path != nullptr && file_part(path).starts_with("libcuda.so");
}

bool in_libcuda(const void* address) {
  char file[kMostPath];
  return file_of(address, file, sizeof(file)) && is_libcuda_file(file);
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

bool is_driver_refusal(const void* pointer) {
  return pointer == reinterpret_cast<const void*>(&not_found) ||
         pointer == reinterpret_cast<const void*>(&not_initialized);
}

void* driver_symbol_or_refusal(const char* symbol) {
  void* pointer = driver_symbol(symbol);
  return pointer != nullptr ? pointer : driver_refusal();
}

void note_libcuda(const void* address) {
  if (driver_handle.load(std::memory_order_acquire) != nullptr) return;
  char file[kMostPath];
  if (!file_of(address, file, sizeof(file)) || *file == '\0') return;
  void* opened = open_loaded(file);
  void* nothing = nullptr;
  if (opened != nullptr)
    driver_handle.compare_exchange_strong(nothing, opened, std::memory_order_acq_rel);
}

bool in_liboffload(const void* address) {
  return address >= __ehdr_start && address < _end;
}

}  // namespace offload
