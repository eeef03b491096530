// SPDX-License-Identifier: Apache-2.0
#include "interpose/doors/objects.h"

#include <cstdio>

namespace offload {
namespace {

struct Asked {
  uintptr_t address;
  char* file;
  size_t bytes;
};

int visit(dl_phdr_info* object, size_t, void* context) {
  const auto& asked = *static_cast<Asked*>(context);
  if (!holds_address(*object, asked.address)) return 0;
  std::snprintf(asked.file, asked.bytes, "%s",
                object->dlpi_name == nullptr ? "" : object->dlpi_name);
  return 1;
}

}  // namespace

bool holds_address(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object.dlpi_phdr[i];
    if (header.p_type == PT_LOAD && address - (object.dlpi_addr + header.p_vaddr) < header.p_memsz)
      return true;
  }
  return false;
}

std::string_view file_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool file_of(const void* address, char* file, size_t bytes) {
  Asked asked{reinterpret_cast<uintptr_t>(address), file, bytes};
  return dl_iterate_phdr(&visit, &asked) != 0;
}

}  // namespace offload
