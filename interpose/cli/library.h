// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where liboffload.so is, and how it gets into a program.

#include <string>

namespace offload::cli {

inline constexpr const char* kLibraryName = "liboffload.so";

// The library beside this program, or in ../lib (or ../lib64) from it; empty if there is none.
std::string find_library();

// True if the loader can take this path from LD_PRELOAD, where spaces and colons separate names.
bool is_preloadable_path(const std::string& path);

// `before` (the variable's value so far, possibly empty) with the library in front; once, if it was
// there already.
std::string prepend_preload(const std::string& library, const std::string& before);

}  // namespace offload::cli
