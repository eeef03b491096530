// SPDX-License-Identifier: Apache-2.0
#pragma once
// The container in which nvcc puts the code of a program: a header and a list of entries, each PTX
// text or an ELF cubin for one architecture, stored plainly or compressed. Layout as found in the
// output of nvcc 11 to 13.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace simgpu {

enum class CodeKind { kPtx, kCubin, kOther };
enum class Packing { kPlain, kLz4, kZstd };

struct FatbinEntry {
  CodeKind kind;
  Packing packing;
  unsigned architecture;   // 80 for sm_80 and compute_80
  const uint8_t* payload;  // points into the container
  size_t stored_bytes;
  size_t bytes;  // once unpacked
};

inline constexpr uint32_t kFatbinWrapperMagic = 0x466243b1;
inline constexpr uint32_t kFatbinMagic = 0xba55ed50;

// The container behind a wrapper, or null if `data` is no wrapper.
const void* fatbin_of_wrapper(const void* data);

// Bytes of the whole container, header included.
size_t fatbin_bytes(const void* fatbin);

// False and `error` set if the list is broken.
bool read_fatbin(const void* fatbin, std::vector<FatbinEntry>* entries, std::string* error);

// The code of one entry. False and `error` set if it is damaged or its packing is not understood
// here.
bool unpack(const FatbinEntry& entry, std::string* code, std::string* error);

}  // namespace simgpu
