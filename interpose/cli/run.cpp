// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "interpose/cli/arguments.h"
#include "interpose/cli/commands.h"
#include "interpose/cli/library.h"
#include "profiler/base/option_text.h"
#include "profiler/base/options_environment.h"

namespace offload::cli {
namespace {

constexpr const char* kHelp =
    "usage: offload run [--option value ...] [--dry-run] [--] command [argument ...]\n"
    "\n"
    "Runs the command with liboffload.so in front of LD_PRELOAD. The exit status and signals are "
    "the\n"
    "command's own; 2 is a wrong option here, 126 a command that cannot be run, 127 one that is "
    "not found.\n"
    "--dry-run prints what would be set, and runs nothing.\n"
    "\n"
    "Each option sets the variable beside it:\n";

std::string quoted(const std::string& text) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/:%@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

void print_plan(const RunArguments& arguments) {
  std::printf("LD_PRELOAD=%s\n", quoted(std::getenv("LD_PRELOAD")).c_str());
  for (const OptionInfo& info : option_table()) {
    std::string variable = std::string(kOptionPrefix) + std::string(info.name);
    const char* value = std::getenv(variable.c_str());
    if (value != nullptr) std::printf("%s=%s\n", variable.c_str(), quoted(value).c_str());
  }
  const char* separator = "";
  for (const std::string& word : arguments.command) {
    std::printf("%s%s", separator, quoted(word).c_str());
    separator = " ";
  }
  std::printf("\n");
}

// A configuration that the library would refuse is refused here, before the program has done
// anything.
bool environment_is_good() {
  Options options{};
  OptionProblems problems{};
  if (read_options(environ, options, problems)) return true;
  for (std::size_t i = 0; i < problems.kept(); ++i) {
    std::fprintf(stderr, "offload: %s\n", problems.messages[i]);
  }
  return false;
}

int execute(const RunArguments& arguments) {
  std::vector<char*> words;
  for (const std::string& word : arguments.command)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  int cause = errno;
  bool missing = cause == ENOENT || cause == ENOTDIR;
  std::fprintf(stderr, "offload: %s cannot be run: %s\n", words[0], std::strerror(cause));
  return missing ? kExitNotFound : kExitNotRunnable;
}

}  // namespace

int run_command(const Arguments& words) {
  RunArguments arguments = read_run_arguments(words);
  if (arguments.help) {
    std::fputs(kHelp, stdout);
    write_option_help(
        {[](void*, std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); },
         nullptr},
        false);
    return kExitDone;
  }
  if (!arguments.error.empty()) return usage_error(arguments.error);
  std::string library = find_library();
  if (library.empty()) {
    std::fprintf(
        stderr,
        "offload: %s is neither beside this program nor in ../lib; build or install it again\n",
        kLibraryName);
    return kExitProblem;
  }
  if (!is_preloadable_path(library)) {
    std::fprintf(stderr,
                 "offload: LD_PRELOAD cannot carry %s, because of a space or colon in it; move it "
                 "elsewhere\n",
                 library.c_str());
    return kExitProblem;
  }
  for (const auto& [id, value] : arguments.options) {
    std::string variable = std::string(kOptionPrefix) + std::string(option_info(id).name);
    setenv(variable.c_str(), value.c_str(), 1);
  }
  if (!environment_is_good()) return usage_error("an option's value is bad and OFFLOAD_STRICT=1");
  const char* before = std::getenv("LD_PRELOAD");
  setenv("LD_PRELOAD", prepend_preload(library, before == nullptr ? "" : before).c_str(), 1);
  if (arguments.dry_run) {
    print_plan(arguments);
    return kExitDone;
  }
  return execute(arguments);
}

}  // namespace offload::cli
