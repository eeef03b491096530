// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/user_object.h"

#include <thread>

#include "tests/simgpu/driver/handle_pool.h"
#include "tests/simgpu/driver/thread_state.h"

namespace simgpu::user_objects {

namespace {

HandlePool<UserObject>& handles() {
  static auto* pool = new HandlePool<UserObject>;
  return *pool;
}

}  // namespace

UserObject* create(void* pointer, CUhostFn destroy, unsigned references) {
  UserObject* object = handles().create();
  *object = {pointer, destroy, references};
  return object;
}

UserObject* find(CUuserObject handle) {
  return handles().find(handle);
}

void retain(UserObject* object, unsigned count) {
  object->references += count;
}

void release(UserObject* object, unsigned count) {
  object->references -= count < object->references ? count : object->references;
  if (object->references != 0) return;
  const UserObject last = *object;
  handles().destroy(object);
  // Asynchronously, as documented; and the lock is held here.
  std::thread([last] {
    thread_state().in_host_function = true;
    last.destroy(last.pointer);
  }).detach();
}

}  // namespace simgpu::user_objects
