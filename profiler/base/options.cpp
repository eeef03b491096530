// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/options.h"

#include <algorithm>
#include <type_traits>

namespace offload {
namespace {

template <class Kind>
struct WordsOfKind {
  static constexpr std::span<const std::string_view> (*value)() = nullptr;
};
template <class Enumeration>
struct WordsOfKind<Choice<Enumeration>> {
  static constexpr std::span<const std::string_view> (*value)() = &words_of<Enumeration>;
};

constexpr OptionInfo kTable[] = {
#define OPTION(Kind, field, option_name, default_value, option_range, option_scope, sentence)   \
  OptionInfo{.name = option_name,                                                               \
             .default_text = default_value,                                                     \
             .range = option_range,                                                             \
             .help = sentence,                                                                  \
             .scope = OptionScope::option_scope,                                                \
             .value_name = Kind::kValueName,                                                    \
             .is_boolean = std::is_same_v<Kind, Boolean>,                                       \
             .is_file = std::is_same_v<Kind, Pattern>,                                          \
             .words = WordsOfKind<Kind>::value,                                                 \
             .parse = [](std::string_view text, std::string_view range,                         \
                         Options& options) { return Kind::parse(text, range, options.field); }, \
             .print = [](const Options& options,                                                \
                         std::span<char> out) { Kind::print(options.field, out); },             \
             .expected = &Kind::expected},
#include "profiler/base/options.def"
};
static_assert(std::size(kTable) == kOptionCount);

constexpr std::size_t kLongestName = 32;

// Levenshtein's distance with swapped neighbours counted as one edit.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::size_t rows[3][kLongestName + 1];
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t* row = rows[i % 3];
    const std::size_t* above = rows[(i - 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

// True if `word` is one of the parts of `name` between underscores.
bool has_word(std::string_view name, std::string_view word) {
  std::size_t at = name.find(word);
  if (at == std::string_view::npos) return false;
  std::size_t end = at + word.size();
  return (at == 0 || name[at - 1] == '_') && (end == name.size() || name[end] == '_');
}

}  // namespace

std::span<const OptionInfo> option_table() {
  return kTable;
}

bool set_option(Options& options, OptionId id, std::string_view text, OptionSource source) {
  const OptionInfo& info = option_info(id);
  if (!info.parse(text, info.range, options)) return false;
  options.source[static_cast<std::size_t>(id)] = source;
  return true;
}

void set_defaults(Options& options) {
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    set_option(options, static_cast<OptionId>(i), kTable[i].default_text, OptionSource::kDefault);
  }
}

bool find_option(std::string_view name, OptionId& id) {
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    if (kTable[i].name == name) return id = static_cast<OptionId>(i), true;
  }
  return false;
}

bool nearest_option(std::string_view name, OptionId& id) {
  if (name.empty() || name.size() > kLongestName) return false;
  std::size_t best = kLongestName;
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    std::size_t distance = edit_distance(name, kTable[i].name);
    if (distance < best) {
      best = distance;
      id = static_cast<OptionId>(i);
    }
  }
  if (best <= std::max<std::size_t>(2, name.size() / 3) && best < name.size()) return true;
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    if (has_word(kTable[i].name, name)) return id = static_cast<OptionId>(i), true;
  }
  return false;
}

}  // namespace offload
