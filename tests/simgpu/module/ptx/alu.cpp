// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/alu.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "tests/simgpu/module/ptx/convert.h"
#include "tests/simgpu/module/ptx/value.h"

namespace simgpu::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Twice as wide, for products.
template <class T>
struct Wider;
template <>
struct Wider<uint8_t> {
  using type = uint16_t;
};
template <>
struct Wider<int8_t> {
  using type = int16_t;
};
template <>
struct Wider<uint16_t> {
  using type = uint32_t;
};
template <>
struct Wider<int16_t> {
  using type = int32_t;
};
template <>
struct Wider<uint32_t> {
  using type = uint64_t;
};
template <>
struct Wider<int32_t> {
  using type = int64_t;
};
__extension__ using Wide128 = __int128;
__extension__ using UnsignedWide128 = unsigned __int128;
template <>
struct Wider<uint64_t> {
  using type = UnsignedWide128;
};
template <>
struct Wider<int64_t> {
  using type = Wide128;
};

template <class T>
uint64_t divide(T a, T b, bool remainder) {
  // PTX leaves division by zero undefined; what the hardware gives is all ones.
  if (b == 0) return remainder ? to_slot(a) : ~uint64_t{0};
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return remainder ? 0 : to_slot(static_cast<T>(0 - static_cast<Unsigned<T>>(a)));
  }
  return to_slot(static_cast<T>(remainder ? a % b : a / b));
}

template <class T>
uint64_t shift_right(T a, uint64_t count) {
  constexpr uint64_t kBits = sizeof(T) * 8;
  if (count < kBits) return to_slot(static_cast<T>(a >> count));
  return std::is_signed_v<T> && a < 0 ? to_slot(static_cast<T>(-1)) : 0;
}

// product of a and b (+ c) for mul and mad
template <class T>
uint64_t product(const Instruction& instruction, const Operands& operands) {
  using W = typename Wider<T>::type;
  const auto wide = static_cast<W>(static_cast<W>(from_slot<T>(operands.a)) *
                                   static_cast<W>(from_slot<T>(operands.b)));
  const bool adds = instruction.op == Op::kMultiplyAdd;
  if (instruction.part == Part::kWide) {
    const auto low = static_cast<uint64_t>(wide) + (adds ? operands.c : 0);
    return extend(sizeof(T) == 2 ? (std::is_signed_v<T> ? Type::kS32 : Type::kU32) : Type::kB64,
                  low);
  }
  const auto kept = instruction.part == Part::kHigh ? static_cast<T>(wide >> (sizeof(T) * 8))
                                                    : static_cast<T>(wide);
  const auto sum = static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(kept) +
                                            (adds ? from_slot<Unsigned<T>>(operands.c) : 0U));
  return to_slot(static_cast<T>(sum));
}

template <class T>
uint64_t extract_field(T a, uint64_t position, uint64_t length) {
  constexpr unsigned kBits = sizeof(T) * 8;
  position &= 0xff;
  length = std::min<uint64_t>(length & 0xff, kBits);
  if (length == 0) return 0;
  const auto bits = static_cast<Unsigned<T>>(a);
  // Beyond the top a signed field repeats the sign bit.
  const bool sign = std::is_signed_v<T> &&
                    (bits >> std::min<uint64_t>(position + length - 1, kBits - 1) & 1U) != 0;
  Unsigned<T> field = 0;
  if (position < kBits) field = static_cast<Unsigned<T>>(bits >> position);
  const uint64_t have = position < kBits ? std::min<uint64_t>(length, kBits - position) : 0;
  if (have < kBits) {
    const auto mask = static_cast<Unsigned<T>>((Unsigned<T>{1} << have) - 1);
    field = static_cast<Unsigned<T>>(field & mask);
    if (sign) field = static_cast<Unsigned<T>>(field | static_cast<Unsigned<T>>(~mask));
  }
  return to_slot(static_cast<T>(field));
}

template <class T>
uint64_t insert_field(T field, T into, uint64_t position, uint64_t length) {
  constexpr uint64_t kBits = sizeof(T) * 8;
  position &= 0xff;
  length &= 0xff;
  if (length == 0 || position >= kBits) return into;
  length = std::min(length, kBits - position);
  const T mask = static_cast<T>((length == kBits ? ~T{0} : (T{1} << length) - 1) << position);
  return static_cast<T>((into & ~mask) | (static_cast<T>(field << position) & mask));
}

uint64_t permute(uint64_t a, uint64_t b, uint64_t selector) {
  const uint64_t bytes = (a & 0xffffffffU) | b << 32;
  uint64_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint64_t choice = selector >> (4 * i) & 0xf;
    uint64_t byte = bytes >> (8 * (choice & 7)) & 0xff;
    if ((choice & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

template <class T>
uint64_t reverse(T bits) {
  T result = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; ++i) {
    result = static_cast<T>(result << 1 | (bits >> i & 1U));
  }
  return result;
}

template <class T>
uint64_t integer_alu(const Instruction& instruction, const Operands& operands) {
  using U = Unsigned<T>;
  const T a = from_slot<T>(operands.a);
  const T b = from_slot<T>(operands.b);
  const U ua = static_cast<U>(a);
  const U ub = static_cast<U>(b);
  const auto result = [](U bits) { return to_slot(static_cast<T>(bits)); };
  switch (instruction.op) {
    case Op::kAdd:
      return result(static_cast<U>(ua + ub));
    case Op::kSubtract:
      return result(static_cast<U>(ua - ub));
    case Op::kMultiply:
    case Op::kMultiplyAdd:
      return product<T>(instruction, operands);
    case Op::kDivide:
      return divide(a, b, false);
    case Op::kRemainder:
      return divide(a, b, true);
    case Op::kAbsolute:
      return result(a < 0 ? static_cast<U>(0 - ua) : ua);
    case Op::kNegate:
      return result(static_cast<U>(0 - ua));
    case Op::kMinimum:
      return to_slot(std::min(a, b));
    case Op::kMaximum:
      return to_slot(std::max(a, b));
    case Op::kAnd:
      return result(static_cast<U>(ua & ub));
    case Op::kOr:
      return result(static_cast<U>(ua | ub));
    case Op::kXor:
      return result(static_cast<U>(ua ^ ub));
    case Op::kNot:
      return result(static_cast<U>(~ua));
    case Op::kLogicalNot:
      return a == 0 ? 1 : 0;
    case Op::kShiftLeft: {
      const auto count = static_cast<uint32_t>(operands.b);
      return count < sizeof(T) * 8 ? result(static_cast<U>(ua << count)) : 0;
    }
    case Op::kShiftRight:
      return shift_right(a, static_cast<uint32_t>(operands.b));
    case Op::kPopulation:
      return static_cast<uint64_t>(std::popcount(ua));
    case Op::kLeadingZeros:
      return static_cast<uint64_t>(std::countl_zero(ua));
    case Op::kReverse:
      return reverse(ua);
    case Op::kExtractField:
      return extract_field(a, operands.b, operands.c);
    case Op::kInsertField:
      return insert_field(ua, ub, operands.c, operands.d);
    case Op::kPermute:
      return permute(operands.a, operands.b, operands.c);
    default:
      return 0;
  }
}

template <class T>
uint64_t float_alu(const Instruction& instruction, const Operands& operands) {
  const T a = from_slot<T>(operands.a);
  const T b = from_slot<T>(operands.b);
  T result = 0;
  switch (instruction.op) {
    case Op::kAdd:
      result = a + b;
      break;
    case Op::kSubtract:
      result = a - b;
      break;
    case Op::kMultiply:
      result = a * b;
      break;
    case Op::kMultiplyAdd:
      result = std::fma(a, b, from_slot<T>(operands.c));
      break;
    case Op::kDivide:
      result = a / b;
      break;
    case Op::kAbsolute:
      result = std::fabs(a);
      break;
    case Op::kNegate:
      result = -a;
      break;
    case Op::kMinimum:
      result = std::fmin(a, b);
      break;
    case Op::kMaximum:
      result = std::fmax(a, b);
      break;
    case Op::kSquareRoot:
      result = std::sqrt(a);
      break;
    case Op::kReciprocalRoot:
      result = 1 / std::sqrt(a);
      break;
    case Op::kReciprocal:
      result = 1 / a;
      break;
    case Op::kExponential:
      result = std::exp2(a);
      break;
    case Op::kLogarithm:
      result = std::log2(a);
      break;
    case Op::kSine:
      result = std::sin(a);
      break;
    case Op::kCosine:
      result = std::cos(a);
      break;
    case Op::kTangent:
      result = std::tanh(a);
      break;
    case Op::kCopySign:
      result = std::copysign(b, a);
      break;
    default:
      break;
  }
  if (instruction.saturate) result = result > 0 ? std::min(result, T{1}) : T{0};
  return to_slot(result);
}

template <class T>
bool compare_as(Comparison comparison, T a, T b) {
  bool ordered = true;
  if constexpr (std::is_floating_point_v<T>) ordered = !std::isnan(a) && !std::isnan(b);
  switch (comparison) {
    case Comparison::kEqual:
      return ordered && a == b;
    case Comparison::kNotEqual:
      return ordered && a != b;
    case Comparison::kLess:
      return ordered && a < b;
    case Comparison::kLessEqual:
      return ordered && a <= b;
    case Comparison::kGreater:
      return ordered && a > b;
    case Comparison::kGreaterEqual:
      return ordered && a >= b;
    case Comparison::kEqualU:
      return !ordered || a == b;
    case Comparison::kNotEqualU:
      return !ordered || a != b;
    case Comparison::kLessU:
      return !ordered || a < b;
    case Comparison::kLessEqualU:
      return !ordered || a <= b;
    case Comparison::kGreaterU:
      return !ordered || a > b;
    case Comparison::kGreaterEqualU:
      return !ordered || a >= b;
    case Comparison::kNumbers:
      return ordered;
    case Comparison::kNotNumbers:
      return !ordered;
  }
  return false;
}

template <class T>
uint64_t atomic_as(AtomicOp op, T old, T value, T replacement) {
  switch (op) {
    case AtomicOp::kAdd:
      if constexpr (std::is_integral_v<T>) {
        return to_slot(
            static_cast<T>(static_cast<Unsigned<T>>(old) + static_cast<Unsigned<T>>(value)));
      } else {
        return to_slot(static_cast<T>(old + value));
      }
    case AtomicOp::kMinimum:
      return to_slot(std::min(old, value));
    case AtomicOp::kMaximum:
      return to_slot(std::max(old, value));
    case AtomicOp::kExchange:
      return to_slot(value);
    case AtomicOp::kCompareAndSwap:
      return to_slot(old == value ? replacement : old);
    case AtomicOp::kIncrement:
      return to_slot(old >= value ? T{0} : static_cast<T>(old + 1));
    case AtomicOp::kDecrement:
      return to_slot(old == 0 || old > value ? value : static_cast<T>(old - 1));
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case AtomicOp::kAnd:
        return to_slot(static_cast<T>(old & value));
      case AtomicOp::kOr:
        return to_slot(static_cast<T>(old | value));
      case AtomicOp::kXor:
        return to_slot(static_cast<T>(old ^ value));
      default:
        break;
    }
  }
  return to_slot(old);
}

}  // namespace

bool alu_supports(const Instruction& instruction) {
  const Type type = instruction.type;
  switch (instruction.op) {
    case Op::kSquareRoot:
    case Op::kReciprocalRoot:
    case Op::kReciprocal:
    case Op::kExponential:
    case Op::kLogarithm:
    case Op::kSine:
    case Op::kCosine:
    case Op::kTangent:
    case Op::kCopySign:
      return is_float(type);
    case Op::kRemainder:
    case Op::kLogicalNot:
    case Op::kShiftLeft:
    case Op::kShiftRight:
    case Op::kPopulation:
    case Op::kLeadingZeros:
    case Op::kReverse:
    case Op::kExtractField:
    case Op::kInsertField:
    case Op::kPermute:
      return !is_float(type) && type != Type::kPred;
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kDivide:
    case Op::kAbsolute:
    case Op::kNegate:
    case Op::kMinimum:
    case Op::kMaximum:
    case Op::kMultiplyAdd:
      return type != Type::kPred;
    case Op::kMultiply:
      return type != Type::kPred && !(instruction.part == Part::kWide && bytes_of(type) == 8);
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kNot:
      return !is_float(type);
    case Op::kConvert:
      return type != Type::kPred && instruction.source_type != Type::kPred;
    default:
      return true;
  }
}

uint64_t alu(const Instruction& instruction, const Operands& operands) {
  switch (instruction.op) {
    case Op::kMove:
      return extend(instruction.type, operands.a);
    case Op::kConvert:
      return convert(instruction, operands.a);
    case Op::kSelect:
      return extend(instruction.type, (operands.c & 1) != 0 ? operands.a : operands.b);
    default:
      break;
  }
  if (instruction.type == Type::kPred) {
    Instruction bytes = instruction;
    bytes.type = Type::kB8;
    return alu(bytes, operands) & 1;
  }
  return with_type(instruction.type, [&](auto zero) -> uint64_t {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      return float_alu<T>(instruction, operands);
    } else {
      return integer_alu<T>(instruction, operands);
    }
  });
}

bool compare(const Instruction& instruction, uint64_t a, uint64_t b) {
  return with_type(instruction.type, [&](auto zero) {
    using T = decltype(zero);
    return compare_as<T>(instruction.comparison, from_slot<T>(a), from_slot<T>(b));
  });
}

uint64_t atomic_result(const Instruction& instruction, uint64_t old, uint64_t value,
                       uint64_t replacement) {
  return with_type(instruction.type, [&](auto zero) {
    using T = decltype(zero);
    return atomic_as<T>(instruction.atomic, from_slot<T>(old), from_slot<T>(value),
                        from_slot<T>(replacement));
  });
}

uint64_t extend(Type type, uint64_t bits) {
  if (type == Type::kPred) return bits & 1;
  return with_type(type, [&](auto zero) { return to_slot(from_slot<decltype(zero)>(bits)); });
}

}  // namespace simgpu::ptx
