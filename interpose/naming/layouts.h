// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where pointers can stand in a kernel's arguments: for each parameter its offset and size, asked
// of the driver once per function and remembered until a module is unloaded. A look-up takes no
// lock and makes no driver call.

#include <atomic>
#include <cstdint>
#include <mutex>

#include "interpose/engine/edges.h"
#include "interpose/life/heap.h"

namespace offload {

// A run of aligned 8-byte words in one parameter.
struct WordRun {
  uint16_t parameter = 0;
  uint16_t first = 0;  // bytes from the parameter's beginning
  uint16_t words = 0;
};

struct Layout {
  std::atomic<uint64_t> generation{0};  // of modules; an older one is out of date
  const void* function = nullptr;
  Layout* next_of_function = nullptr;  // another that the same handle has had; writers only
  uint32_t runs = 0;
  bool known = false;                             // false: the driver would not tell
  mutable std::atomic<bool> communicates{false};  // with other processes, whose kernels it awaits
  WordRun run[];
};

struct ParameterInfo {
  size_t offset = 0;
  size_t size = 0;
};

// Asks the driver for parameter `index`: true and the info, or false past the last.
enum class LayoutAnswer : uint8_t { kParameter, kEnd, kRefused };
using AskLayout = LayoutAnswer (*)(const void* function, size_t index, ParameterInfo* out);

class Layouts {
 public:
  explicit Layouts(AskLayout ask);

  // Null: not known yet, then learn() it. The result lives for ever.
  const Layout* find(const void* function) const {
    const Table& table = *table_.load(std::memory_order_acquire);
    const uint64_t generation = generation_.load(std::memory_order_acquire);
    for (size_t at = slot_of(function, table.mask);; at = (at + 1) & table.mask) {
      const Layout* layout = table.slots[at].load(std::memory_order_acquire);
      if (layout == nullptr) break;
      if (layout->function == function) {
        if (layout->generation.load(std::memory_order_acquire) == generation) return layout;
        break;
      }
    }
    return nullptr;
  }
  // Asks the driver. Never null.
  const Layout* learn(const void* function);

  // Before a module or library is unloaded: its handles may come back as other functions.
  void forget_all() { generation_.fetch_add(1, std::memory_order_acq_rel); }

  size_t known_functions() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Table {
    size_t mask;
    std::atomic<Layout*> slots[];
  };
  static size_t slot_of(const void* function, size_t mask) {
    const auto value = reinterpret_cast<uintptr_t>(function);
    return static_cast<size_t>((value * 0x9E3779B97F4A7C15u) >> 32) & mask;
  }
  static Table* new_table(size_t slots);
  Layout* make(const void* function, uint64_t generation) const;
  void put(Table& table, Layout* layout);
  void grow();

  const AskLayout ask_;
  std::atomic<Table*> table_;
  std::atomic<uint64_t> generation_{1};
  std::atomic<size_t> count_{0};
  PlainMutex mutex_;  // of writers; not held while the driver is asked
};

}  // namespace offload
