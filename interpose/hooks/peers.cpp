// SPDX-License-Identifier: Apache-2.0
// Peer access does nothing for memory like ours, so it is granted by hand: on what is mapped and on
// what will be.

#include "interpose/driver/peers.h"
#include "interpose/hooks/define.h"
#include "interpose/life/session.h"

namespace offload {
namespace {

void set_access(CUcontext peer, bool may_access) {
  CUdevice device = 0;
  if (real<Entry::cuCtxGetDevice>()(&device) != CUDA_SUCCESS) return;
  note_peer(peer, device, may_access);
  Session* active = session();
  if (active != nullptr && active->device.context == peer)
    active->port.set_peer(device, may_access);
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

}  // namespace offload

#define FAMILY_peers DEFINE_HOOK
#include "interpose/hooks/families.h"
