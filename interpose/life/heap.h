// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library's own heap. The program's malloc belongs to the program: nothing in interpose/
// allocates from it, and no memory crosses between the two heaps. Thread-safe. Never returns null:
// without memory for a few hundred bytes nothing sensible is left to do, and the process is ended
// with a message.

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <new>
#include <utility>
#include <vector>

namespace offload {

void* own_allocate(size_t bytes);
void own_free(void* memory);
size_t own_bytes_in_use();

template <typename T>
struct OwnAllocator {
  using value_type = T;
  OwnAllocator() = default;
  template <typename U>
  OwnAllocator(const OwnAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(own_allocate(count * sizeof(T))); }
  void deallocate(T* memory, size_t) { own_free(memory); }
  template <typename U>
  bool operator==(const OwnAllocator<U>&) const {
    return true;
  }
};

template <typename T>
using OwnVector = std::vector<T, OwnAllocator<T>>;
template <typename T>
using OwnDeque = std::deque<T, OwnAllocator<T>>;
template <typename K, typename V>
using OwnMap = std::map<K, V, std::less<K>, OwnAllocator<std::pair<const K, V>>>;

template <typename T, typename... A>
T* own_new(A&&... arguments) {
  return new (own_allocate(sizeof(T))) T(std::forward<A>(arguments)...);
}

}  // namespace offload
