// SPDX-License-Identifier: Apache-2.0
#include "interpose/cli/arguments.h"

#include <algorithm>

#include "profiler/base/option_text.h"
#include "profiler/base/options_environment.h"

namespace offload::cli {
namespace {

std::string flag_of(OptionId id) {
  char flag[48];
  flag_name(option_info(id), std::span<char>(flag));
  return flag;
}

// "--gpu-limit" to "GPU_LIMIT".
std::string name_of_flag(const std::string& flag) {
  std::string name = flag.substr(2);
  for (char& c : name)
    c = c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

std::string unknown_flag(const std::string& flag) {
  OptionId near{};
  std::string text = "there is no option " + flag;
  if (nearest_option(name_of_flag(flag), near)) text += "; did you mean " + flag_of(near) + "?";
  return text;
}

std::string bad_value(OptionId id, const std::string& value) {
  const OptionInfo& info = option_info(id);
  char expected[128];
  info.expected(info.range, std::span<char>(expected));
  return flag_of(id) + " does not take \"" + value + "\"; expected " + expected;
}

}  // namespace

RunArguments read_run_arguments(const std::vector<std::string>& words) {
  RunArguments result;
  Options scratch{};
  std::size_t at = 0;
  for (; at < words.size() && result.error.empty(); ++at) {
    const std::string& text = words[at];
    if (text == "--") {
      ++at;
      break;
    }
    if (text == "-h" || text == "--help") {
      result.help = true;
      return result;
    }
    if (text == "--dry-run") {
      result.dry_run = true;
      continue;
    }
    if (!text.starts_with("-") || text == "-") break;
    std::size_t equals = text.find('=');
    std::string flag = text.substr(0, equals);
    OptionId id{};
    bool lower = std::none_of(flag.begin(), flag.end(),
                              [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); });
    if (!flag.starts_with("--") || !lower || !find_option(name_of_flag(flag), id)) {
      result.error = flag.starts_with("--") ? unknown_flag(flag) : "there is no option " + flag;
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = text.substr(equals + 1);
    } else if (option_info(id).is_boolean) {
      // A command is hardly called 0 or 1.
      const bool given = at + 1 < words.size() && (words[at + 1] == "0" || words[at + 1] == "1");
      value = given ? words[++at] : "1";
    } else if (at + 1 < words.size()) {
      value = words[++at];
    } else {
      result.error = flag + " needs a value";
      continue;
    }
    if (set_option(scratch, id, value, OptionSource::kEnvironment)) {
      result.options.emplace_back(id, value);
    } else {
      result.error = bad_value(id, value);
    }
  }
  result.command.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(at, words.size())),
                        words.end());
  if (result.error.empty() && result.command.empty()) result.error = "there is no command to run";
  return result;
}

}  // namespace offload::cli
