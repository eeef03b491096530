// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/name_log.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/statistics.h"
#include "tests/simgpu/memory/window.h"

namespace simgpu {
namespace {

void stir(uint64_t value) {
  uint64_t& hash = statistics().names_hash;
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  hash ^= hash >> 29;
}

unsigned long long number(uint64_t value) {
  return value;  // as printf wants it
}

uint64_t bytes_of(const std::vector<Name>& names) {
  std::set<const Allotment*> counted;
  uint64_t bytes = 0;
  for (const Name& name : names) {
    if (counted.insert(name.allotment.get()).second) bytes += name.allotment->bytes;
  }
  return bytes;
}

}  // namespace

void each_address(const Kernel& kernel, const std::vector<std::byte>& buffer,
                  const std::function<void(uintptr_t)>& visit) {
  for (const KernelParameter& parameter : kernel.parameters()) {
    for (size_t at = (parameter.offset + 7) & ~size_t{7};
         at + 8 <= parameter.offset + parameter.size; at += 8) {
      uintptr_t address = 0;
      std::memcpy(&address, buffer.data() + at, sizeof address);
      if (window().contains(address)) visit(address);
    }
  }
}

Names names_in(const Kernel& kernel, const std::vector<std::byte>& buffer) {
  Names names;
  names.told = allotments().told();
  if (!names.told) return names;
  each_address(kernel, buffer, [&](uintptr_t address) {
    if (AllotmentRef allotment = allotments().find(address)) {
      names.list.push_back({address, std::move(allotment)});
    } else if (allotments().is_dead(address)) {
      ++names.dead;  // others are no addresses: a pair of integers may look like one
    }
  });
  return names;
}

NameLog::NameLog() {
  std::string path = options().names;
  if (path.empty()) return;
  if (const size_t at = path.find("%p"); at != std::string::npos) {
    path.replace(at, 2, std::to_string(getpid()));
  }
  file_ = std::fopen(path.c_str(), "w");
}

void NameLog::launch(uint64_t stream, const std::string& kernel, const SimgpuLaunch& shape,
                     const Names& named) {
  const std::vector<Name>& names = named.list;
  if (names.empty()) return;
  statistics().names += names.size();
  statistics().dead_names += named.dead;
  statistics().largest_launch_bytes = std::max(statistics().largest_launch_bytes, bytes_of(names));
  for (const char letter : kernel) stir(static_cast<unsigned char>(letter));
  for (const Name& name : names) {
    stir(name.allotment->number);
    stir(name.offset());
  }
  if (file_ == nullptr) return;
  const auto& [x, y, z] = shape.grid;
  const auto& [tx, ty, tz] = shape.block;
  std::fprintf(file_, "launch @%llu %u,%u,%u/%u,%u,%u %s", number(stream), x, y, z, tx, ty, tz,
               kernel.c_str());
  for (const Name& name : names) {
    std::fprintf(file_, " %llu+%llu", number(name.allotment->number), number(name.offset()));
  }
  if (named.dead > 0) std::fprintf(file_, " dead:%zu", named.dead);
  std::fprintf(file_, "\n");
}

void NameLog::copy(uint64_t stream, size_t bytes, const Allotment* to, const Allotment* from) {
  if (file_ == nullptr || (to == nullptr && from == nullptr)) return;
  // 0 is the host, or memory that the program did not get from its runtime.
  std::fprintf(file_, "copy @%llu %zu %llu %llu\n", number(stream), bytes,
               number(to != nullptr ? to->number : 0), number(from != nullptr ? from->number : 0));
}

void NameLog::fill(uint64_t stream, size_t bytes, const Allotment* what) {
  if (file_ == nullptr || what == nullptr) return;
  std::fprintf(file_, "fill @%llu %zu %llu\n", number(stream), bytes, number(what->number));
}

void NameLog::born(const Allotment& allotment) {
  if (file_ == nullptr) return;
  std::fprintf(file_, "alloc %llu %zu\n", number(allotment.number), allotment.bytes);
}

void NameLog::freed(const Allotment& allotment) {
  if (file_ == nullptr) return;
  std::fprintf(file_, "free %llu\n", number(allotment.number));
}

NameLog& name_log() {
  static auto* const instance = new NameLog;
  return *instance;
}

}  // namespace simgpu
