// SPDX-License-Identifier: Apache-2.0
#include "interpose/driver/peers.h"
#include "interpose/engine/edges.h"

#include <algorithm>
#include <iterator>
#include <mutex>

namespace offload {
namespace {

constexpr int kMost = 256;
struct Peer {
  const void* memory_of = nullptr;
  CUdevice device = 0;
};
constinit PlainMutex mutex;
constinit Peer peers[kMost]{};

}  // namespace

void note_peer(const void* memory_of, CUdevice device, bool may_access) {
  const std::lock_guard lock(mutex);
  for (Peer& peer : peers) {
    if (peer.memory_of == memory_of && peer.device == device) peer = {};
  }
  if (!may_access) return;
  for (Peer& peer : peers) {
    if (peer.memory_of != nullptr) continue;
    peer = {memory_of, device};
    return;
  }
}

bool is_peer(const void* memory_of, CUdevice device) {
  if (memory_of == nullptr) return false;  // as empty entries have it
  const std::lock_guard lock(mutex);
  return std::any_of(std::begin(peers), std::end(peers), [&](const Peer& peer) {
    return peer.memory_of == memory_of && peer.device == device;
  });
}

void for_each_peer(const void* memory_of, void (*tell)(CUdevice, void*), void* to) {
  if (memory_of == nullptr) return;
  Peer copy[kMost];
  {
    const std::lock_guard lock(mutex);
    for (int i = 0; i < kMost; ++i) copy[i] = peers[i];
  }
  for (const Peer& peer : copy) {
    if (peer.memory_of == memory_of) tell(peer.device, to);
  }
}

}  // namespace offload
