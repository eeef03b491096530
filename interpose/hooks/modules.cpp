// SPDX-License-Identifier: Apache-2.0
// Code goes away: handles of functions may come back as others.

#include "interpose/hooks/define.h"
#include "interpose/life/sessions.h"

namespace offload {

template <Entry E>
CUresult module_unload(CUmodule module) {
  if (Session* active = session()) active->layouts.forget_all();
  return real<E>()(module);
}

template <Entry E>
CUresult library_unload(CUlibrary library) {
  if (Session* active = session()) active->layouts.forget_all();
  return real<E>()(library);
}

}  // namespace offload

#define FAMILY_modules DEFINE_HOOK
#include "interpose/hooks/families.h"
