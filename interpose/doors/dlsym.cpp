// SPDX-License-Identifier: Apache-2.0
// What stands behind dlsym and dlvsym (dlsym.S): the driver's entries are replaced, everything else
// is passed on.

#include <dlfcn.h>

#include "interpose/doors/libcuda.h"
#include "interpose/doors/real_dl.h"
#include "interpose/doors/substitute.h"

extern "C" {
// Null: not ours, pass the call on. kNone: there is none, answer null. Else: the answer.
__attribute__((visibility("hidden"))) void* offload_look_up(void* handle, const char* name,
                                                            const void* caller);
__attribute__((visibility("hidden"))) void* offload_look_up_version(void* handle, const char* name,
                                                                    const char* version,
                                                                    const void* caller);
}

namespace offload {
namespace {

void* const kPassOn = nullptr;
void* const kNone = reinterpret_cast<void*>(1);

// Our own exported name came first. Without a driver the program must not take us for one.
void* answer_of_our_export(const char* name) {
  if (libcuda_is_loaded()) return kPassOn;
  void* other = real_dlsym(RTLD_NEXT, name);
  return other != nullptr ? other : kNone;
}

}  // namespace
}  // namespace offload

void* offload_look_up(void* handle, const char* name, const void* caller) {
  using namespace offload;
  const NameInfo known = find_symbol(name);
  if (known.knowledge == Knowledge::kNotDriver || known.knowledge == Knowledge::kHarmless)
    return kPassOn;
  const bool exported =
      known.knowledge == Knowledge::kHooked || known.knowledge == Knowledge::kTrapped;
  if (handle == RTLD_DEFAULT && exported) return answer_of_our_export(name);
  void* found = real_dlsym(handle, name);
  if (found == nullptr) return kPassOn;  // the program gets its own dlerror
  if (exported && in_liboffload(found)) return answer_of_our_export(name);
  if (!in_libcuda(found) || in_libcuda(caller)) return kPassOn;
  return substitute_symbol(name, known, found);
}

void* offload_look_up_version(void* handle, const char* name, const char* version,
                              const void* caller) {
  using namespace offload;
  const NameInfo known = find_symbol(name);
  if (known.knowledge == Knowledge::kNotDriver || known.knowledge == Knowledge::kHarmless)
    return kPassOn;
  void* found = real_dlvsym(handle, name, version);
  if (found == nullptr || !in_libcuda(found) || in_libcuda(caller)) return kPassOn;
  return substitute_symbol(name, known, found);
}
