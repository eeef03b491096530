// SPDX-License-Identifier: Apache-2.0
// A stream ends: its handle may be another stream's tomorrow. A stream waits: it may capture from
// there on.

#include "interpose/graphs/captures.h"
#include "interpose/hooks/define.h"
#include "interpose/life/sessions.h"
#include "interpose/rules.h"

namespace offload {

template <Entry E>
CUresult stream_destroy(CUstream stream) {
  unsigned long long id = 0;
  CUcontext context = nullptr;
  if (session() != nullptr && obeys(Rule::kStreamEndIsTold) &&
      real<Entry::cuStreamGetId>()(stream, &id) == CUDA_SUCCESS &&
      real<Entry::cuStreamGetCtx>()(stream, &context) == CUDA_SUCCESS) {
    for_each_session([&](Session& each) { each.engine.stream_destroyed(context, id); });
  }
  forget_streams();
  const CUresult result = real<E>()(stream);
  if (captures_watched()) [[unlikely]]
    captured_stream_destroyed(stream);
  return result;
}

// What waits for an event of a capture joins it.
template <Entry E>
CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) {
  if (!captures_watched() || !obeys(Rule::kJoiningIsSeen)) [[likely]]
    return real<E>()(stream, event, flags);
  const MayCapture around(explicit_stream(stream, RealType<E>::per_thread));
  return real<E>()(stream, event, flags);
}

}  // namespace offload

#define FAMILY_streams DEFINE_HOOK
#include "interpose/hooks/families.h"
