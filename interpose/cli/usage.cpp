// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "interpose/cli/commands.h"

namespace offload::cli {

int usage_error(const std::string& text) {
  std::fprintf(stderr,
               "offload: %s\n\"offload --help\" and \"offload run --help\" tell how it is used.\n",
               text.c_str());
  return kExitUsage;
}

}  // namespace offload::cli
