// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/costs.h"

#include <string_view>
#include <unordered_map>

#include "tests/simgpu/driver/fault_list.h"
#include "tests/simgpu/driver/options.h"

namespace simgpu {

namespace {

constexpr int64_t kOtherNs = 200;
constexpr size_t kPage = size_t{2} << 20;

struct Row {
  std::string_view name;
  CallCost cost;
};

constexpr Row kRows[] = {
#define SIMGPU_COST(name, ns) {name, {ns, false}},
#define SIMGPU_COST_KEPT(name, ns) {name, {ns, true}},
#include "tests/simgpu/exec/costs.def"
#undef SIMGPU_COST
#undef SIMGPU_COST_KEPT
};

bool fits(std::string_view row, std::string_view name) {
  if (row.back() != '*') return row == name;
  return name.starts_with(row.substr(0, row.size() - 1));
}

bool is_mapping(std::string_view name) {
  return name == "cuMemCreate" || name == "cuMemMap" || name == "cuMemSetAccess" ||
         name == "cuMemUnmap" || name == "cuMemRelease";
}

int64_t scaled(int64_t ns) {
  return static_cast<int64_t>(static_cast<double>(ns) * options().slow_maps);
}

CallCost look_up(std::string_view name) {
  for (const Row& row : kRows) {
    if (!fits(row.name, name)) continue;
    return {is_mapping(name) ? scaled(row.cost.ns) : row.cost.ns, row.cost.keeps_driver};
  }
  return {kOtherNs, false};
}

}  // namespace

const CallCost& call_cost(const char* api) {
  static auto* known = new std::unordered_map<const char*, CallCost>;
  const auto it = known->find(api);
  if (it != known->end()) return it->second;
  return (*known)[api] = look_up(base_name(api));
}

int64_t mapping_cost_ns(size_t bytes) {
  const size_t more = bytes > kPage ? (bytes - 1) / kPage : 0;
  return scaled(static_cast<int64_t>(more) * 4700);
}

int64_t pinning_cost_ns(size_t bytes) {
  return static_cast<int64_t>(bytes / 5);
}

int64_t staging_cost_ns(size_t bytes) {
  return static_cast<int64_t>(bytes / 10);
}

}  // namespace simgpu
