// SPDX-License-Identifier: Apache-2.0
// A stream ends: its handle may be another stream's tomorrow.

#include "interpose/hooks/define.h"
#include "interpose/life/session.h"

namespace offload {

template <Entry E>
CUresult stream_destroy(CUstream stream) {
  Session* active = session();
  unsigned long long id = 0;
  if (active != nullptr && real<Entry::cuStreamGetId>()(stream, &id) == CUDA_SUCCESS) {
    active->engine.stream_destroyed(id);
  }
  forget_streams();
  return real<E>()(stream);
}

}  // namespace offload

#define FAMILY_streams DEFINE_HOOK
#include "interpose/hooks/families.h"
