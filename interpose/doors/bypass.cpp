// SPDX-License-Identifier: Apache-2.0
#include "interpose/doors/bypass.h"

#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>

#include "interpose/doors/entries.h"
#include "interpose/doors/libcuda.h"
#include "interpose/doors/objects.h"

#if defined(__x86_64__)
#define OFFLOAD_SLOT_RELOCATIONS R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define OFFLOAD_SLOT_RELOCATIONS R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT
#endif

namespace offload {
namespace {

// Lazily bound slots change without a word: with any of them about, we look again after so many
// calls.
constexpr unsigned kCallsBetweenLooks = 64;

// How many times the loader had added an object when we last found nothing, plus one.
constinit std::atomic<unsigned long long> looked_at{0};
constinit std::atomic<unsigned> calls_left{0};

// Where the driver lies, noted before the objects are visited.
struct Driver {
  struct Range {
    uintptr_t begin;
    uintptr_t end;
  };
  Range segments[32];
  size_t count = 0;
  bool holds(uintptr_t address) const {
    for (size_t i = 0; i < count; ++i) {
      if (address >= segments[i].begin && address < segments[i].end) return true;
    }
    return false;
  }
};

struct Found {
  char* file;
  size_t bytes;
  Driver driver{};
  unsigned long long adds = 0;
  bool again = false;  // look although nothing was loaded
  bool found = false;
  bool unbound = false;  // a lazily bound slot has not been used yet
};

struct Object {
  const dl_phdr_info* info;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * relocations[2] = {};
  size_t relocation_bytes[2] = {};
  size_t relative = 0;  // how many of the second table come first and have no symbol
};

uintptr_t relocated(const dl_phdr_info& object, ElfW(Addr) value) {
  return value < object.dlpi_addr ? object.dlpi_addr + value : value;
}

bool read(const dl_phdr_info& info, Object* object) {
  object->info = &info;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  if (dynamic == nullptr) return false;
  bool rela = true;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t at = relocated(info, dynamic->d_un.d_ptr);
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        object->symbols = reinterpret_cast<const ElfW(Sym)*>(at);
        break;
      case DT_STRTAB:
        object->strings = reinterpret_cast<const char*>(at);
        break;
      case DT_JMPREL:
        object->relocations[0] = reinterpret_cast<const ElfW(Rela)*>(at);
        break;
      case DT_PLTRELSZ:
        object->relocation_bytes[0] = dynamic->d_un.d_val;
        break;
      case DT_RELA:
        object->relocations[1] = reinterpret_cast<const ElfW(Rela)*>(at);
        break;
      case DT_RELASZ:
        object->relocation_bytes[1] = dynamic->d_un.d_val;
        break;
      case DT_RELACOUNT:
        object->relative = dynamic->d_un.d_val;
        break;
      case DT_PLTREL:
        rela = dynamic->d_un.d_val == DT_RELA;
        break;
      default:
        break;
    }
  }
  return object->symbols != nullptr && object->strings != nullptr && rela;
}

bool is_slot(uint32_t type) {
  for (const int slot : {OFFLOAD_SLOT_RELOCATIONS}) {
    if (type == static_cast<uint32_t>(slot)) return true;
  }
  return false;
}

// Whoever looks the driver up by hand has its name among its constants.
bool names_libcuda(const dl_phdr_info& info) {
  constexpr std::string_view kName = "libcuda.so";
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_R) == 0) continue;
    const auto* begin = reinterpret_cast<const char*>(info.dlpi_addr + header.p_vaddr);
    if (memmem(begin, header.p_filesz, kName.data(), kName.size()) != nullptr) return true;
  }
  return false;
}

enum class Slot { kOurs, kElsewhere, kUnbound };

Slot judge(const Object& object, uintptr_t value) {
  // Into its own table of jumps, or not relocated yet: another thread is loading it.
  if (value == 0 || holds_address(*object.info, value) ||
      holds_address(*object.info, object.info->dlpi_addr + value))
    return Slot::kUnbound;
  return in_liboffload(reinterpret_cast<const void*>(value)) ? Slot::kOurs : Slot::kElsewhere;
}

// Whether one slot of the object leads past us.
bool bypasses(const Object& object, const Driver& driver, bool* unbound) {
  for (int table = 0; table < 2; ++table) {
    const size_t count = object.relocations[table] == nullptr
                             ? 0
                             : object.relocation_bytes[table] / sizeof(ElfW(Rela));
    for (size_t i = table == 0 ? 0 : object.relative; i < count; ++i) {
      const ElfW(Rela)& relocation = object.relocations[table][i];
      if (!is_slot(static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info)))) continue;
      const char* name = object.strings + object.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
      const bool looks_up = std::strcmp(name, "dlsym") == 0 || std::strcmp(name, "dlvsym") == 0;
      const Knowledge knowledge = looks_up ? Knowledge::kNotDriver : find_symbol(name).knowledge;
      const bool ours = knowledge == Knowledge::kHooked || knowledge == Knowledge::kTrapped;
      if (!looks_up && !ours) continue;
      const auto value =
          *reinterpret_cast<const uintptr_t*>(object.info->dlpi_addr + relocation.r_offset);
      const Slot slot = judge(object, value);
      if (slot == Slot::kUnbound) *unbound = true;
      if (slot != Slot::kElsewhere) continue;
      if (looks_up ? names_libcuda(*object.info) : driver.holds(value)) return true;
    }
  }
  return false;
}

int note_driver(dl_phdr_info* info, size_t, void* context) {
  auto* driver = static_cast<Driver*>(context);
  if (!is_libcuda_file(info->dlpi_name)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || driver->count == std::size(driver->segments)) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    driver->segments[driver->count++] = {begin, begin + header.p_memsz};
  }
  return 0;
}

int visit(dl_phdr_info* info, size_t, void* context) {
  auto* result = static_cast<Found*>(context);
  result->adds = info->dlpi_adds;
  if (result->adds + 1 == looked_at.load(std::memory_order_relaxed) && !result->again) return 1;
  const char* file = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  Object object{};
  // The driver reaches itself, and we reach it on purpose.
  if (!read(*info, &object) || in_liboffload(object.strings) || is_libcuda_file(file)) return 0;
  if (!bypasses(object, result->driver, &result->unbound)) return 0;
  std::snprintf(result->file, result->bytes, "%s", *file != '\0' ? file : "the program itself");
  result->found = true;
  return 1;
}

}  // namespace

bool find_bypass(char* file, size_t bytes) {
  Found result{file, bytes};
  const unsigned left = calls_left.load(std::memory_order_relaxed);
  result.again = left == 1;
  if (left > 1) calls_left.store(left - 1, std::memory_order_relaxed);
  dl_iterate_phdr(&note_driver, &result.driver);
  dl_iterate_phdr(&visit, &result);
  if (!result.found) looked_at.store(result.adds + 1, std::memory_order_relaxed);
  if (result.unbound) calls_left.store(kCallsBetweenLooks, std::memory_order_relaxed);
  return result.found;
}

}  // namespace offload
