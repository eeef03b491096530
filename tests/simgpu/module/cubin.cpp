// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>

namespace simgpu {
namespace {

constexpr std::string_view kInfoPrefix = ".nv.info.";
constexpr uint16_t kMachineCuda = 190;
constexpr unsigned char kEntry = 0x10;  // in a symbol's st_other: a kernel, not a device function

// An attribute starts with its format, its number and, unless the format says "long", a value in
// place.
constexpr uint8_t kFormatLong = 4;
constexpr uint8_t kParameterInfo = 0x17;
constexpr uint8_t kParameterInfoWide = 0x45;

template <class T>
T read_at(const uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

class Reader {
 public:
  Reader(const void* data, size_t bytes)
      : data_(static_cast<const uint8_t*>(data)), bytes_(bytes) {}

  bool run(std::vector<CubinKernel>* kernels) const {
    if (bytes_ < sizeof(Elf64_Ehdr)) return false;
    const auto header = read_at<Elf64_Ehdr>(data_);
    if (header.e_machine != kMachineCuda || header.e_shentsize != sizeof(Elf64_Shdr)) return false;
    if (!inside(header.e_shoff, size_t{header.e_shnum} * sizeof(Elf64_Shdr))) return false;
    if (header.e_shstrndx >= header.e_shnum) return false;
    const auto names = section(header, header.e_shstrndx);
    if (!inside(names.sh_offset, names.sh_size)) return false;
    std::set<std::string, std::less<>> entries;
    if (!read_entries(header, &entries)) return false;
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      const auto info = section(header, i);
      if (info.sh_name >= names.sh_size) return false;
      const auto* text = reinterpret_cast<const char*>(data_ + names.sh_offset + info.sh_name);
      const std::string_view name(text, strnlen(text, names.sh_size - info.sh_name));
      if (!name.starts_with(kInfoPrefix)) continue;
      if (!entries.contains(name.substr(kInfoPrefix.size()))) continue;
      if (!inside(info.sh_offset, info.sh_size)) return false;
      CubinKernel kernel{std::string(name.substr(kInfoPrefix.size())), {}};
      if (!read_parameters(data_ + info.sh_offset, info.sh_size, &kernel.parameters)) return false;
      kernels->push_back(std::move(kernel));
    }
    return true;
  }

 private:
  bool inside(uint64_t offset, uint64_t size) const {
    return offset <= bytes_ && size <= bytes_ - offset;
  }

  Elf64_Shdr section(const Elf64_Ehdr& header, unsigned index) const {
    return read_at<Elf64_Shdr>(data_ + header.e_shoff + size_t{index} * sizeof(Elf64_Shdr));
  }

  // Relocatable code has `.nv.info` sections for its device functions too.
  bool read_entries(const Elf64_Ehdr& header, std::set<std::string, std::less<>>* entries) const {
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      const auto table = section(header, i);
      if (table.sh_type != SHT_SYMTAB) continue;
      if (table.sh_link >= header.e_shnum || !inside(table.sh_offset, table.sh_size)) return false;
      const auto strings = section(header, table.sh_link);
      if (!inside(strings.sh_offset, strings.sh_size)) return false;
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
        const auto symbol = read_at<Elf64_Sym>(data_ + table.sh_offset + at);
        if ((symbol.st_other & kEntry) == 0 || symbol.st_name >= strings.sh_size) continue;
        const auto* text =
            reinterpret_cast<const char*>(data_ + strings.sh_offset + symbol.st_name);
        entries->emplace(text, strnlen(text, strings.sh_size - symbol.st_name));
      }
    }
    return true;
  }

  static bool read_parameters(const uint8_t* at, size_t bytes, std::vector<KernelParameter>* out) {
    const uint8_t* const end = at + bytes;
    while (at + 4 <= end) {
      const uint8_t format = at[0];
      const uint8_t attribute = at[1];
      const size_t size = format == kFormatLong ? read_at<uint16_t>(at + 2) : 0;
      const uint8_t* const value = at + 4;
      if (size > static_cast<size_t>(end - value)) return false;
      const bool narrow = attribute == kParameterInfo;
      if ((narrow || attribute == kParameterInfoWide) && size >= 12) {
        // index (u32), ordinal (u16), offset (u16), then the size: bits 18 and up, or all of the
        // word.
        const size_t ordinal = read_at<uint16_t>(value + 4);
        const uint32_t word = read_at<uint32_t>(value + 8);
        if (ordinal >= out->size()) out->resize(ordinal + 1);
        (*out)[ordinal] = {read_at<uint16_t>(value + 6), narrow ? word >> 18 : word};
      }
      at = value + size;
    }
    return true;
  }

  const uint8_t* data_;
  size_t bytes_;
};

}  // namespace

bool is_elf(const void* data) {
  return std::memcmp(data, ELFMAG, SELFMAG) == 0;
}

size_t elf_bytes(const void* data) {
  const auto* base = static_cast<const uint8_t*>(data);
  const auto header = read_at<Elf64_Ehdr>(base);
  size_t end = std::max<size_t>(header.e_shoff + size_t{header.e_shnum} * header.e_shentsize,
                                header.e_phoff + size_t{header.e_phnum} * header.e_phentsize);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section =
        read_at<Elf64_Shdr>(base + header.e_shoff + size_t{i} * sizeof(Elf64_Shdr));
    if (section.sh_type == SHT_NOBITS) continue;
    end = std::max<size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

bool read_cubin(const void* data, size_t bytes, std::vector<CubinKernel>* kernels,
                std::string* error) {
  if (Reader(data, bytes).run(kernels)) return true;
  *error = "a cubin's section tables are damaged";
  return false;
}

}  // namespace simgpu
