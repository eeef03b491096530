// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/option_text.h"

#include <cstdio>

namespace offload {
namespace {

constexpr std::size_t kLineWidth = 92;
constexpr std::string_view kIndent = "      ";

// What may stand behind the equals sign: "offload|observe", "SIZE or PERCENT", ...
void write_values(const OptionInfo& info, std::string_view separator, Sink out) {
  if (info.words == nullptr) return out(info.value_name);
  bool first = true;
  for (std::string_view choice : info.words()) {
    if (!first) out(separator);
    out(choice);
    first = false;
  }
}

void write_range(const OptionInfo& info, Sink out) {
  std::size_t dots = info.range.find("..");
  if (dots == std::string_view::npos) return;
  out(", ");
  out(info.range.substr(0, dots));
  out(" to ");
  out(info.range.substr(dots + 2));
}

void write_wrapped(std::string_view text, Sink out) {
  std::size_t column = 0;
  while (!text.empty()) {
    std::string_view word_text = text.substr(0, text.find(' '));
    text.remove_prefix(word_text.size() < text.size() ? word_text.size() + 1 : text.size());
    if (column == 0 || column + 1 + word_text.size() > kLineWidth) {
      if (column != 0) out("\n");
      out(kIndent);
      column = kIndent.size();
    } else {
      out(" ");
      ++column;
    }
    out(word_text);
    column += word_text.size();
  }
  out("\n");
}

}  // namespace

void flag_name(const OptionInfo& info, std::span<char> out) {
  std::snprintf(out.data(), out.size(), "--%.*s", static_cast<int>(info.name.size()),
                info.name.data());
  for (char* c = out.data(); *c != '\0'; ++c) {
    if (*c == '_') *c = '-';
    if (*c >= 'A' && *c <= 'Z') *c = static_cast<char>(*c - 'A' + 'a');
  }
}

void write_option_help(Sink out, bool with_test_options) {
  for (const OptionInfo& info : option_table()) {
    if (info.scope == OptionScope::kTest && !with_test_options) continue;
    char flag[48];
    flag_name(info, std::span<char>(flag));
    out("  ");
    out(flag);
    out("  ");
    out(kOptionPrefix);
    out(info.name);
    out("=");
    write_values(info, "|", out);
    out("\n");
    write_wrapped(info.help, out);
    out(kIndent);
    out("Default: ");
    out(info.default_text.empty() ? "none" : info.default_text);
    write_range(info, out);
    out("\n");
  }
}

void write_option_markdown(Sink out) {
  out("| variable | values | default | what it does |\n|---|---|---|---|\n");
  for (const OptionInfo& info : option_table()) {
    if (info.scope == OptionScope::kTest) continue;
    out("| `");
    out(kOptionPrefix);
    out(info.name);
    out("` | ");
    write_values(info, ", ", out);
    write_range(info, out);
    out(info.default_text.empty() ? " | " : " | `");
    out(info.default_text);
    out(info.default_text.empty() ? "| " : "` | ");
    out(info.help);
    out(" |\n");
  }
}

void write_option_values(const Options& options, Sink out) {
  for (OptionSource source : {OptionSource::kEnvironment, OptionSource::kDefault}) {
    bool any = false;
    for (std::size_t i = 0; i < kOptionCount; ++i) {
      const OptionInfo& info = option_table()[i];
      bool set = options.source[i] == OptionSource::kEnvironment;
      if (set != (source == OptionSource::kEnvironment)) continue;
      if (!set && info.scope == OptionScope::kTest) continue;
      char value[Text::kCapacity];
      info.print(options, std::span<char>(value));
      if (!set && value[0] == '\0') continue;
      if (any) out(" ");
      out(info.name);
      out("=");
      out(value);
      any = true;
    }
    if (any) out(source == OptionSource::kEnvironment ? " (environment); " : " (default)");
  }
}

}  // namespace offload
