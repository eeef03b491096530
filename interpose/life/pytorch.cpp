// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/pytorch.h"

#include <link.h>
#include <stdlib.h>

#include <cstdio>
#include <cstring>
#include <string_view>

namespace offload {
namespace {

constexpr const char* kConf = "PYTORCH_CUDA_ALLOC_CONF";
constexpr const char* kNewConf = "PYTORCH_ALLOC_CONF";
constexpr const char* kNoCaching = "PYTORCH_NO_CUDA_MEMORY_CACHING";
constexpr std::string_view kAsyncBackend = "backend:cudaMallocAsync";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The value of the key `backend`, or nothing. Keys are separated by commas; lists in brackets hold
// none.
std::string_view backend_of(std::string_view conf) {
  while (!conf.empty()) {
    const size_t comma = conf.find(',');
    const std::string_view item = trimmed(conf.substr(0, comma));
    const size_t colon = item.find(':');
    if (colon != std::string_view::npos && trimmed(item.substr(0, colon)) == "backend") {
      return trimmed(item.substr(colon + 1));
    }
    if (comma == std::string_view::npos) break;
    conf.remove_prefix(comma + 1);
  }
  return {};
}

bool is_set(const char* value) {
  return value != nullptr;
}

int looks_like_c10(dl_phdr_info* object, size_t, void* found) {
  if (object->dlpi_name == nullptr || std::strstr(object->dlpi_name, "libc10_cuda") == nullptr)
    return 0;
  *static_cast<bool*>(found) = true;
  return 1;
}

}  // namespace

PytorchVariable pytorch_variable(std::string_view name) {
  if (!name.starts_with("PYTORCH_")) return PytorchVariable::kNone;
  if (name == kConf) return PytorchVariable::kCudaAllocConf;
  if (name == kNewConf) return PytorchVariable::kAllocConf;
  return name == kNoCaching ? PytorchVariable::kNoMemoryCaching : PytorchVariable::kNone;
}

const char* name_of(PytorchVariable variable) {
  switch (variable) {
    case PytorchVariable::kCudaAllocConf:
      return kConf;
    case PytorchVariable::kAllocConf:
      return kNewConf;
    case PytorchVariable::kNoMemoryCaching:
      return kNoCaching;
    case PytorchVariable::kNone:
      break;
  }
  return "";
}

PytorchChanges plan_pytorch_variables(PytorchAlloc wanted, const PytorchVariables& now,
                                      std::span<char> conf) {
  PytorchChanges changes;
  if (wanted == PytorchAlloc::kNative) return changes;
  const char* present = is_set(now.cuda_alloc_conf) ? now.cuda_alloc_conf : now.alloc_conf;
  const std::string_view keys = is_set(present) ? trimmed(present) : std::string_view{};
  const std::string_view backend = backend_of(keys);
  if (backend == "native") {  // the user's word; the other variable would override it
    changes.clear_no_memory_caching =
        is_set(now.no_memory_caching) && now.no_memory_caching_is_ours;
    return changes;
  }
  changes.set_no_memory_caching = !is_set(now.no_memory_caching);
  if (wanted != PytorchAlloc::kAsync || !backend.empty()) return changes;
  const int length = std::snprintf(
      conf.data(), conf.size(), "%.*s%s%.*s", static_cast<int>(kAsyncBackend.size()),
      kAsyncBackend.data(), keys.empty() ? "" : ",", static_cast<int>(keys.size()), keys.data());
  changes.set_cuda_alloc_conf = length > 0 && static_cast<size_t>(length) < conf.size();
  return changes;
}

bool set_pytorch_variables(PytorchAlloc wanted) {
  char conf[kMostConfBytes];
  const PytorchVariables now = {getenv(kConf), getenv(kNewConf), getenv(kNoCaching)};
  const bool inherited = now.no_memory_caching != nullptr &&
                         std::strcmp(now.no_memory_caching, "1") == 0 &&
                         pytorch_allocator() == PytorchAlloc::kAsync;
  const PytorchChanges changes = plan_pytorch_variables(wanted, now, conf);
  if (changes.set_cuda_alloc_conf) setenv(kConf, conf, 1);
  if (changes.set_no_memory_caching) setenv(kNoCaching, "1", 0);
  return changes.set_no_memory_caching || inherited;
}

bool is_pytorch() {
  bool found = false;
  dl_iterate_phdr(&looks_like_c10, &found);
  return found;
}

PytorchAlloc pytorch_allocator() {
  const char* conf = getenv(kConf);
  if (conf == nullptr) conf = getenv(kNewConf);
  if (conf != nullptr && backend_of(conf) == "cudaMallocAsync") return PytorchAlloc::kAsync;
  const char* caching = getenv(kNoCaching);
  const bool uncached = caching != nullptr && std::strcmp(caching, "1") == 0;
  return uncached ? PytorchAlloc::kUncached : PytorchAlloc::kNative;
}

bool is_native_pytorch() {
  return pytorch_allocator() == PytorchAlloc::kNative && is_pytorch();
}

bool is_async_pytorch() {
  return pytorch_allocator() == PytorchAlloc::kAsync && is_pytorch();
}

}  // namespace offload
