// SPDX-License-Identifier: Apache-2.0
// Like PyTorch's libc10: what its failed checks call, which throws.

#include "tests/programs/checks_library.h"

#include <stdexcept>

namespace c10::detail {

void torchCheckFail(const char*, const char*, uint32_t, const char* message) {
  throw std::runtime_error(message);
}

void torchCheckFail(const char*, const char*, uint32_t, const std::string& message) {
  throw std::runtime_error(message);
}

}  // namespace c10::detail
