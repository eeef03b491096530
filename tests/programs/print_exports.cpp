// SPDX-License-Identifier: Apache-2.0
// The names that liboffload is to export, one a line, in order.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

int main() {
  std::vector<std::string> names = {"dlsym", "dlvsym", "putenv", "setenv", "unsetenv"};
  // c10::detail::torchCheckFail, with a text and with a string
  names.push_back("_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
  names.push_back(
      "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_"
      "traitsIcESaIcEEE");
#define HOOK(symbol, ...) names.push_back(#symbol);
#define TRAP(symbol, ...) names.push_back(#symbol);
#include "interpose/hooks.def"
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) std::printf("%s\n", name.c_str());
}
