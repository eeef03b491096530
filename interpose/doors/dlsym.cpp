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

// Whether the caller's own library would find the name in itself or in what it was linked with.
bool in_scope_of(const void* caller, const char* name) {
  Dl_info where;
  if (dladdr(caller, &where) == 0 || where.dli_fname == nullptr) return false;
  void* library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    dlerror();
    return false;
  }
  const void* found = real_dlsym(library, name);
  dlclose(library);
  return found != nullptr && in_libcuda(found);
}

// Another liboffload stands behind us. It finds for itself whether there is anything behind it, and
// leaves its dlerror if there is not.
bool found_behind_the_other(const char* name) {
  const auto other =
      reinterpret_cast<void* (*)(void*, const char*)>(real_dlsym(RTLD_NEXT, "dlsym"));
  return other != nullptr && in_any_liboffload(reinterpret_cast<const void*>(other)) &&
         other(RTLD_DEFAULT, name) != nullptr;
}

// Our own exported name came first in a search. The program must not find it where without us it
// would have found nothing.
void* answer_of_our_export(const char* name, const void* caller) {
  void* next = real_dlsym(RTLD_NEXT, name);
  if (next != nullptr && in_any_liboffload(next))
    return in_scope_of(caller, name) || found_behind_the_other(name) ? kPassOn : kNone;
  if (next != nullptr) return in_libcuda(next) ? kPassOn : next;
  if (in_scope_of(caller, name)) return kPassOn;
  real_dlsym(RTLD_NEXT, name);  // leaves its dlerror
  return kNone;
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
  if (handle == RTLD_DEFAULT && exported) return answer_of_our_export(name, caller);
  void* found = real_dlsym(handle, name);
  if (found == nullptr) return kPassOn;  // the program gets its own dlerror
  if (exported && in_liboffload(found)) return answer_of_our_export(name, caller);
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
