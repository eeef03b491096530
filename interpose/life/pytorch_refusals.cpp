// SPDX-License-Identifier: Apache-2.0
// What PyTorch's stream-ordered allocator cannot do, PyTorch refuses before the driver is asked
// anything. Every failed check of PyTorch's passes through two functions of its libc10
// (c10/util/Exception.h). Ours stand before them: they say once which option
// helps, if the check is that allocator's, and pass every one on. Any thread; what is thrown goes
// through their frames, which have nothing to clean up.

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "interpose/doors/real_dl.h"
#include "interpose/life/pytorch.h"
#include "interpose/life/start.h"
#include "profiler/base/log.h"

#define TEXT_CHECK "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"
#define STRING_CHECK                        \
  "_ZN3c106detail14torchCheckFailEPKcS2_jR" \
  "KNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

extern "C" {
// c10::detail::torchCheckFail(function, file, line, message)
[[noreturn, gnu::visibility("default")]] void offload_text_check_failed(
    const char*, const char*, uint32_t, const char*) __asm__(TEXT_CHECK);
[[noreturn, gnu::visibility("default")]] void offload_string_check_failed(
    const char*, const char*, uint32_t, const std::string&) __asm__(STRING_CHECK);
}

namespace offload {
namespace {

// As that allocator words them, unlike a check of the settings, which names it, too.
bool is_refusal(std::string_view message) {
  return message.find("cudaMallocAsync") != message.npos &&
         (message.find("does not yet support") != message.npos ||
          message.find("is not meaningful") != message.npos);
}

void explain(std::string_view message) {
  static constinit std::atomic<bool> said{false};
  if (!is_refusal(message) || options().disable ||
      options().pytorch_alloc != PytorchAlloc::kAsync ||
      pytorch_allocator() != PytorchAlloc::kAsync || said.exchange(true))
    return;
  start_to_speak();
  log_warn(
      "PyTorch's stream-ordered allocator, with which liboffload moves tensors, does not have what "
      "the program asks for; OFFLOAD_PYTORCH_ALLOC=native has it, and moves nothing");
}

// Of the library that the caller is linked with: PyTorch's are not in the global scope.
template <typename Function>
Function* real_one(const char* symbol, const void* caller) {
  Dl_info where;
  void* found = nullptr;
  if (dladdr(caller, &where) != 0 && where.dli_fname != nullptr) {
    if (void* library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD); library != nullptr) {
      found = real_dlsym(library, symbol);
      dlclose(library);
    }
  }
  if (found == nullptr || in_any_liboffload(found)) found = real_dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    log_error(
        "PyTorch's %s is not where its libraries look for it: the check cannot fail as it should",
        symbol);
    abort();
  }
  return reinterpret_cast<Function*>(found);
}

}  // namespace
}  // namespace offload

void offload_text_check_failed(const char* function, const char* file, uint32_t line,
                               const char* message) {
  offload::explain(message);
  offload::real_one<decltype(offload_text_check_failed)>(TEXT_CHECK, __builtin_return_address(0))(
      function, file, line, message);
  __builtin_unreachable();
}

void offload_string_check_failed(const char* function, const char* file, uint32_t line,
                                 const std::string& message) {
  offload::explain(message);
  offload::real_one<decltype(offload_string_check_failed)>(
      STRING_CHECK, __builtin_return_address(0))(function, file, line, message);
  __builtin_unreachable();
}
