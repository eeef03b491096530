// SPDX-License-Identifier: Apache-2.0
#pragma once
// While it lives, a request to cancel the calling thread (pthread_cancel) waits: our frames are not
// unwound, so a thread that ended in them would leave locks held and buffers half moved.

#include <pthread.h>

namespace offload {

class NotCancelled {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace offload
