// SPDX-License-Identifier: Apache-2.0
#include "interpose/driver/table.h"

#include "interpose/doors/libcuda.h"

namespace offload {

constinit std::atomic<void*> real_entries[kEntryCount]{};

namespace {

// Asks as a program would. Entries that a driver does not export but knows by name are found this
// way.
void* by_proc_address(const EntryInfo& wanted) {
  const auto ask =
      reinterpret_cast<PFN_cuGetProcAddress_v12000>(driver_symbol("cuGetProcAddress_v2"));
  const auto ask_old =  // before CUDA 12
      reinterpret_cast<PFN_cuGetProcAddress_v11030>(driver_symbol("cuGetProcAddress"));
  void* pointer = nullptr;
  const cuuint64_t flags = wanted.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                             : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  CUresult result = CUDA_ERROR_NOT_FOUND;
  if (ask != nullptr) {
    result = ask(wanted.base.data(), &pointer, wanted.version, flags, nullptr);
  } else if (ask_old != nullptr) {
    result = ask_old(wanted.base.data(), &pointer, wanted.version, flags);
  }
  return result == CUDA_SUCCESS ? pointer : nullptr;
}

void* look_for(Entry entry) {
  const EntryInfo& wanted = info(entry);
  void* pointer = driver_symbol(wanted.symbol.data());
  if (pointer == nullptr) pointer = by_proc_address(wanted);
  if (pointer != nullptr) learn(entry, pointer);
  return real_entries[index(entry)].load(std::memory_order_relaxed);
}

}  // namespace

void* find_real(Entry entry) {
  void* pointer = look_for(entry);
  return pointer != nullptr ? pointer : driver_refusal();
}

void find_all_real() {
  static constinit std::atomic<bool> found{false};
  if (found.load(std::memory_order_acquire)) return;
  for (size_t i = 0; i < kEntryCount; ++i) {
    const auto entry = static_cast<Entry>(i);
    if (real_entries[i].load(std::memory_order_relaxed) == nullptr && look_for(entry) == nullptr)
      learn(entry, driver_refusal());
  }
  found.store(true, std::memory_order_release);
}

void learn(Entry entry, void* pointer) {
  std::atomic<void*>& at = real_entries[index(entry)];
  void* known = at.load(std::memory_order_relaxed);
  if (known == nullptr || is_driver_refusal(known))
    at.compare_exchange_strong(known, pointer, std::memory_order_relaxed);
}

bool has(Entry entry) {
  const void* known = real_entries[index(entry)].load(std::memory_order_relaxed);
  if (known == nullptr) known = look_for(entry);
  return known != nullptr && !is_driver_refusal(known);
}

}  // namespace offload
