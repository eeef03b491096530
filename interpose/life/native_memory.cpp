// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/native_memory.h"

#include <algorithm>

namespace offload {

bool NativeMemory::reserve(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > limit_bytes_ - std::min(limit_bytes_, reserved_bytes_)) return false;
  reserved_bytes_ += bytes;
  return true;
}

void NativeMemory::hold(Kind kind, uint64_t name, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  count(kind, name, bytes);
  statistics_.allocations.add();
}

void NativeMemory::take_back(Kind kind, uint64_t name, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  reserved_bytes_ += bytes;
  count(kind, name, bytes);
}

void NativeMemory::cancel(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  reserved_bytes_ -= bytes;
}

uint64_t NativeMemory::let_go(Kind kind, uint64_t name) {
  const std::lock_guard lock(mutex_);
  const auto found = of(kind).find(name);
  if (found == of(kind).end()) return 0;
  const uint64_t bytes = found->second;
  of(kind).erase(found);
  uncount(bytes);
  statistics_.frees.add();
  return bytes;
}

void NativeMemory::forget() {
  const std::lock_guard lock(mutex_);
  for (auto* held : {&addresses_, &handles_}) {
    for (const auto& [name, bytes] : *held) uncount(bytes);
    held->clear();
  }
}

void NativeMemory::count(Kind kind, uint64_t name, uint64_t bytes) {
  of(kind)[name] = bytes;
  statistics_.add_live(bytes);
  statistics_.mapped_bytes.add(bytes);
}

void NativeMemory::uncount(uint64_t bytes) {
  reserved_bytes_ -= bytes;
  statistics_.remove_live(bytes);
  statistics_.mapped_bytes.subtract(bytes);
}

uint64_t NativeMemory::left_bytes() const {
  const std::lock_guard lock(mutex_);
  return limit_bytes_ - std::min(limit_bytes_, reserved_bytes_);
}

}  // namespace offload
