// SPDX-License-Identifier: Apache-2.0
#pragma once
// Between a 64-bit slot and the C++ type that a PTX type names.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "tests/simgpu/module/ptx/program.h"

namespace simgpu::ptx {

template <class T>
T from_slot(uint64_t slot) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(slot));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(slot);
  } else {
    return static_cast<T>(slot);
  }
}

template <class T>
uint64_t to_slot(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(value);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  } else {
    return static_cast<uint64_t>(value);
  }
}

// Calls visit(T{}) with the type's own T; untyped bits count as unsigned.
template <class Visit>
auto with_type(Type type, Visit visit) {
  switch (type) {
    case Type::kPred:
    case Type::kB8:
    case Type::kU8:
      return visit(uint8_t{});
    case Type::kB16:
    case Type::kU16:
      return visit(uint16_t{});
    case Type::kB32:
    case Type::kU32:
      return visit(uint32_t{});
    case Type::kS8:
      return visit(int8_t{});
    case Type::kS16:
      return visit(int16_t{});
    case Type::kS32:
      return visit(int32_t{});
    case Type::kS64:
      return visit(int64_t{});
    case Type::kF32:
      return visit(float{});
    case Type::kF64:
      return visit(double{});
    default:
      return visit(uint64_t{});
  }
}

}  // namespace simgpu::ptx
