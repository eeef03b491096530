// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/foreign_callers.h"

#include <atomic>
#include <cstdint>
#include <string_view>

#include "interpose/doors/objects.h"
#include "interpose/doors/substitute.h"
#include "interpose/rules.h"

namespace offload {
namespace {

constexpr int kPageBits = 12;
constexpr size_t kSlots = 256;
// Page number * 2 + verdict, plus 2 so that no entry is 0.
constinit std::atomic<uint64_t> verdicts[kSlots]{};

// A library may have come where another was. Before it calls the driver it looks the driver's
// entries up.
void forget_after_lookups() {
  static constinit std::atomic<size_t> lookups_seen{0};
  const size_t lookups = wrappers_handed_out();
  if (lookups_seen.load(std::memory_order_relaxed) == lookups) return;
  for (std::atomic<uint64_t>& slot : verdicts) slot.store(0, std::memory_order_relaxed);
  lookups_seen.store(lookups, std::memory_order_relaxed);
}

bool is_communication_library(const void* code) {
  char path[4096];
  if (!file_of(code, path, sizeof(path))) return false;
  const std::string_view file = file_part(path);
  for (const std::string_view name :
       {"libnccl", "libnvshmem", "libucx", "libucp", "libuct", "libucs", "libucc"}) {
    if (file.starts_with(name)) return true;
  }
  return false;
}

}  // namespace

bool from_communication_library(const void* caller) {
  forget_after_lookups();
  const uint64_t page = reinterpret_cast<uintptr_t>(caller) >> kPageBits;
  std::atomic<uint64_t>& slot = verdicts[page % kSlots];
  const uint64_t known = slot.load(std::memory_order_relaxed);
  if (known >> 1 == page + 1) return (known & 1) != 0;
  const bool verdict = obeys(Rule::kLibrariesTakeFromDriver) && is_communication_library(caller);
  slot.store((page + 1) << 1 | (verdict ? 1 : 0), std::memory_order_relaxed);
  return verdict;
}

}  // namespace offload
