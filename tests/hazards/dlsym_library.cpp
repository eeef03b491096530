// SPDX-License-Identifier: Apache-2.0
// Another library that interposes dlsym, as profilers and container limiters do: it passes on what
// the next one says, and tells whether it was called if OTHER_DLSYM is set.

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

using Dlsym = void* (*)(void*, const char*);
std::atomic<int> calls{0};

Dlsym next_dlsym() {
#ifdef __x86_64__
  static const auto next = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
#else
  static const auto next = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17"));
#endif
  return next;
}

__attribute__((destructor)) void tell() {
  if (std::getenv("OTHER_DLSYM") == nullptr) return;
  char line[80];
  const int length =
      std::snprintf(line, sizeof line, "other dlsym: %s\n", calls > 0 ? "called" : "never called");
  if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) < 0) _exit(70);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle,
                                                              const char* name) noexcept {
  ++calls;
  return next_dlsym()(handle, name);
}
