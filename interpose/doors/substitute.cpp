// SPDX-License-Identifier: Apache-2.0
#include "interpose/doors/substitute.h"

#include "interpose/doors/libcuda.h"
#include "interpose/doors/traps.h"
#include "interpose/driver/table.h"
#include "interpose/hooks/wrappers.h"
#include "interpose/life/start.h"

namespace offload {
namespace {

void* ask_by_base(const char* base, int version, bool per_thread) {
  const auto ask =
      reinterpret_cast<PFN_cuGetProcAddress_v12000>(driver_symbol("cuGetProcAddress_v2"));
  const auto ask_old =
      reinterpret_cast<PFN_cuGetProcAddress_v11030>(driver_symbol("cuGetProcAddress"));
  const cuuint64_t flags = per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                      : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  void* pointer = nullptr;
  CUresult result = CUDA_ERROR_NOT_FOUND;
  if (ask != nullptr) {
    result = ask(base, &pointer, version, flags, nullptr);
  } else if (ask_old != nullptr) {
    result = ask_old(base, &pointer, version, flags);
  }
  return result == CUDA_SUCCESS ? pointer : nullptr;
}

constinit PointerNames pointer_names({&driver_symbol, &ask_by_base});
constinit std::atomic<size_t> handed_out{0};

void* wrapper_for(Entry entry, void* found) {
  learn(entry, found);
  handed_out.fetch_add(1, std::memory_order_relaxed);
  return wrapper(entry);
}

void* trap_or_give_up(const char* name, void* found) {
  if (void* trap = trap_before(found, name)) return trap;
  no_more_traps(name);
  return found;
}

}  // namespace

void* substitute_symbol(const char* name, NameInfo known, void* found) {
  note_libcuda(found);
  if (!driver_in_use()) return found;
  if (known.knowledge == Knowledge::kHooked)
    return wrapper_for(static_cast<Entry>(known.row), found);
  return trap_or_give_up(name, found);
}

void* substitute_base(const char* base, int version, bool per_thread, void* found) {
  note_libcuda(found);
  if (!driver_in_use()) return found;
  const Verdict verdict = pointer_names.judge(base, version, per_thread, found);
  switch (verdict.kind) {
    case Verdict::Kind::kWrapper:
      return wrapper_for(verdict.entry, found);
    case Verdict::Kind::kTrap:
      return trap_or_give_up(base, found);
    case Verdict::Kind::kAsItIs:
      break;
  }
  return found;
}

size_t wrappers_handed_out() {
  return handed_out.load(std::memory_order_relaxed);
}

}  // namespace offload
