// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds libraries that reach the driver past our doors: their own slot for dlsym, or for an entry
// of the driver, does not hold ours. That is so for libraries opened with RTLD_DEEPBIND. Reads the
// loader's tables; a few microseconds when no library was loaded since the last look.

#include <cstddef>

namespace offload {

// The file of a library that bypasses us, written into `file`. False: none found.
bool find_bypass(char* file, size_t bytes);

}  // namespace offload
