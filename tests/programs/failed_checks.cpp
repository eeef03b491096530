// SPDX-License-Identifier: Apache-2.0
// failed_checks LIBRARY MESSAGE: opens the library as Python opens its modules, not for all to see,
// and lets checks fail in it.

#include <dlfcn.h>

#include <cstdio>

int main(int count, char** words) {
  if (count != 3) return 2;
  void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  void* function = library != nullptr ? dlsym(library, "fail_checks") : nullptr;
  if (function == nullptr) {
    std::printf("%s\n", dlerror());
    return 1;
  }
  reinterpret_cast<void (*)(const char*)>(function)(words[2]);
  return 0;
}
