// SPDX-License-Identifier: Apache-2.0
// In the same library as checks_library.cpp, whose functions it calls through the linker's table,
// as PyTorch's libraries do.

#include <cstdio>
#include <stdexcept>

#include "tests/programs/checks_library.h"

// Prints what the failed check says, in both its forms.
extern "C" [[gnu::visibility("default")]] void fail_checks(const char* message) {
  try {
    c10::detail::torchCheckFail("f", "f.cpp", 1, message);
  } catch (const std::runtime_error& error) {
    std::printf("text: %s\n", error.what());
  }
  try {
    c10::detail::torchCheckFail("f", "f.cpp", 1, std::string(message));
  } catch (const std::runtime_error& error) {
    std::printf("string: %s\n", error.what());
  }
}
