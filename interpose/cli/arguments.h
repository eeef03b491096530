// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command line of `offload run`: options by the table's names, then the program and its
// arguments.

#include <string>
#include <utility>
#include <vector>

#include "profiler/base/options.h"

namespace offload::cli {

struct RunArguments {
  std::vector<std::pair<OptionId, std::string>> options;  // as given, each value good
  std::vector<std::string> command;
  bool dry_run = false;
  bool help = false;
  std::string error;  // not empty: what is wrong with the line
};

// Accepts --name value, --name=value, and --name alone where the value is a boolean (which takes a
// value only behind an equals sign, so that it cannot eat the command). Options end at "--" or at
// the first word that is none.
RunArguments read_run_arguments(const std::vector<std::string>& words);

}  // namespace offload::cli
