// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where host threads can come between each other: the library's mutexes, and the places in an op
// and in a claim where memory is read or written without it. In a test build whoever watches is
// told at each of them, and lets another thread go on there, or sleeps. In the library they are
// nothing, and the mutex is the standard one.

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace offload {

enum class Edge : uint8_t {
  kPublish,    // an op is about to publish its pins
  kState,      // and to read the state of what it names
  kClaim,      // a claim is about to be stored
  kScan,       // and the pins to be read
  kUses,       // and the uses, for e1
  kCount,      // an op was submitted, and is about to raise its stream's position
  kNote,       // and to note its use
  kDrop,       // and to drop its pins
  kWantMutex,  // about to lock
  kHasMutex,   // locked
};

#ifdef OFFLOAD_WATCHED_EDGES

class Mutex;

// What a test does at an edge. Without one, threads run as they will.
class EdgeWatcher {
 public:
  virtual ~EdgeWatcher() = default;
  virtual void at(Edge edge) = 0;
  // A thread wants the mutex. True: it may take it now, and the test keeps others away; false: lock
  // it as usual.
  virtual bool lock(Mutex&) { return false; }
};

void watch_edges(EdgeWatcher* watcher);  // null: nobody
void edge(Edge edge);

class Mutex {
 public:
  void lock();
  bool try_lock();
  void unlock();
  bool held() const { return held_; }  // by a thread that a test plays
  std::mutex::native_handle_type native_handle() { return mutex_.native_handle(); }

 private:
  friend class Condition;
  std::mutex mutex_;
  bool held_ = false;
};

// The library's other locks, which the engine's tests do not play: each guards a few short
// places.
class PlainMutex {
 public:
  void lock() {
    edge(Edge::kWantMutex);
    mutex_.lock();
    edge(Edge::kHasMutex);
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// The standard one, over the mutex inside.
class Condition {
 public:
  template <typename Duration>
  std::cv_status wait_for(std::unique_lock<Mutex>& lock, const Duration& duration) {
    std::unique_lock<std::mutex> inside(lock.mutex()->mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_for(inside, duration);
    inside.release();
    edge(Edge::kHasMutex);
    return status;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

#else

inline void edge(Edge) {}
using Mutex = std::mutex;
using PlainMutex = std::mutex;
using Condition = std::condition_variable;

#endif

}  // namespace offload
