// SPDX-License-Identifier: Apache-2.0
#include "interpose/doors/environment.h"

#include <stdlib.h>

#include <atomic>
#include <cstring>
#include <span>
#include <string_view>

#include "interpose/doors/real_dl.h"
#include "interpose/life/pytorch.h"

// Under names of their own, because the C library's declarations promise that no argument is null.
extern "C" {
[[gnu::visibility("default")]] int offload_setenv(const char* name, const char* value,
                                                  int overwrite) noexcept __asm__("setenv");
[[gnu::visibility("default")]] int offload_putenv(char* string) noexcept __asm__("putenv");
[[gnu::visibility("default")]] int offload_unsetenv(const char* name) noexcept __asm__("unsetenv");
}

namespace offload {
namespace {

using Setenv = int (*)(const char*, const char*, int);
using Putenv = int (*)(char*);
using Unsetenv = int (*)(const char*);

constinit std::atomic<Setenv> found_setenv{nullptr};
constinit std::atomic<Putenv> found_putenv{nullptr};
constinit std::atomic<Unsetenv> found_unsetenv{nullptr};

constinit std::atomic<PytorchAlloc> wanted{PytorchAlloc::kNative};  // with which nothing is changed
constinit std::atomic<bool> no_memory_caching_is_ours{false};
constinit std::atomic<bool> completed{false};

template <typename Function>
Function real(std::atomic<Function>& found, const char* name) {
  Function function = found.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = reinterpret_cast<Function>(real_function(name));
    found.store(function, std::memory_order_release);
  }
  return function;
}
Setenv real_setenv() {
  return real(found_setenv, "setenv");
}
Putenv real_putenv() {
  return real(found_putenv, "putenv");
}
Unsetenv real_unsetenv() {
  return real(found_unsetenv, "unsetenv");
}

// Which of PyTorch's variables this is, if anything is to be done about them.
PytorchVariable watched(std::string_view name) {
  const PytorchVariable variable = pytorch_variable(name);
  if (variable == PytorchVariable::kNone ||
      wanted.load(std::memory_order_acquire) == PytorchAlloc::kNative)
    return PytorchVariable::kNone;
  return variable;
}

// PyTorch reads the newer name only where the older one is not set.
bool is_read(PytorchVariable variable) {
  return variable == PytorchVariable::kCudaAllocConf ||
         getenv(name_of(PytorchVariable::kCudaAllocConf)) == nullptr;
}

PytorchChanges plan(const char* conf, std::span<char> completed_conf) {
  PytorchVariables now;
  now.cuda_alloc_conf = conf;
  now.no_memory_caching = getenv(name_of(PytorchVariable::kNoMemoryCaching));
  now.no_memory_caching_is_ours = no_memory_caching_is_ours.load(std::memory_order_relaxed);
  return plan_pytorch_variables(wanted.load(std::memory_order_relaxed), now, completed_conf);
}

// A PyTorch that is there has read its variables: then ours say what it read.
void make_way_for_native(const PytorchChanges& changes) {
  if (changes.clear_no_memory_caching && !is_pytorch())
    real_unsetenv()(name_of(PytorchVariable::kNoMemoryCaching));
}

// The program sets `variable`, by `forward`. Not inlined: other variables need no buffer.
template <typename Forward>
[[gnu::noinline]] int set(PytorchVariable variable, const char* value, const Forward& forward) {
  if (variable == PytorchVariable::kNoMemoryCaching) {
    no_memory_caching_is_ours.store(false, std::memory_order_relaxed);
    return forward();
  }
  if (!is_read(variable)) return forward();
  char conf[kMostConfBytes];
  const PytorchChanges changes = plan(value, conf);
  const int result =
      changes.set_cuda_alloc_conf ? real_setenv()(name_of(variable), conf, 1) : forward();
  if (result != 0) return result;
  if (changes.set_cuda_alloc_conf) completed.store(true, std::memory_order_relaxed);
  make_way_for_native(changes);
  return result;
}

// The program has removed `variable`.
[[gnu::noinline]] void removed(PytorchVariable variable) {
  if (variable == PytorchVariable::kNoMemoryCaching || !is_read(variable)) return;
  char conf[kMostConfBytes];
  const PytorchChanges changes = plan(getenv(name_of(PytorchVariable::kAllocConf)), conf);
  if (changes.set_cuda_alloc_conf &&
      real_setenv()(name_of(PytorchVariable::kCudaAllocConf), conf, 1) == 0)
    completed.store(true, std::memory_order_relaxed);
  make_way_for_native(changes);
}

}  // namespace

void bind_environment() {
  real_setenv();
  real_putenv();
  real_unsetenv();
}

void open_environment(PytorchAlloc alloc, bool no_memory_caching_was_set_by_us) {
  no_memory_caching_is_ours.store(no_memory_caching_was_set_by_us, std::memory_order_relaxed);
  wanted.store(alloc, std::memory_order_release);
}

bool completed_pytorch_variables() {
  return completed.load(std::memory_order_relaxed);
}

}  // namespace offload

int offload_setenv(const char* name, const char* value, int overwrite) noexcept {
  using namespace offload;
  const auto forward = [&] { return real_setenv()(name, value, overwrite); };
  if (name == nullptr || value == nullptr) return forward();
  const PytorchVariable variable = watched(name);
  if (variable == PytorchVariable::kNone) return forward();
  if (overwrite == 0 && getenv(name) != nullptr) return forward();
  return set(variable, value, forward);
}

int offload_putenv(char* string) noexcept {
  using namespace offload;
  const auto forward = [&] { return real_putenv()(string); };
  if (string == nullptr) return forward();
  const char* equals = std::strchr(string, '=');
  if (equals == nullptr) {  // the C library takes that for unsetenv
    const PytorchVariable variable = watched(string);
    const int result = forward();
    if (variable != PytorchVariable::kNone && result == 0) removed(variable);
    return result;
  }
  const PytorchVariable variable =
      watched(std::string_view(string, static_cast<size_t>(equals - string)));
  return variable == PytorchVariable::kNone ? forward() : set(variable, equals + 1, forward);
}

int offload_unsetenv(const char* name) noexcept {
  using namespace offload;
  const int result = real_unsetenv()(name);
  if (name == nullptr || result != 0) return result;
  const PytorchVariable variable = watched(name);
  if (variable != PytorchVariable::kNone) removed(variable);
  return result;
}
