// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/fatbin.h"

#include <cstring>

#include "tests/simgpu/module/unpack.h"

namespace simgpu {
namespace {

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void* fatbin;
  const void* more;
};

struct Header {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t entries_bytes;
};

struct EntryHeader {
  uint16_t kind;
  uint16_t version;
  uint32_t header_bytes;
  uint64_t padded_bytes;
  uint32_t packed_bytes;
  uint32_t options_offset;
  uint16_t minor;
  uint16_t major;
  uint32_t architecture;
  uint32_t name_offset;
  uint32_t name_bytes;
  uint64_t flags;
  uint64_t reserved;
  uint64_t bytes;
};
static_assert(sizeof(EntryHeader) == 0x40);

constexpr uint16_t kKindPtx = 1;
constexpr uint16_t kKindCubin = 2;
constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;

template <class T>
T read_at(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

}  // namespace

const void* fatbin_of_wrapper(const void* data) {
  if (read_at<uint32_t>(data) != kFatbinWrapperMagic) return nullptr;
  return read_at<Wrapper>(data).fatbin;
}

size_t fatbin_bytes(const void* fatbin) {
  const auto header = read_at<Header>(fatbin);
  return header.header_bytes + header.entries_bytes;
}

bool read_fatbin(const void* fatbin, std::vector<FatbinEntry>* entries, std::string* error) {
  const auto header = read_at<Header>(fatbin);
  if (header.magic != kFatbinMagic || header.header_bytes < sizeof(Header)) {
    *error = "no fat binary";
    return false;
  }
  const auto* at = static_cast<const uint8_t*>(fatbin) + header.header_bytes;
  const auto* const end = at + header.entries_bytes;
  while (at < end) {
    const auto left = static_cast<size_t>(end - at);
    if (left < sizeof(EntryHeader)) {
      *error = "a fat binary's list of entries is cut off";
      return false;
    }
    const auto raw = read_at<EntryHeader>(at);
    if (raw.header_bytes < sizeof(EntryHeader) || raw.header_bytes > left ||
        raw.padded_bytes > left - raw.header_bytes || raw.packed_bytes > raw.padded_bytes) {
      *error = "an entry of a fat binary is larger than the fat binary";
      return false;
    }
    FatbinEntry entry{};
    entry.kind = raw.kind == kKindPtx     ? CodeKind::kPtx
                 : raw.kind == kKindCubin ? CodeKind::kCubin
                                          : CodeKind::kOther;
    entry.packing = (raw.flags & kFlagZstd) != 0  ? Packing::kZstd
                    : (raw.flags & kFlagLz4) != 0 ? Packing::kLz4
                                                  : Packing::kPlain;
    entry.architecture = raw.architecture;
    entry.payload = at + raw.header_bytes;
    const bool packed = entry.packing != Packing::kPlain;
    entry.stored_bytes = packed ? raw.packed_bytes : raw.padded_bytes;
    entry.bytes = packed ? raw.bytes : raw.padded_bytes;
    entries->push_back(entry);
    at += raw.header_bytes + raw.padded_bytes;
  }
  return true;
}

bool unpack(const FatbinEntry& entry, std::string* code, std::string* error) {
  switch (entry.packing) {
    case Packing::kPlain:
      code->assign(reinterpret_cast<const char*>(entry.payload), entry.stored_bytes);
      return true;
    case Packing::kLz4:
      return unpack_lz4(entry.payload, entry.stored_bytes, entry.bytes, code, error);
    case Packing::kZstd:
      return unpack_zstd(entry.payload, entry.stored_bytes, entry.bytes, code, error);
  }
  return false;
}

}  // namespace simgpu
