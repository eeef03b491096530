// SPDX-License-Identifier: Apache-2.0
#pragma once
// What must hold for every input. A fuzzer stops, and keeps the input, where it does not.

#include <cstdio>
#include <cstdlib>

#define MUST(condition)                                                                       \
  ((condition)                                                                                \
       ? void()                                                                               \
       : (std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition), \
          std::abort()))

// libFuzzer finds it by name.
extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(
    const unsigned char* data, size_t size);
