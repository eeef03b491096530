// SPDX-License-Identifier: Apache-2.0
// The little that the C++ library needs from a runtime, so that nothing of its exception handling
// is linked: that would bring an unwinder (which wants a newer C library than we do), an emergency
// pool from the program's malloc, and code at load. Nothing in the library throws. Memory of
// standard algorithms comes from our own heap. All of it is hidden: no program binds to it.

#include <sched.h>
#include <stdlib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "interpose/life/heap.h"

// --- operator new and delete

void* operator new(size_t bytes) {
  return offload::own_allocate(bytes);
}
void* operator new[](size_t bytes) {
  return offload::own_allocate(bytes);
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return offload::own_allocate(bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return offload::own_allocate(bytes);
}
void operator delete(void* memory) noexcept {
  offload::own_free(memory);
}
void operator delete[](void* memory) noexcept {
  offload::own_free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  offload::own_free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  offload::own_free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  offload::own_free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  offload::own_free(memory);
}

// --- what would throw, and cannot happen

namespace std {  // NOLINT(cert-dcl58-cpp): in place of libstdc++'s own
const nothrow_t nothrow{};
void __throw_length_error(const char*) {
  abort();
}
void __throw_logic_error(const char*) {
  abort();
}
void __throw_out_of_range_fmt(const char*, ...) {
  abort();
}
void __throw_bad_alloc() {
  abort();
}
void __throw_bad_array_new_length() {
  abort();
}
void __throw_bad_function_call() {
  abort();
}
void __throw_system_error(int) {
  abort();
}
}  // namespace std

extern "C" {
void __cxa_pure_virtual() {
  abort();
}

// A cancelled thread, or an exception of the program's, passes through our frames without a stop.
int __gxx_personality_v0(...) {
  return 8;
}  // _URC_CONTINUE_UNWIND
void _Unwind_Resume() {
  abort();
}  // never reached: nobody stops in our frames

// Local statics. First byte: done. Second: somebody is at it.
int __cxa_guard_acquire(uint64_t* guard) {
  auto* bytes = reinterpret_cast<std::atomic<uint8_t>*>(guard);
  for (;;) {
    if (bytes[0].load(std::memory_order_acquire) != 0) return 0;
    uint8_t nobody = 0;
    if (bytes[1].compare_exchange_strong(nobody, 1, std::memory_order_acquire)) {
      if (bytes[0].load(std::memory_order_acquire) == 0) return 1;
      bytes[1].store(0, std::memory_order_release);
      return 0;
    }
    sched_yield();
  }
}
void __cxa_guard_release(uint64_t* guard) {
  auto* bytes = reinterpret_cast<std::atomic<uint8_t>*>(guard);
  bytes[0].store(1, std::memory_order_release);
  bytes[1].store(0, std::memory_order_release);
}
void __cxa_guard_abort(uint64_t* guard) {
  reinterpret_cast<std::atomic<uint8_t>*>(guard)[1].store(0, std::memory_order_release);
}
}
