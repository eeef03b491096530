// SPDX-License-Identifier: Apache-2.0
#include "interpose/doors/substitute.h"

namespace offload {
namespace {

// The newest CUDA version whose entries hooks.def lists completely. An answer for a newer one that
// is none of the pointers we know is a variant that we do not know.
constexpr int kNewestKnown = 13000;

}  // namespace

const PointerNames::Known& PointerNames::known(Entry entry) {
  Known& it = known_[index(entry)];
  if (!it.asked.load(std::memory_order_acquire)) {
    const EntryInfo& row = info(entry);
    it.by_symbol.store(lookups_.by_symbol(row.symbol.data()), std::memory_order_relaxed);
    it.by_base.store(lookups_.by_base(row.base.data(), row.version, row.per_thread),
                     std::memory_order_relaxed);
    it.asked.store(true, std::memory_order_release);
  }
  return it;
}

Verdict PointerNames::judge(const char* base, int version, bool per_thread, void* found) {
  const BaseInfo name = find_base(base);
  if (name.knowledge == Knowledge::kHarmless || name.knowledge == Knowledge::kNotDriver) return {};
  if (name.knowledge != Knowledge::kHooked) return {Verdict::Kind::kTrap, {}};
  // A driver may serve both kinds of default stream with one function: then the kind asked for
  // decides.
  for (const bool same_kind : {true, false}) {
    for (const Entry entry : name.rows) {
      if ((info(entry).per_thread == per_thread) != same_kind) continue;
      const Known& it = known(entry);
      if (it.by_symbol.load(std::memory_order_relaxed) == found ||
          it.by_base.load(std::memory_order_relaxed) == found) {
        return {Verdict::Kind::kWrapper, entry};
      }
    }
  }
  // None of the pointers that we know: then name, version and kind say which variant it is, as CUDA
  // documents them.
  if (version > kNewestKnown) return {Verdict::Kind::kTrap, {}};
  bool has_kind = false;
  for (const Entry entry : name.rows) has_kind |= info(entry).per_thread == per_thread;
  const bool kind = has_kind && per_thread;
  Entry newest = Entry::kHooks_;
  for (const Entry entry : name.rows) {
    const EntryInfo& row = info(entry);
    if (row.version > version || row.per_thread != kind) continue;
    if (newest == Entry::kHooks_ || info(newest).version < row.version) newest = entry;
  }
  if (newest == Entry::kHooks_) return {Verdict::Kind::kTrap, {}};
  return {Verdict::Kind::kWrapper, newest};
}

}  // namespace offload
