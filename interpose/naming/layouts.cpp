// SPDX-License-Identifier: Apache-2.0
#include "interpose/naming/layouts.h"

#include <algorithm>
#include <cstring>

namespace offload {
namespace {

constexpr size_t kFirstSlots = 1024;
constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kMostParameters = 4096;  // 32,764 bytes of 8-byte parameters

// The words of a parameter that are aligned in the block of parameters.
WordRun run_of(size_t index, const ParameterInfo& parameter) {
  const size_t first = (kWord - parameter.offset % kWord) % kWord;
  if (parameter.size < first + kWord) return {};
  return {static_cast<uint16_t>(index), static_cast<uint16_t>(first),
          static_cast<uint16_t>((parameter.size - first) / kWord)};
}

bool same_runs(const Layout& a, const Layout& b) {
  return a.known == b.known && a.runs == b.runs &&
         std::memcmp(a.run, b.run, a.runs * sizeof(WordRun)) == 0;
}

}  // namespace

Layouts::Layouts(AskLayout ask) : ask_(ask), table_(new_table(kFirstSlots)) {}

Layouts::Table* Layouts::new_table(size_t slots) {
  const size_t bytes = sizeof(Table) + slots * sizeof(std::atomic<Layout*>);
  auto* table = static_cast<Table*>(own_allocate(bytes));
  std::memset(static_cast<void*>(table), 0, bytes);
  table->mask = slots - 1;
  return table;
}

Layout* Layouts::make(const void* function, uint64_t generation) const {
  OwnVector<WordRun> runs;
  bool known = true;
  for (size_t i = 0; i < kMostParameters; ++i) {
    ParameterInfo parameter;
    const LayoutAnswer answer = ask_(function, i, &parameter);
    if (answer == LayoutAnswer::kRefused) known = false;
    if (answer != LayoutAnswer::kParameter) break;
    if (const WordRun run = run_of(i, parameter); run.words != 0) runs.push_back(run);
  }
  auto* layout = static_cast<Layout*>(own_allocate(sizeof(Layout) + runs.size() * sizeof(WordRun)));
  new (layout) Layout{};
  layout->generation.store(generation, std::memory_order_relaxed);
  layout->function = function;
  layout->runs = static_cast<uint32_t>(runs.size());
  layout->known = known;
  std::copy(runs.begin(), runs.end(), layout->run);
  return layout;
}

const Layout* Layouts::learn(const void* function) {
  const uint64_t generation = generation_.load(std::memory_order_acquire);
  Layout* layout = make(function, generation);
  const std::lock_guard lock(mutex_);
  Table& table = *table_.load(std::memory_order_relaxed);
  for (size_t at = slot_of(function, table.mask);; at = (at + 1) & table.mask) {
    Layout* present = table.slots[at].load(std::memory_order_relaxed);
    if (present == nullptr) break;
    if (present->function != function) continue;
    // A handle that came back, or another thread was faster. Readers may hold any layout of it, so
    // all of them stay, and the one that fits is used again.
    for (Layout** link = &present; *link != nullptr; link = &(*link)->next_of_function) {
      Layout* old = *link;
      if (!same_runs(*old, *layout)) continue;
      *link = old->next_of_function;
      old->next_of_function = present;
      old->generation.store(generation, std::memory_order_release);
      table.slots[at].store(old, std::memory_order_release);
      own_free(layout);
      return old;
    }
    layout->next_of_function = present;
    table.slots[at].store(layout, std::memory_order_release);
    return layout;
  }
  if (count_.load(std::memory_order_relaxed) * 2 >= table.mask) grow();
  put(*table_.load(std::memory_order_relaxed), layout);
  count_.fetch_add(1, std::memory_order_relaxed);
  return layout;
}

void Layouts::put(Table& table, Layout* layout) {
  size_t at = slot_of(layout->function, table.mask);
  while (table.slots[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & table.mask;
  table.slots[at].store(layout, std::memory_order_release);
}

// The old table stays: readers may be in it.
void Layouts::grow() {
  Table& old = *table_.load(std::memory_order_relaxed);
  Table* table = new_table((old.mask + 1) * 2);
  for (size_t i = 0; i <= old.mask; ++i) {
    if (Layout* layout = old.slots[i].load(std::memory_order_relaxed)) put(*table, layout);
  }
  table_.store(table, std::memory_order_release);
}

}  // namespace offload
