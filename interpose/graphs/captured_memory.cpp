// SPDX-License-Identifier: Apache-2.0
#include "interpose/graphs/captured_memory.h"

#include <atomic>
#include <mutex>

#include "interpose/engine/edges.h"
#include "interpose/life/heap.h"
#include "interpose/life/pytorch.h"

namespace offload {
namespace {

struct Captured {
  cuuint64_t id = 0;
  bool lost = false;
};
using Memory = OwnMap<CUdeviceptr, Captured>;

// Nothing else is locked while it is held.
constinit PlainMutex mutex;
constinit Memory* memory = nullptr;      // never destroyed: threads free while the process ends
constinit std::atomic<size_t> count{0};  // so that all but a few calls need no lock

template <typename Change>
void change(Change&& change) {
  if (count.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(mutex);
  change();
  count.store(memory->size(), std::memory_order_relaxed);
}

}  // namespace

void captured_memory_allocated(CUdeviceptr address, cuuint64_t id) {
  if (id == 0 || !is_async_pytorch()) return change([&] { memory->erase(address); });
  const std::lock_guard lock(mutex);
  if (memory == nullptr) memory = own_new<Memory>();
  (*memory)[address] = {id};
  count.store(memory->size(), std::memory_order_relaxed);
}

void captured_memory_lost(cuuint64_t id) {
  change([&] {
    for (auto& [address, captured] : *memory) captured.lost = captured.lost || captured.id == id;
  });
}

bool forget_lost_memory(CUdeviceptr address) {
  bool lost = false;
  change([&] {
    const auto found = memory->find(address);
    if (found == memory->end() || !found->second.lost) return;
    lost = true;
    memory->erase(found);
  });
  return lost;
}

CUresult answer_to_free_of_captured(CUresult by_driver, CUdeviceptr address) {
  const bool refused =
      by_driver == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED || by_driver == CUDA_ERROR_INVALID_VALUE;
  if (by_driver != CUDA_SUCCESS && !refused) return by_driver;
  bool known = false;
  change([&] { known = memory->erase(address) != 0; });
  return known ? CUDA_SUCCESS : by_driver;
}

}  // namespace offload
