// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/peers.h"

#include <algorithm>

#include "tests/simgpu/driver/objects.h"
#include "tests/simgpu/memory/address_space.h"

namespace simgpu::peers {

namespace {

void set_all(const Context& user, const Context& owner, CUmemAccess_flags flags) {
  for (Mapping* mapping : address_space().owned_by(&owner)) {
    if (mapping->kind == MemoryKind::kHeap) mapping->access[user.device] = flags;
  }
}

}  // namespace

bool are_enabled(const Context& user, const Context& owner) {
  return std::find(user.peers.begin(), user.peers.end(), owner.id) != user.peers.end();
}

void enable(Context& user, const Context& owner) {
  user.peers.push_back(owner.id);
  set_all(user, owner, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

void disable(Context& user, const Context& owner) {
  std::erase(user.peers, owner.id);
  set_all(user, owner, CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

void let_in(Mapping& mapping) {
  contexts().for_each([&](const Context& user) {
    if (mapping.context != nullptr && are_enabled(user, *mapping.context)) {
      mapping.access[user.device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
  });
}

void forget(const Context* context) {
  contexts().for_each([&](Context& user) { std::erase(user.peers, context->id); });
}

}  // namespace simgpu::peers
