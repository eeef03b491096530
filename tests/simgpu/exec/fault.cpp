// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/fault.h"

#include <setjmp.h>
#include <signal.h>

#include <initializer_list>

#include "tests/simgpu/driver/say.h"
#include "tests/simgpu/memory/window.h"

namespace simgpu {

namespace {

struct Guard {
  sigjmp_buf back;
  uintptr_t address = 0;
};

thread_local Guard* guard = nullptr;
thread_local bool passing_on = false;
struct sigaction previous[NSIG];

void pass_on(int number, siginfo_t* info, void* context) {
  const struct sigaction& before = previous[number];
  // A handler that was installed after ours may hand back to ours.
  if (passing_on) {
    struct sigaction preset = {};
    preset.sa_handler = SIG_DFL;
    sigaction(number, &preset, nullptr);
    return;
  }
  passing_on = true;
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    // The instruction faults again on return and takes the default action.
    struct sigaction preset = {};
    preset.sa_handler = SIG_DFL;
    sigaction(number, &preset, nullptr);
  }
  passing_on = false;
}

void on_fault(int number, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const Window& devices = window();
  if (guard != nullptr && devices.view_contains(address)) {
    guard->address = address - static_cast<uintptr_t>(devices.delta);
    siglongjmp(guard->back, 1);
  }
  if (devices.contains(address)) {
    if (guard != nullptr) {
      say("a kernel's twin touched 0x%zx without simgpu_pointer()", address);
    } else {
      say("host code touched device memory at 0x%zx", address);
    }
  }
  pass_on(number, info, context);
}

}  // namespace

void install_fault_handler() {
  window();  // must exist before the handler asks for it
  for (int number : {SIGSEGV, SIGBUS}) {
    struct sigaction now = {};
    sigaction(number, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) continue;
    previous[number] = now;
    struct sigaction ours = {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    sigaction(number, &ours, nullptr);
  }
}

bool run_guarded(void (*body)(void*), void* argument, uintptr_t* address) {
  Guard here;
  if (sigsetjmp(here.back, 0) != 0) {
    guard = nullptr;
    *address = here.address;
    return false;
  }
  guard = &here;
  body(argument);
  guard = nullptr;
  return true;
}

}  // namespace simgpu
