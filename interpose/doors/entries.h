// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rows of hooks.def as data: what liboffload knows of an entry of the driver, by name.
// Constant; any thread; no allocation.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace offload {

// What an entry does to device memory, in the program's eyes.
enum class Effect : uint8_t {
  kAllocates,
  kFrees,
  kUses,   // an operation: reads or writes what its arguments name
  kWaits,  // an operation that may wait for the host or for another device
  kAsks,   // asks about memory, or asks for another entry
  kKeeps,  // takes an address to where its use cannot be seen
  kTakes,  // the driver may need device memory for itself
  kLives,  // something that memory or naming depends on begins, ends or is exchanged
};

// HOOK rows first, then NEEDED rows, in the order of hooks.def.
enum class Entry : uint16_t {
#define HOOK(symbol, ...) symbol,
#include "interpose/hooks.def"
  kHooks_,
  before_needed_ = kHooks_ - 1,
#define NEEDED(symbol, ...) symbol,
#include "interpose/hooks.def"
  count_
};
inline constexpr size_t kHookCount = static_cast<size_t>(Entry::kHooks_);
inline constexpr size_t kEntryCount = static_cast<size_t>(Entry::count_);

struct EntryInfo {
  std::string_view symbol;  // as libcuda exports it; terminated
  std::string_view base;    // as cuGetProcAddress knows it; terminated
  int version = 0;          // CUDA version from which `base` means this symbol
  bool per_thread = false;  // its default stream is the thread's own
  Effect effect = Effect::kAsks;
};
const EntryInfo& info(Entry entry);
inline size_t index(Entry entry) {
  return static_cast<size_t>(entry);
}

struct TrapInfo {
  std::string_view symbol;
  std::string_view base;
};
// In the order of hooks.def, which is that of the exported traps.
std::span<const TrapInfo> trap_table();

enum class Knowledge : uint8_t {
  kNotDriver,  // not spelled like an entry of the driver: "cu" and a capital letter
  kUnknown,    // spelled like one, but in no row
  kHarmless,
  kTrapped,
  kHooked,
};
struct NameInfo {
  Knowledge knowledge = Knowledge::kNotDriver;
  size_t row = 0;  // kHooked: Entry; kTrapped: index in trap_table()
};
// By exported symbol, exact.
NameInfo find_symbol(std::string_view symbol);

// Knowledge of a base name. kHooked: `rows` are the entries of that base.
struct BaseInfo {
  Knowledge knowledge = Knowledge::kNotDriver;
  std::span<const Entry> rows;
};
BaseInfo find_base(std::string_view base);

// The base name of a symbol: without _ptds or _ptsz, and without _v<number>.
std::string_view base_of(std::string_view symbol);

}  // namespace offload
