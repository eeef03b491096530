// SPDX-License-Identifier: Apache-2.0
#pragma once
// Objects of the program whose lifetime graphs may share (cuUserObjectCreate). The destructor runs
// when the last reference goes, on the host-function thread's terms: no driver calls in it.
// Driver's lock.

#include <cuda.h>

namespace simgpu {

struct UserObject {
  void* pointer = nullptr;
  CUhostFn destroy = nullptr;
  unsigned references = 0;
};

namespace user_objects {

UserObject* create(void* pointer, CUhostFn destroy, unsigned references);
UserObject* find(CUuserObject handle);
void retain(UserObject* object, unsigned count);
void release(UserObject* object, unsigned count);

}  // namespace user_objects
}  // namespace simgpu
