// SPDX-License-Identifier: Apache-2.0
// offload: runs a program with liboffload, and tells what is needed for that.

#include <cstdio>

#include "interpose/cli/commands.h"

namespace offload::cli {
namespace {

constexpr const char* kHelp =
    "usage: offload COMMAND [argument ...]\n"
    "\n"
    "  run      run a program with liboffload\n"
    "  doctor   check what liboffload needs on this machine\n"
    "  options  list the options\n"
    "\n"
    "\"offload COMMAND --help\" tells more; \"offload --version\" tells the version.";

struct Command {
  const char* name;
  int (*run)(const Arguments&);
};
constexpr Command kCommands[] = {
    {"run", run_command}, {"doctor", doctor_command}, {"options", options_command}};

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) {
    std::fprintf(stderr, "%s\n", kHelp);
    return kExitUsage;
  }
  const std::string& first = arguments[0];
  if (first == "--help" || first == "-h" || first == "help") {
    std::puts(kHelp);
    return kExitDone;
  }
  if (first == "--version") {
    std::puts("offload " OFFLOAD_VERSION);
    return kExitDone;
  }
  for (const Command& command : kCommands) {
    if (first == command.name)
      return command.run(Arguments(arguments.begin() + 1, arguments.end()));
  }
  return usage_error("there is no command " + first);
}

}  // namespace

}  // namespace offload::cli

int main(int count, char** words) {
  const int status = offload::cli::dispatch(offload::cli::Arguments(words + 1, words + count));
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fputs("offload: what was to be printed could not be written\n", stderr);
  return status == offload::cli::kExitDone ? offload::cli::kExitProblem : status;
}
