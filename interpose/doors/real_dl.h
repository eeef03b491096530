// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C library's own dlsym and dlvsym, which ours stand before. Found by reading the symbol tables
// of the loaded objects, because any reference by name from here would bind to ourselves. Usable at
// any time, before our constructor and in forked children included; the first call finds them.

namespace offload {

void* real_dlsym(void* handle, const char* name);
void* real_dlvsym(void* handle, const char* name, const char* version);

// The function of this name that the program would have got without us: the next one behind us, or
// else the first one; never another liboffload's. Null: there is none. May clear dlerror.
void* real_function(const char* name);

// Whether this address lies in a liboffload: this one, or another one that was preloaded too. Then
// the one that comes first does the work, and the other is never reached.
bool in_any_liboffload(const void* address);

}  // namespace offload
