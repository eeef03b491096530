// SPDX-License-Identifier: Apache-2.0
#include "interpose/doors/traps.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "interpose/doors/entries.h"
#include "interpose/doors/libcuda.h"

namespace {
#define TRAP(...) +1
constexpr size_t kExported = 0
#include "interpose/hooks.def"
    ;
constexpr size_t kTraps = kExported + offload::kTrapPoolSize;
constexpr size_t kNameBytes = 64;
constexpr size_t kTrapBytes = 16;
}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) constinit std::atomic<uint8_t> offload_trap_done[kTraps]{};
__attribute__((visibility("hidden"))) constinit std::atomic<void*> offload_trap_targets[kTraps]{};
__attribute__((visibility("hidden"))) extern const char offload_trap_pool[];
__attribute__((visibility("hidden"))) void offload_trap_hit(unsigned number);
}

namespace offload {
namespace {

constinit std::mutex pool_mutex;
constinit size_t pool_used = 0;
constinit char names[kTrapPoolSize][kNameBytes]{};
constinit std::atomic<TrapListener> trap_listener{nullptr};
constinit std::atomic<size_t> hits{0};

const char* name_of_trap(size_t number) {
  return number < kExported ? trap_table()[number].symbol.data() : names[number - kExported];
}

}  // namespace

void set_trap_listener(TrapListener listener) {
  trap_listener.store(listener, std::memory_order_release);
}

void* trap_before(void* target, const char* name) {
  const std::lock_guard lock(pool_mutex);
  size_t at = 0;
  while (at < pool_used &&
         offload_trap_targets[kExported + at].load(std::memory_order_relaxed) != target)
    ++at;
  if (at == kTrapPoolSize) return nullptr;
  if (at == pool_used) {
    std::strncpy(names[at], name, kNameBytes - 1);
    offload_trap_targets[kExported + at].store(target, std::memory_order_release);
    ++pool_used;
  }
  return const_cast<char*>(offload_trap_pool + at * kTrapBytes);
}

size_t traps_hit() {
  return hits.load(std::memory_order_relaxed);
}

}  // namespace offload

void offload_trap_hit(unsigned number) {
  using namespace offload;
  if (offload_trap_targets[number].load(std::memory_order_acquire) == nullptr) {
    // A direct linker came without asking anybody for the address.
    offload_trap_targets[number].store(driver_symbol_or_refusal(trap_table()[number].symbol.data()),
                                       std::memory_order_release);
  }
  const TrapListener listener = trap_listener.load(std::memory_order_acquire);
  if (listener == nullptr || !listener(name_of_trap(number))) return;
  if (offload_trap_done[number].exchange(1, std::memory_order_acq_rel) == 0) {
    hits.fetch_add(1, std::memory_order_relaxed);
  }
}
