// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options as typed values, and the table that describes them, both from options.def. No
// allocation, no locks: the library fills one Options in its constructor and only reads it
// afterwards.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "profiler/base/option_kinds.h"

namespace offload {

// The enumerations of the choices: Mode, PolicyName, Evicted, Victims, PytorchAlloc, LogLevel,
// Report.
#define CHOICE(enumerator, word) enumerator,
#define CHOICES(Type, ...) enum class Type : std::uint8_t { __VA_ARGS__ };
#include "profiler/base/options.def"
#undef CHOICE

#define CHOICE(enumerator, word) word,
#define CHOICES(Type, ...)                                            \
  inline constexpr std::string_view kWordsOf##Type[] = {__VA_ARGS__}; \
  template <>                                                         \
  inline std::span<const std::string_view> words_of<Type>() {         \
    return kWordsOf##Type;                                            \
  }
#include "profiler/base/options.def"
#undef CHOICE

enum class OptionScope : std::uint8_t { kUser, kTest };
enum class OptionSource : std::uint8_t {
  kDefault,
  kEnvironment,
  kRejected,  // the environment's value was bad: the default holds
};

// One enumerator per row, named as the field, in the table's order.
enum class OptionId : std::uint8_t {
#define OPTION(Kind, field, ...) field,
#include "profiler/base/options.def"
  count_
};
inline constexpr std::size_t kOptionCount = static_cast<std::size_t>(OptionId::count_);

struct Options {
#define OPTION(Kind, field, ...) Kind::Value field;
#include "profiler/base/options.def"

  OptionSource source[kOptionCount];

  OptionSource source_of(OptionId id) const {
    return source[static_cast<std::size_t>(id)];
  }
};

struct OptionInfo {
  std::string_view name;  // without kOptionPrefix
  std::string_view default_text;
  std::string_view range;
  std::string_view help;
  OptionScope scope;
  std::string_view value_name;
  bool is_boolean;
  bool is_file;
  std::span<const std::string_view> (*words)();  // null unless it is a choice
  bool (*parse)(std::string_view text, std::string_view range, Options& options);
  void (*print)(const Options& options, std::span<char> out);
  void (*expected)(std::string_view range, std::span<char> out);
};

inline constexpr std::string_view kOptionPrefix = "OFFLOAD_";

std::span<const OptionInfo> option_table();
inline const OptionInfo& option_info(OptionId id) {
  return option_table()[static_cast<std::size_t>(id)];
}

// Every field at its default.
void set_defaults(Options& options);
// False, and nothing changed, if the text is not a value of that option.
bool set_option(Options& options, OptionId id, std::string_view text, OptionSource source);
// True if `name` (without the prefix, exact) is an option.
bool find_option(std::string_view name, OptionId& id);
// The option whose name takes the fewest edits to reach, if they are few enough for a slip of the
// keyboard.
bool nearest_option(std::string_view name, OptionId& id);

}  // namespace offload
