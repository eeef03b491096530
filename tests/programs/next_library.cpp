// SPDX-License-Identifier: Apache-2.0
// Wraps functions of the C library as other interposers do, twice in a row from one thread.

#include <dlfcn.h>
#include <unistd.h>

extern "C" {
__attribute__((visibility("default"))) int getppid_calls = 0;

__attribute__((visibility("default"))) pid_t getppid() {
  using Function = pid_t (*)();
  const auto first = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getppid"));
  const auto second = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getppid"));
  ++getppid_calls;
  return first == second && first != &getppid && first != nullptr ? first() : -1;
}

// The same with a version.
__attribute__((visibility("default"))) void* versioned_next() {
#ifdef __x86_64__
  return dlvsym(RTLD_NEXT, "getuid", "GLIBC_2.2.5");
#else
  return dlvsym(RTLD_NEXT, "getuid", "GLIBC_2.17");
#endif
}
}
