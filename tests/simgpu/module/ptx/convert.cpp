// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/convert.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/simgpu/module/ptx/value.h"

namespace simgpu::ptx {
namespace {

template <class T>
T round(Rounding rounding, T value) {
  switch (rounding) {
    case Rounding::kNearest:
      return std::nearbyint(value);
    case Rounding::kZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    case Rounding::kNone:
      break;
  }
  return value;
}

template <class To, class From>
To convert_value(const Instruction& instruction, From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Float to integer clamps to the range; NaN gives zero.
    if (std::isnan(value)) return 0;
    const From rounded = round(instruction.rounding, value);
    constexpr auto kLimit = static_cast<From>(std::numeric_limits<To>::max());
    if (rounded >= kLimit) return std::numeric_limits<To>::max();
    if (rounded <= static_cast<From>(std::numeric_limits<To>::min())) {
      return std::numeric_limits<To>::min();
    }
    return static_cast<To>(rounded);
  } else if constexpr (std::is_floating_point_v<To>) {
    To result = static_cast<To>(value);
    if constexpr (std::is_floating_point_v<From>) result = round(instruction.rounding, result);
    if (instruction.saturate) result = result > 0 ? std::min(result, To{1}) : To{0};
    return result;
  } else {
    if (!instruction.saturate) return static_cast<To>(value);
    if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (std::cmp_greater(value, std::numeric_limits<To>::max())) {
      return std::numeric_limits<To>::max();
    }
    return static_cast<To>(value);
  }
}

}  // namespace

uint64_t convert(const Instruction& instruction, uint64_t source) {
  return with_type(instruction.source_type, [&](auto from) {
    return with_type(instruction.type, [&](auto to) {
      return to_slot(convert_value<decltype(to)>(instruction, from_slot<decltype(from)>(source)));
    });
  });
}

}  // namespace simgpu::ptx
