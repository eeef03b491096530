// SPDX-License-Identifier: Apache-2.0
#pragma once
// Faults on request:
// SIMGPU_FAULTS="cuMemCreate:3=2,cuMemMap:1-20=OUT_OF_MEMORY,cuMemcpyAsync:5+=700" makes the third
// cuMemCreate, the first twenty cuMemMap, and every cuMemcpyAsync from the fifth on fail with that
// code, without any other effect. A name stands for all its versions and its per-thread twin, or
// exactly for one if it has such an ending itself. Codes that lose a context (700 and its like)
// lose it. Driver's lock.

#include <cuda.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simgpu {

struct FaultRule {
  std::string name;
  uint64_t first = 0;  // counted from 1
  uint64_t last = 0;
  CUresult code = CUDA_SUCCESS;
  uint64_t calls = 0;  // so far
};

// False: not of that form; *bad is the piece that is wrong.
bool parse_faults(const std::string& text, std::vector<FaultRule>* rules, std::string* bad);
// Without the version and the per-thread ending.
std::string_view base_name(std::string_view symbol);
// Counts the call. CUDA_SUCCESS: it goes on.
CUresult injected_fault(const char* api);
// Later calls of a context that returned it fail likewise.
bool is_sticky(CUresult code);

}  // namespace simgpu
