// SPDX-License-Identifier: Apache-2.0
#include "interpose/driver/errors.h"

#include <atomic>

#include "interpose/driver/table.h"
#include "profiler/base/log.h"
#include "profiler/statistics.h"

namespace offload {
namespace {

constexpr size_t kRemembered = 128;
struct Said {
  std::atomic<const char*> api{nullptr};
  CUresult code = CUDA_SUCCESS;
};
constinit Said said[kRemembered]{};
constinit std::atomic<size_t> said_count{0};
constinit std::atomic<void (*)()> sticky_listener{nullptr};
constinit std::atomic<CUresult> sticky{CUDA_SUCCESS};
constinit std::atomic<bool> ending{false};
__attribute__((tls_model("initial-exec"))) constinit thread_local CUresult failure =
    CUDA_ERROR_UNKNOWN;

// Two threads that fail alike at the same moment may both say so.
bool first_time(const char* api, CUresult code) {
  const size_t known = said_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < known && i < kRemembered; ++i) {
    if (said[i].api.load(std::memory_order_acquire) == api && said[i].code == code) return false;
  }
  const size_t at = said_count.fetch_add(1, std::memory_order_acq_rel);
  if (at >= kRemembered) return false;
  said[at].code = code;
  said[at].api.store(api, std::memory_order_release);
  return true;
}

}  // namespace

const char* error_name(CUresult result) {
  const char* name = nullptr;
  if (real<Entry::cuGetErrorName>()(result, &name) != CUDA_SUCCESS || name == nullptr)
    return "unknown error";
  return name;
}

bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_DEINITIALIZED:
      return true;
    default:
      return false;
  }
}

Status status_of(CUresult result, const char* api, const char* instead) {
  if (result == CUDA_SUCCESS) return Status::kOk;
  if (result == CUDA_ERROR_NOT_READY) return Status::kNotReady;
  failure = result;
  if (is_sticky(result)) {
    if (note_sticky(result) && result != CUDA_ERROR_DEINITIALIZED) {
      log_warn("%s: %s (%d): the context is lost, and liboffload steps aside", api,
               error_name(result), static_cast<int>(result));
    }
    return Status::kError;
  }
  statistics().driver_errors.add();
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    log_debug("%s: %s; %s", api, error_name(result), instead);
    return Status::kOutOfMemory;
  }
  if (!ending.load(std::memory_order_relaxed) && first_time(api, result))
    log_warn("%s failed: %s (%d); %s", api, error_name(result), static_cast<int>(result), instead);
  return Status::kError;
}

void expect_the_end() {
  ending.store(true, std::memory_order_relaxed);
}

CUresult last_failure() {
  return failure;
}

CUresult lost_to() {
  return sticky.load(std::memory_order_acquire);
}

bool note_sticky(CUresult result) {
  CUresult none = CUDA_SUCCESS;
  if (!sticky.compare_exchange_strong(none, result, std::memory_order_acq_rel)) return false;
  if (void (*const listener)() = sticky_listener.load(std::memory_order_acquire)) listener();
  return true;
}

void set_sticky_listener(void (*listener)()) {
  sticky_listener.store(listener, std::memory_order_release);
}

}  // namespace offload
