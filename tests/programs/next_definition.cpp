// SPDX-License-Identifier: Apache-2.0
// RTLD_NEXT is about the caller: a library that is preloaded behind liboffload must find what
// follows itself. Preloaded: next_library.so.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

int main() {
  const auto* calls = static_cast<const int*>(dlsym(RTLD_DEFAULT, "getppid_calls"));
  const auto versioned = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "versioned_next"));
  if (calls == nullptr || versioned == nullptr) return 2;
  const pid_t parent = getppid();
  std::printf("parent is %s, %d call\n", parent > 0 ? "found" : "not found", *calls);
  Dl_info where;
  if (dladdr(versioned(), &where) == 0) return 3;
  std::printf("getuid is in %s\n", where.dli_fname);
  std::printf("an unknown name is %s\n",
              dlsym(RTLD_NEXT, "no_such_function") == nullptr ? "not there" : "there");
  return parent > 0 && *calls == 1 ? 0 : 1;
}
