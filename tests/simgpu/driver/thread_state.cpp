// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/thread_state.h"

#include <pthread.h>

#include <atomic>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/exec/capture.h"
#include "tests/simgpu/exec/engine.h"

namespace simgpu {

namespace {

thread_local ThreadState* current = nullptr;

void thread_ends(void* state) {
  auto* ending = static_cast<ThreadState*>(state);
  if (driver_status() ==
      CUDA_SUCCESS) {  // not in a forked child, where the lock may be held for good
    Lock lock(driver_mutex());
    for (auto& [context, stream] : ending->default_streams) {
      captures::leave(*stream);
      engine().retire_stream(lock, stream);
    }
  }
  delete ending;
  current = nullptr;
}

pthread_key_t make_key() {
  pthread_key_t key = 0;
  pthread_key_create(&key, thread_ends);
  return key;
}

}  // namespace

ThreadState& thread_state() {
  if (current == nullptr) {
    static const pthread_key_t key = make_key();
    static std::atomic<uint64_t> last_id{0};
    current = new ThreadState;
    current->id = ++last_id;
    pthread_setspecific(key, current);
  }
  return *current;
}

}  // namespace simgpu
