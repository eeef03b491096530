// SPDX-License-Identifier: Apache-2.0
// Preloaded: early_library.so. Its look-ups happened before anything of ours ran.

#include <dlfcn.h>

#include <cstdio>

int main() {
  const auto* findings = static_cast<const int*>(dlsym(RTLD_DEFAULT, "early_findings"));
  std::printf("findings %d\n", findings == nullptr ? -1 : *findings);
}
