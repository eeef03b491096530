// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "interpose/cli/commands.h"
#include "profiler/base/option_text.h"

namespace offload::cli {
namespace {

const Sink kStdout = {
    [](void*, std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); },
    nullptr};

}  // namespace

int options_command(const Arguments& arguments) {
  bool markdown = false;
  bool all = false;
  for (const std::string& argument : arguments) {
    if (argument == "--markdown") {
      markdown = true;
    } else if (argument == "--all") {
      all = true;
    } else if (argument == "--help" || argument == "-h") {
      std::puts(
          "usage: offload options [--markdown | --all]\n"
          "Lists the options; --markdown as a table, --all with those that only tests use.");
      return kExitDone;
    } else {
      return usage_error("offload options does not take " + argument);
    }
  }
  if (markdown && all) return usage_error("--markdown and --all exclude each other");
  markdown ? write_option_markdown(kStdout) : write_option_help(kStdout, all);
  return kExitDone;
}

}  // namespace offload::cli
