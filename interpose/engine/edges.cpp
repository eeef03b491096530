// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/edges.h"

#ifdef OFFLOAD_WATCHED_EDGES
#include <atomic>

namespace offload {

namespace {
std::atomic<EdgeWatcher*> watching{nullptr};
}  // namespace

void watch_edges(EdgeWatcher* watcher) {
  watching.store(watcher, std::memory_order_release);
}

void edge(Edge edge) {
  if (EdgeWatcher* watcher = watching.load(std::memory_order_acquire)) watcher->at(edge);
}

void Mutex::lock() {
  EdgeWatcher* watcher = watching.load(std::memory_order_acquire);
  if (watcher != nullptr && watcher->lock(*this)) {
    held_ = true;
    return;
  }
  edge(Edge::kWantMutex);
  mutex_.lock();
  edge(Edge::kHasMutex);
}

bool Mutex::try_lock() {
  if (held_ || !mutex_.try_lock()) return false;
  return true;
}

void Mutex::unlock() {
  if (held_) {
    held_ = false;
    return;
  }
  mutex_.unlock();
}

}  // namespace offload

#endif
