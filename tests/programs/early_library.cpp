// SPDX-License-Identifier: Apache-2.0
// Looks symbols up from its constructor, which runs before liboffload's when it is preloaded behind
// it.

#include <dlfcn.h>

#include <cstdio>

extern "C" {
__attribute__((visibility("default"))) int early_findings = 0;
}

__attribute__((constructor)) static void look_early() {
  early_findings += dlsym(RTLD_NEXT, "printf") != nullptr;
  early_findings += dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == nullptr;
  early_findings += dlsym(RTLD_DEFAULT, "cudnnCreate") == nullptr;
}
