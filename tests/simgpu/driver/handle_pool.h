// SPDX-License-Identifier: Apache-2.0
#pragma once
// Handles that the program holds: pointers to objects in one reserved array per type, so that any
// pointer can be checked for being alive, and a destroyed handle is the next one given out.
// Driver's lock. Never freed.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace simgpu {

template <class T>
class HandlePool {
 public:
  T* create() {
    Slot* slot = free_;
    if (slot != nullptr) {
      free_ = slot->next;
    } else {
      if (slots_ == nullptr) reserve();
      if (used_ == kCapacity) return nullptr;
      slot = slots_ + used_++;
    }
    new (&slot->value) T();
    slot->alive = true;
    return &slot->value;
  }

  void destroy(T* handle) {
    Slot* slot = slot_of(handle);
    handle->~T();
    slot->alive = false;
    slot->next = free_;
    free_ = slot;
  }

  // The object if `handle` is one of this pool's that is alive, else null.
  T* find(const void* handle) const {
    const auto address = reinterpret_cast<uintptr_t>(handle);
    const auto begin = reinterpret_cast<uintptr_t>(slots_);
    if (slots_ == nullptr || address < begin || address >= begin + used_ * sizeof(Slot))
      return nullptr;
    if ((address - begin) % sizeof(Slot) != 0) return nullptr;
    Slot* slot = slots_ + (address - begin) / sizeof(Slot);
    return slot->alive ? &slot->value : nullptr;
  }

  template <class Visit>
  void for_each(Visit visit) {
    for (size_t i = 0; i < used_; ++i) {
      if (slots_[i].alive) visit(slots_[i].value);
    }
  }

 private:
  struct Slot {
    union {
      T value;
    };
    Slot* next;
    bool alive;
  };
  static constexpr size_t kCapacity = size_t{1} << 20;

  void reserve() {
    void* memory = mmap(nullptr, kCapacity * sizeof(Slot), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    slots_ = static_cast<Slot*>(memory);
  }
  static Slot* slot_of(T* handle) { return reinterpret_cast<Slot*>(handle); }

  Slot* slots_ = nullptr;
  Slot* free_ = nullptr;
  size_t used_ = 0;
};

}  // namespace simgpu
