// SPDX-License-Identifier: Apache-2.0
// A program that looks for a CUDA driver in the usual ways, on a machine without one: it must not
// take liboffload for it.

#include <dlfcn.h>

#include <cstdio>
#include <initializer_list>

int main() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  std::printf("dlopen: %s\n", driver == nullptr ? "none" : "there");
  for (const char* name : {"cuInit", "cuMemAlloc_v2", "cuGraphLaunch", "cuGetProcAddress"}) {
    dlerror();
    void* by_default = dlsym(RTLD_DEFAULT, name);
    const char* error = dlerror();
    std::printf("%s: %s, %s\n", name, by_default == nullptr ? "none" : "there",
                error == nullptr ? "no error" : "error");
    void* in_program = dlsym(dlopen(nullptr, RTLD_NOW), name);
    std::printf("%s in the program: %s\n", name, in_program == nullptr ? "none" : "there");
  }
  std::printf("printf: %s\n", dlsym(RTLD_DEFAULT, "printf") != nullptr ? "there" : "none");
  std::printf("curl: %s\n", dlsym(RTLD_DEFAULT, "curl_easy_init") != nullptr ? "there" : "none");
  return 7;
}
