// SPDX-License-Identifier: Apache-2.0
#include "interpose/doors/real_dl.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>

extern "C" {
using DlsymFunction = void* (*)(void*, const char*);
using DlvsymFunction = void* (*)(void*, const char*, const char*);

// dlsym.S jumps through these. Before the first call they lead to code that calls
// offload_bind_real_dl.
__attribute__((visibility("hidden"))) void* offload_unbound_dlsym(void*, const char*);
__attribute__((visibility("hidden"))) void* offload_unbound_dlvsym(void*, const char*, const char*);
__attribute__((visibility("hidden"))) constinit std::atomic<DlsymFunction> offload_real_dlsym{
    &offload_unbound_dlsym};
__attribute__((visibility("hidden"))) constinit std::atomic<DlvsymFunction> offload_real_dlvsym{
    &offload_unbound_dlvsym};
__attribute__((visibility("hidden"))) void offload_bind_real_dl();
}
static_assert(sizeof(offload_real_dlsym) == sizeof(void*) &&
              std::atomic<DlsymFunction>::is_always_lock_free);

namespace offload {
namespace {

struct Search {
  const char* name;
  uintptr_t own_code;  // an address inside this library, which is skipped
  void* found = nullptr;
};

struct DynamicTables {
  const uint32_t* gnu_hash = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
};

// glibc has added the load address to these already, other loaders and the vDSO have not.
uintptr_t relocated(const dl_phdr_info& object, ElfW(Addr) value) {
  return value < object.dlpi_addr ? object.dlpi_addr + value : value;
}

DynamicTables read_dynamic(const dl_phdr_info& object, const ElfW(Dyn) * entry) {
  DynamicTables tables;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const uintptr_t at = relocated(object, entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = reinterpret_cast<const uint32_t*>(at);
    if (entry->d_tag == DT_SYMTAB) tables.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
    if (entry->d_tag == DT_STRTAB) tables.strings = reinterpret_cast<const char*>(at);
  }
  return tables;
}

uint32_t gnu_hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// The layout of DT_GNU_HASH: bucket count, first hashed symbol, bloom words, bloom shift; bloom;
// buckets; chains.
const ElfW(Sym) * look_up(const DynamicTables& tables, const char* name) {
  const uint32_t* header = tables.gnu_hash;
  const uint32_t bucket_count = header[0];
  const uint32_t first_hashed = header[1];
  const uint32_t* buckets = header + 4 + header[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* chains = buckets + bucket_count;
  if (bucket_count == 0) return nullptr;
  const uint32_t hash = gnu_hash_of(name);
  uint32_t at = buckets[hash % bucket_count];
  if (at < first_hashed) return nullptr;
  for (;; ++at) {
    const uint32_t link = chains[at - first_hashed];
    const ElfW(Sym)& symbol = tables.symbols[at];
    if ((link | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 &&
        std::strcmp(tables.strings + symbol.st_name, name) == 0) {
      return &symbol;
    }
    if ((link & 1) != 0) return nullptr;
  }
}

// Two of us, preloaded under two names, would find each other and never the C library. Only we
// define both of these.
bool is_copy_of_us(const DynamicTables& tables) {
  return look_up(tables, "dlvsym") != nullptr && look_up(tables, "cuGetProcAddress_v2") != nullptr;
}

int visit(dl_phdr_info* object, size_t, void* context) {
  auto* search = static_cast<Search*>(context);
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && search->own_code - begin < header.p_memsz) return 0;
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
  }
  if (dynamic == nullptr) return 0;
  const DynamicTables tables = read_dynamic(*object, dynamic);
  if (tables.gnu_hash == nullptr || tables.symbols == nullptr || tables.strings == nullptr)
    return 0;
  if (is_copy_of_us(tables)) return 0;
  const ElfW(Sym)* symbol = look_up(tables, search->name);
  if (symbol == nullptr) return 0;
  search->found = reinterpret_cast<void*>(object->dlpi_addr + symbol->st_value);
  return 1;
}

struct Owner {
  uintptr_t address;
  bool is_copy = false;
};

int visit_owner(dl_phdr_info* object, size_t, void* context) {
  auto* owner = static_cast<Owner*>(context);
  const ElfW(Dyn)* dynamic = nullptr;
  bool inside = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && owner->address - begin < header.p_memsz) inside = true;
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
  }
  if (!inside || dynamic == nullptr) return inside ? 1 : 0;
  const DynamicTables tables = read_dynamic(*object, dynamic);
  owner->is_copy = tables.gnu_hash != nullptr && tables.symbols != nullptr &&
                   tables.strings != nullptr && is_copy_of_us(tables);
  return 1;
}

void* first_definition(const char* name) {
  Search search{name, reinterpret_cast<uintptr_t>(&visit)};
  dl_iterate_phdr(&visit, &search);
  return search.found;
}

}  // namespace

bool in_any_liboffload(const void* address) {
  Owner owner{reinterpret_cast<uintptr_t>(address)};
  dl_iterate_phdr(&visit_owner, &owner);
  return owner.is_copy;
}

void* real_function(const char* name) {
  void* next = real_dlsym(RTLD_NEXT, name);
  return next != nullptr && !in_any_liboffload(next) ? next : first_definition(name);
}

void* real_dlsym(void* handle, const char* name) {
  return offload_real_dlsym.load(std::memory_order_acquire)(handle, name);
}
void* real_dlvsym(void* handle, const char* name, const char* version) {
  return offload_real_dlvsym.load(std::memory_order_acquire)(handle, name, version);
}

}  // namespace offload

// Not even an idle program has no dlsym: if none is found the jump through null says so.
void offload_bind_real_dl() {
  using offload::first_definition;
  const auto walked = reinterpret_cast<DlvsymFunction>(first_definition("dlvsym"));
  void* next = nullptr;
  void* next_versioned = nullptr;
  if (walked != nullptr) {
    // The base version of x86-64, then of aarch64.
    for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
      if (next == nullptr) next = walked(RTLD_NEXT, "dlsym", version);
      if (next_versioned == nullptr) next_versioned = walked(RTLD_NEXT, "dlvsym", version);
    }
  }
  using offload::in_any_liboffload;
  if (next == nullptr || in_any_liboffload(next)) next = first_definition("dlsym");
  if (next_versioned == nullptr || in_any_liboffload(next_versioned))
    next_versioned = reinterpret_cast<void*>(walked);
  offload_real_dlvsym.store(reinterpret_cast<DlvsymFunction>(next_versioned),
                            std::memory_order_release);
  offload_real_dlsym.store(reinterpret_cast<DlsymFunction>(next), std::memory_order_release);
}
