// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/mix.h"

#include <algorithm>
#include <cstring>

namespace simgpu {
namespace {

constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ULL;
constexpr size_t kWord = sizeof(uint64_t);

// PyTorch's scan of the gradients for infinities. Its result is a float beside the gradients; made
// up, it would have the program skip its optimizer steps.
constexpr const char* kChecksGradients = "non_finite_check_and_unscale";
constexpr size_t kFlagBytes = sizeof(float);

struct Range {
  uintptr_t address;  // as the program knows it
  size_t bytes;
};

uint64_t stir(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kMultiplier;
  return hash ^ (hash >> 29);
}

// Calls visit(range) for each name, in the order of the arguments, those named twice again.
// Allocates nothing.
template <class Visit>
void each_name(const std::vector<KernelParameter>& parameters, const SimgpuLaunch& launch,
               void* const* arguments, AccessSink& sink, Visit visit) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    // Words are aligned within the parameter buffer, in which a struct begins at
    // parameters[i].offset.
    const size_t skew = (kWord - parameters[i].offset % kWord) % kWord;
    for (size_t at = skew; at + kWord <= parameters[i].size; at += kWord) {
      uintptr_t address = 0;
      std::memcpy(&address, static_cast<const char*>(arguments[i]) + at, kWord);
      if (address < launch.window_begin || address >= launch.window_end) continue;
      const size_t extent = sink.extent(address);
      if (extent > 0) visit(Range{address, extent});
    }
  }
}

uint64_t hash_range(const SimgpuLaunch& launch, const Range& range, uint64_t hash) {
  const auto* at = static_cast<const unsigned char*>(
      simgpu_pointer(&launch, reinterpret_cast<const void*>(range.address)));
  size_t left = range.bytes;
  // Four lanes, so that a large buffer is read at memory speed.
  uint64_t lane[4] = {hash, hash + 1, hash + 2, hash + 3};
  for (; left >= sizeof(lane); left -= sizeof(lane), at += sizeof(lane)) {
    uint64_t word[4];
    std::memcpy(word, at, sizeof(word));
    for (int i = 0; i < 4; ++i) lane[i] = stir(lane[i], word[i]);
  }
  for (; left > 0; --left, ++at) lane[0] = stir(lane[0], *at);
  for (const uint64_t value : lane) hash = stir(hash, value);
  return hash;
}

void clear_range(const SimgpuLaunch& launch, const Range& range) {
  std::memset(simgpu_pointer(&launch, reinterpret_cast<void*>(range.address)), 0, range.bytes);
}

void fill_range(const SimgpuLaunch& launch, const Range& range, uint64_t hash) {
  auto* to = static_cast<char*>(simgpu_pointer(&launch, reinterpret_cast<void*>(range.address)));
  size_t left = range.bytes;
  const auto write = [&](size_t bytes) {
    hash += kMultiplier;
    const uint64_t word = ((hash ^ (hash >> 32)) * kMultiplier >> 32) & 0x7f;
    std::memcpy(to, &word, bytes);  // of a part of a word, its low bytes
    to += bytes;
    left -= bytes;
  };
  write(std::min(left, (kWord - range.address % kWord) % kWord));
  while (left >= kWord) write(kWord);
  write(left);
}

}  // namespace

void mix(const std::string& name, const std::vector<KernelParameter>& parameters,
         const SimgpuLaunch& launch, void* const* arguments, AccessSink& sink) {
  uint64_t hash = kMultiplier;
  for (const char letter : name) hash = stir(hash, static_cast<unsigned char>(letter));
  for (const unsigned size : launch.grid) hash = stir(hash, size);
  for (const unsigned size : launch.block) hash = stir(hash, size);
  each_name(parameters, launch, arguments, sink,
            [&](const Range& range) { hash = hash_range(launch, range, hash); });
  const bool keeps_flags_down = name.find(kChecksGradients) != std::string::npos;
  uint64_t index = 0;
  each_name(parameters, launch, arguments, sink, [&](const Range& range) {
    ++index;
    if (keeps_flags_down && range.bytes <= kFlagBytes) {
      clear_range(launch, range);
    } else {
      fill_range(launch, range, stir(hash, index));
    }
  });
}

}  // namespace simgpu
