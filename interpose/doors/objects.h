// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which loaded object an address lies in. dladdr would take the loader's lock, which a thread holds
// for as long as a library's constructors run: whoever asks from a launch would wait for them, and
// for ever if they wait for him. And inside dl_iterate_phdr, which holds another lock, it can
// deadlock with any dlopen. Here only that other lock is taken, which is never held for long; so
// nothing of this may be called from a callback of dl_iterate_phdr, but for the tests of ranges.
// Thread-safe.

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace offload {

// Whether one of the object's segments holds the address.
bool holds_address(const dl_phdr_info& object, uintptr_t address);

// A path's last part.
std::string_view file_part(std::string_view path);

// The file that `address` was loaded from; empty for the program itself. False: it lies in none.
bool file_of(const void* address, char* file, size_t bytes);

}  // namespace offload
