// SPDX-License-Identifier: Apache-2.0
// Whose are malloc, free, operator new and the functions that programs interpose? Not liboffload's.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

int main() {
  for (const char* name :
       {"malloc", "free", "calloc", "realloc", "strdup", "aligned_alloc", "posix_memalign", "_Znwm",
        "_ZdlPv", "_ZdlPvm", "__cxa_throw", "_Unwind_Resume", "dlopen", "mi_malloc"}) {
    void* function = dlsym(RTLD_DEFAULT, name);
    Dl_info where{};
    if (function != nullptr) dladdr(function, &where);
    std::printf("%s: %s\n", name, where.dli_fname == nullptr ? "nobody" : where.dli_fname);
  }
  // Memory crosses between the C and the C++ library as it always did.
  char* text = strdup("mixed");
  char* copy = new char[6];
  std::memcpy(copy, text, 6);
  std::printf("%s\n", copy);
  std::free(text);
  delete[] copy;
}
