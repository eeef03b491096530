// SPDX-License-Identifier: Apache-2.0
// Peer access does nothing for memory like ours, so it is granted by hand: on what is mapped and on
// what will be.

#include "interpose/driver/peers.h"
#include "interpose/hooks/define.h"
#include "interpose/life/sessions.h"
#include "interpose/rules.h"

namespace offload {
namespace {

void set_access(CUcontext peer, bool may_access) {
  CUdevice device = 0;
  if (real<Entry::cuCtxGetDevice>()(&device) != CUDA_SUCCESS) return;
  note_peer(peer, device, may_access);
  if (Session* active = session_in(peer); active != nullptr && obeys(Rule::kPeersReach))
    active->port.set_peer(device, may_access || is_peer(active->device.default_pool, device));
}

}  // namespace

// The current context asks for access to memory of the `peer` context.
template <Entry E>
CUresult ctx_enable_peer_access(CUcontext peer, unsigned flags) {
  const CUresult result = real<E>()(peer, flags);
  if (result == CUDA_SUCCESS) set_access(peer, true);
  return result;
}

template <Entry E>
CUresult ctx_disable_peer_access(CUcontext peer) {
  const CUresult result = real<E>()(peer);
  if (result == CUDA_SUCCESS) set_access(peer, false);
  return result;
}

// Ours stands for the default pool's: whoever may access that may access all of ours.
template <Entry E>
CUresult mem_pool_set_access(CUmemoryPool pool, const CUmemAccessDesc* given, size_t count) {
  const CUresult result = real<E>()(pool, given, count);
  if (result != CUDA_SUCCESS) return result;
  Session* active =
      find_session([pool](const Session& each) { return each.is_default_pool(pool); });
  for (size_t i = 0; i < count; ++i) {
    if (given[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) continue;
    const CUdevice device = given[i].location.id;
    const bool may_access = given[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    note_peer(pool, device, may_access);
    if (active != nullptr && obeys(Rule::kPoolAccessReaches))
      active->port.set_peer(device, may_access || is_peer(active->device.context, device));
  }
  return result;
}

}  // namespace offload

#define FAMILY_peers DEFINE_HOOK
#include "interpose/hooks/families.h"
