// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace c10::detail {

[[noreturn, gnu::visibility("default")]] void torchCheckFail(const char* function, const char* file,
                                                             uint32_t line, const char* message);
[[noreturn, gnu::visibility("default")]] void torchCheckFail(const char* function, const char* file,
                                                             uint32_t line,
                                                             const std::string& message);

}  // namespace c10::detail
