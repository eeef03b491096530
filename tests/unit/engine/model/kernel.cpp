// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/model/kernel.h"

#include <cstdio>
#include <string>

#include "tests/unit/engine/model/failure.h"

namespace offload::model {

uint64_t fold(const std::vector<Cell>& cells) {
  uint64_t sum = 0;
  for (const Cell cell : cells) sum = mix(sum, cell);
  return sum;
}

void run_kernel(Memory& memory, const std::vector<KernelArg>& args, uint64_t op, uint64_t value) {
  const auto where = [op](const KernelArg& arg) {
    return "op " + std::to_string(op) + ", tensor " + std::to_string(arg.tensor);
  };
  std::vector<Memory::Run> runs;
  for (const KernelArg& arg : args) {
    if (arg.mode == Mode::kNothing) continue;
    if (!memory.resolve(arg.address, arg.bytes, &runs)) fail(Failure::Kind::kFault, where(arg));
    if (!reads(arg.mode)) continue;
    uint64_t sum = 0;
    uint64_t index = 0;
    for (const Memory::Run& run : runs) {
      for (uint64_t i = 0; i < run.count; ++i, ++index) {
        sum = mix(sum, run.cells[i]);
        if (!arg.cells.empty() && run.cells[i] != arg.cells[index]) {
          std::printf("cell %zu of tensor %d differs\n", static_cast<size_t>(index), arg.tensor);
        }
      }
    }
    if (sum != arg.expected) fail(Failure::Kind::kWrongContent, where(arg));
  }
  for (const KernelArg& arg : args) {
    if (!writes(arg.mode)) continue;
    memory.resolve(arg.address, arg.bytes, &runs);
    uint64_t cell = 0;
    for (const Memory::Run& run : runs) {
      for (uint64_t i = 0; i < run.count; ++i) {
        run.cells[i] = mix(mix(value, static_cast<uint64_t>(arg.tensor)), cell++);
      }
    }
  }
}

}  // namespace offload::model
