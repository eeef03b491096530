// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver's real entries, typed as cuda.h types them. Each is found when first asked for, in the
// libcuda that the program uses; a driver is never loaded by us. Any thread; no allocation. A
// missing entry is a function that answers CUDA_ERROR_NOT_FOUND (or NOT_INITIALIZED without a
// driver), never null.

#include <atomic>

#include "interpose/doors/entries.h"
#include "interpose/driver/cuda_api.h"

namespace offload {

template <Entry E>
struct RealType;
#define HOOK(symbol, base, version, suffix, ...)            \
  template <>                                               \
  struct RealType<Entry::symbol> {                          \
    using type = PFN_##base##_v##version##suffix;           \
    static constexpr bool per_thread = sizeof(#suffix) > 1; \
  };
#define NEEDED(symbol, base, version, suffix) HOOK(symbol, base, version, suffix, )
#include "interpose/hooks.def"

extern std::atomic<void*> real_entries[kEntryCount];  // null: not looked for, or not there

void* find_real(Entry entry);
// Now, while no lock of ours is held: looking an entry up takes the loader's lock, which another
// thread may hold that waits for one of ours.
void find_all_real();

template <Entry E>
typename RealType<E>::type real() {
  void* pointer = real_entries[static_cast<size_t>(E)].load(std::memory_order_relaxed);
  if (pointer == nullptr) [[unlikely]]
    pointer = find_real(E);
  return reinterpret_cast<typename RealType<E>::type>(pointer);
}

// A door has seen the driver's own answer for this entry: that is what the wrapper will call.
void learn(Entry entry, void* pointer);
// Whether the driver has it.
bool has(Entry entry);

}  // namespace offload
