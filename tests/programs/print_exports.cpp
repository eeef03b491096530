// SPDX-License-Identifier: Apache-2.0
// The names that liboffload is to export, one a line, in order.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

int main() {
  std::vector<std::string> names = {"dlsym", "dlvsym", "putenv", "setenv", "unsetenv"};
#define HOOK(symbol, ...) names.push_back(#symbol);
#define TRAP(symbol, ...) names.push_back(#symbol);
#include "interpose/hooks.def"
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) std::printf("%s\n", name.c_str());
}
