// SPDX-License-Identifier: Apache-2.0
// The table of entries, and those of them that are not modelled, which are made from it.
#include "tests/simgpu/driver/proc_address.h"

#include <cstring>
#include <string>

#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/say.h"

// This file sees no cuda.h: there every symbol has its own type, here all are just addresses.
#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default"))) int

namespace simgpu {
namespace {

constexpr int kNotSupported = 801;

int not_modelled(const char* name, bool* said) {
  // NVIDIA's own runtime, linked statically, begins with it.
  const bool of_runtime = std::strcmp(name, "cuGetExportTable") == 0;
  if (!*said)
    say("%s is not modelled%s", name,
        of_runtime ? ": a program for the simulated GPU is linked with the shared runtime (nvcc "
                     "-cudart shared)"
                   : "");
  *said = true;
  return kNotSupported;
}

}  // namespace
}  // namespace simgpu

#define SIMGPU_ENTRY(base, symbol, version) extern "C" int symbol();
#define SIMGPU_ENTRY_PT(base, symbol, version, suffix) \
  extern "C" int symbol();                             \
  extern "C" int symbol##suffix();
#include "tests/simgpu/driver/entries_modelled.def"
#undef SIMGPU_ENTRY
#undef SIMGPU_ENTRY_PT

#define SIMGPU_ABSENT(symbol)                    \
  SIMGPU_EXPORT symbol() {                       \
    static bool said = false;                    \
    return simgpu::not_modelled(#symbol, &said); \
  }
#define SIMGPU_ENTRY(base, symbol, version) SIMGPU_ABSENT(symbol)
#define SIMGPU_ENTRY_PT(base, symbol, version, suffix) \
  SIMGPU_ABSENT(symbol) SIMGPU_ABSENT(symbol##suffix)
#include "tests/simgpu/driver/entries_absent.def"
#undef SIMGPU_ENTRY
#undef SIMGPU_ENTRY_PT

extern "C" int cuSimgpuUnknownA();
extern "C" int cuSimgpuUnknownB();

namespace simgpu {
namespace {

struct Entry {
  const char* base;
  int version;
  int (*plain)();
  int (*per_thread)();  // null: there is none
};

constexpr Entry kEntries[] = {
#define SIMGPU_ENTRY(base, symbol, version) {#base, version, symbol, nullptr},
#define SIMGPU_ENTRY_PT(base, symbol, version, suffix) {#base, version, symbol, symbol##suffix},
#include "tests/simgpu/driver/entries_modelled.def"

#include "tests/simgpu/driver/entries_absent.def"
#undef SIMGPU_ENTRY
#undef SIMGPU_ENTRY_PT
};

bool is_offered(const char* name) {
  const std::string wanted = std::string(",") + name + ",";
  return ("," + options().extra_entries + ",").find(wanted) != std::string::npos;
}

}  // namespace

ProcAddress find_entry(const char* name, int version, bool per_thread) {
  ProcAddress result;
  int best = -1;
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.base, name) != 0 || entry.version > options().driver_version) continue;
    if (result.status == ProcStatus::kNoSuchName) result.status = ProcStatus::kVersionTooLow;
    if (entry.version > version || entry.version <= best) continue;
    best = entry.version;
    result.status = ProcStatus::kFound;
    result.address = reinterpret_cast<void*>(
        per_thread && entry.per_thread != nullptr ? entry.per_thread : entry.plain);
  }
  if (result.status == ProcStatus::kNoSuchName && is_offered(name)) {
    if (std::strcmp(name, "cuSimgpuUnknownA") == 0) {
      result = {ProcStatus::kFound, reinterpret_cast<void*>(cuSimgpuUnknownA)};
    } else if (std::strcmp(name, "cuSimgpuUnknownB") == 0) {
      result = {ProcStatus::kFound, reinterpret_cast<void*>(cuSimgpuUnknownB)};
    }
  }
  return result;
}

}  // namespace simgpu
