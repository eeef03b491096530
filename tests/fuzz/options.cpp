// SPDX-License-Identifier: Apache-2.0
// Options: any environment, and any words behind `offload run`. The input is a list of words, each
// ended by a zero byte.

#include <cstring>
#include <string>
#include <vector>

#include "interpose/cli/arguments.h"
#include "profiler/base/options_environment.h"
#include "tests/fuzz/property.h"

using namespace offload;

namespace {

std::vector<std::string> words_of(const unsigned char* data, size_t size) {
  std::vector<std::string> words;
  const char* at = reinterpret_cast<const char*>(data);
  const char* end = at + size;
  while (at < end) {
    const size_t length = strnlen(at, static_cast<size_t>(end - at));
    words.emplace_back(at, length);
    at += length + 1;
  }
  return words;
}

std::string printed(const Options& options, const OptionInfo& info) {
  char text[512] = {};
  info.print(options, std::span<char>(text));
  return text;
}

// A value that was taken reads back as itself.
void reads_back(const Options& options, OptionId id) {
  const OptionInfo& info = option_info(id);
  const std::string text = printed(options, info);
  if (info.is_file) return;  // printed for people, not whole
  if (text == "0%") return;  // or less than can be told from it
  Options again{};
  set_defaults(again);
  MUST(set_option(again, id, text, OptionSource::kEnvironment));
  MUST(printed(again, info) == text);
}

void environment(const std::vector<std::string>& words) {
  std::vector<const char*> entries;
  for (const std::string& word : words) entries.push_back(word.c_str());
  entries.push_back(nullptr);
  Options options{};
  OptionProblems problems{};
  const bool usable = read_options(entries.data(), options, problems);
  MUST(usable == !(options.strict && problems.bad_values > 0));
  MUST(problems.bad_values <= problems.count);
  for (size_t i = 0; i < problems.kept(); ++i) {
    const std::string message = problems.messages[i];
    MUST(!message.empty() && message.find('\n') == std::string::npos);
  }
  for (size_t i = 0; i < kOptionCount; ++i) {
    const auto id = static_cast<OptionId>(i);
    if (options.source_of(id) == OptionSource::kEnvironment) reads_back(options, id);
  }
}

void command_line(const std::vector<std::string>& words) {
  const cli::RunArguments arguments = cli::read_run_arguments(words);
  if (!arguments.error.empty() || arguments.help) return;
  MUST(!arguments.command.empty());
  MUST(arguments.command.size() <= words.size());
  MUST(arguments.command.back() == words.back());
  for (const auto& [id, value] : arguments.options) {
    Options scratch{};
    MUST(set_option(scratch, id, value, OptionSource::kEnvironment));
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const std::vector<std::string> words = words_of(data, size);
  environment(words);
  command_line(words);
  return 0;
}
