// SPDX-License-Identifier: Apache-2.0
#include "interpose/doors/entries.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace offload {
namespace {

constexpr EntryInfo kEntries[] = {
#define HOOK(symbol, base, version, suffix, family, effect, function) \
  {#symbol, #base, version, sizeof(#suffix) > 1, Effect::effect},
#include "interpose/hooks.def"
#define NEEDED(symbol, base, version, suffix) \
  {#symbol, #base, version, sizeof(#suffix) > 1, Effect::kAsks},
#include "interpose/hooks.def"
};
static_assert(std::size(kEntries) == kEntryCount);

constexpr TrapInfo kTraps[] = {
#define TRAP(symbol, base) {#symbol, #base},
#include "interpose/hooks.def"
};

template <size_t N>
consteval std::array<std::string_view, N> sorted(std::array<std::string_view, N> names) {
  std::sort(names.begin(), names.end());
  return names;
}

#define HARMLESS(base) +1
constexpr size_t kHarmlessCount = 0
#include "interpose/hooks.def"
    ;
constexpr auto kHarmless = sorted(std::array<std::string_view, kHarmlessCount>{
#define HARMLESS(base) #base,
#include "interpose/hooks.def"
});

template <size_t N, typename Key>
consteval std::array<uint16_t, N> order_by(Key key) {
  std::array<uint16_t, N> order{};
  for (size_t i = 0; i < N; ++i) order[i] = static_cast<uint16_t>(i);
  std::sort(order.begin(), order.end(),
            [key](uint16_t a, uint16_t b) { return key(a) != key(b) ? key(a) < key(b) : a < b; });
  return order;
}

constexpr auto kBySymbol = order_by<kHookCount>([](size_t i) { return kEntries[i].symbol; });
constexpr auto kTrapsBySymbol =
    order_by<std::size(kTraps)>([](size_t i) { return kTraps[i].symbol; });

// Entries grouped by base, so that a group is a span.
constexpr auto kByBase = [] {
  constexpr auto order = order_by<kHookCount>([](size_t i) { return kEntries[i].base; });
  std::array<Entry, kHookCount> entries{};
  for (size_t i = 0; i < kHookCount; ++i) entries[i] = static_cast<Entry>(order[i]);
  return entries;
}();

constexpr std::string_view base_name(Entry entry) {
  return kEntries[static_cast<size_t>(entry)].base;
}

bool is_harmless(std::string_view base) {
  return std::binary_search(kHarmless.begin(), kHarmless.end(), base);
}
bool is_trapped_base(std::string_view base) {
  return std::any_of(std::begin(kTraps), std::end(kTraps),
                     [base](const TrapInfo& trap) { return trap.base == base; });
}
bool spelled_like_an_entry(std::string_view name) {
  return name.size() > 2 && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

}  // namespace

const EntryInfo& info(Entry entry) {
  return kEntries[index(entry)];
}

std::span<const TrapInfo> trap_table() {
  return kTraps;
}

NameInfo find_symbol(std::string_view symbol) {
  if (!spelled_like_an_entry(symbol)) return {Knowledge::kNotDriver, 0};
  const auto hook = std::lower_bound(
      kBySymbol.begin(), kBySymbol.end(), symbol,
      [](uint16_t row, std::string_view name) { return kEntries[row].symbol < name; });
  if (hook != kBySymbol.end() && kEntries[*hook].symbol == symbol)
    return {Knowledge::kHooked, *hook};
  const auto trap = std::lower_bound(
      kTrapsBySymbol.begin(), kTrapsBySymbol.end(), symbol,
      [](uint16_t row, std::string_view name) { return kTraps[row].symbol < name; });
  if (trap != kTrapsBySymbol.end() && kTraps[*trap].symbol == symbol)
    return {Knowledge::kTrapped, *trap};
  return {is_harmless(base_of(symbol)) ? Knowledge::kHarmless : Knowledge::kUnknown, 0};
}

BaseInfo find_base(std::string_view base) {
  if (!spelled_like_an_entry(base)) return {};
  const auto first =
      std::lower_bound(kByBase.begin(), kByBase.end(), base,
                       [](Entry entry, std::string_view name) { return base_name(entry) < name; });
  auto last = first;
  while (last != kByBase.end() && base_name(*last) == base) ++last;
  if (first != last) return {Knowledge::kHooked, {&*first, static_cast<size_t>(last - first)}};
  if (is_trapped_base(base)) return {Knowledge::kTrapped, {}};
  return {is_harmless(base) ? Knowledge::kHarmless : Knowledge::kUnknown, {}};
}

std::string_view base_of(std::string_view symbol) {
  for (std::string_view suffix : {"_ptds", "_ptsz"}) {
    if (symbol.ends_with(suffix)) {
      symbol.remove_suffix(suffix.size());
      break;
    }
  }
  size_t digits = symbol.size();
  while (digits > 0 && symbol[digits - 1] >= '0' && symbol[digits - 1] <= '9') --digits;
  if (digits < symbol.size() && digits >= 2 && symbol.substr(digits - 2, 2) == "_v") {
    symbol = symbol.substr(0, digits - 2);
  }
  return symbol;
}

}  // namespace offload
