// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two compressions found in fat binaries. Zstandard comes from the system's libzstd.so.1,
// opened when it is first needed, so that nothing else depends on it. Both return false and set
// `error` on damaged input.

#include <cstddef>
#include <cstdint>
#include <string>

namespace simgpu {

bool unpack_zstd(const uint8_t* data, size_t stored_bytes, size_t bytes, std::string* out,
                 std::string* error);

// One raw block, as "LZ4 Block Format Description" (lz4_Block_format.md of LZ4) says
bool unpack_lz4(const uint8_t* data, size_t stored_bytes, size_t bytes, std::string* out,
                std::string* error);

}  // namespace simgpu
