// SPDX-License-Identifier: Apache-2.0
#pragma once
// A PTX kernel as the interpreter runs it. Registers, constants and special registers share one
// file of 64-bit slots; every instruction truncates what it reads to its own type, so one slot
// holds any type. Source of the semantics: NVIDIA's "PTX ISA",
// https://docs.nvidia.com/cuda/parallel-thread-execution/

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/simgpu/module/module.h"

namespace simgpu::ptx {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF32,
  kF64
};

inline constexpr size_t bytes_of(Type type) {
  switch (type) {
    case Type::kNone:
      return 0;
    case Type::kPred:
    case Type::kB8:
    case Type::kU8:
    case Type::kS8:
      return 1;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
      return 2;
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kF32:
      return 4;
    default:
      return 8;
  }
}
inline constexpr bool is_float(Type type) {
  return type == Type::kF32 || type == Type::kF64;
}
inline constexpr bool is_signed(Type type) {
  return type >= Type::kS8 && type <= Type::kS64;
}

enum class Op : uint8_t {
  kLoad,
  kStore,
  kMove,
  kPack,
  kUnpack,
  kConvertAddress,
  kConvert,
  kAdd,
  kSubtract,
  kMultiply,
  kMultiplyAdd,
  kDivide,
  kRemainder,
  kAbsolute,
  kNegate,
  kMinimum,
  kMaximum,
  kAnd,
  kOr,
  kXor,
  kNot,
  kLogicalNot,
  kShiftLeft,
  kShiftRight,
  kPopulation,
  kLeadingZeros,
  kReverse,
  kExtractField,
  kInsertField,
  kPermute,
  kSquareRoot,
  kReciprocalRoot,
  kReciprocal,
  kExponential,
  kLogarithm,
  kSine,
  kCosine,
  kTangent,
  kCopySign,
  kCompare,
  kSelect,
  kBranch,
  kExit,
  kBarrier,
  kFence,
  kAtomic,
  kTrap
};

// Where an address points to.
enum class Space : uint8_t { kGeneric, kGlobal, kParameter, kShared, kLocal };

// Which part of a product is kept.
enum class Part : uint8_t { kLow, kHigh, kWide };

enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqualU,
  kNotEqualU,
  kLessU,
  kLessEqualU,
  kGreaterU,
  kGreaterEqualU,  // true for NaN
  kNumbers,
  kNotNumbers
};

enum class Combine : uint8_t { kNone, kAnd, kOr, kXor };

enum class AtomicOp : uint8_t {
  kAdd,
  kMinimum,
  kMaximum,
  kAnd,
  kOr,
  kXor,
  kExchange,
  kCompareAndSwap,
  kIncrement,
  kDecrement
};

enum class Rounding : uint8_t { kNone, kNearest, kZero, kDown, kUp };

inline constexpr int32_t kNoSlot = -1;

struct Instruction {
  Op op{};
  Type type = Type::kNone;
  Type source_type = Type::kNone;  // cvt: what is read
  Space space = Space::kGeneric;
  Part part = Part::kLow;
  Comparison comparison{};
  Combine combine = Combine::kNone;
  AtomicOp atomic{};
  Rounding rounding = Rounding::kNone;
  bool saturate = false;
  bool to_space = false;  // cvta.to: from generic into `space`
  bool guard_negated = false;
  bool combine_negated = false;
  uint8_t lanes = 1;                         // vector loads and stores
  int32_t guard = kNoSlot;                   // predicate
  int32_t destination_complement = kNoSlot;  // setp p|q
  std::array<int32_t, 4> destination{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  std::array<int32_t, 4> source{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  int32_t base = kNoSlot;  // address: register, or none for an absolute one
  int64_t offset = 0;
  uint32_t target = 0;  // branch
};

// Special registers in the order of their slots at the beginning of the file.
enum Special : int32_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kDynamicSharedSize,
  kSpecialCount
};

struct Constant {
  int32_t slot;
  uint64_t value;
};

struct Program {
  std::string name;
  std::vector<KernelParameter> parameters;
  size_t parameter_bytes = 0;
  size_t shared_bytes = 0;  // static part; dynamic shared memory is at kDynamicShared
  size_t local_bytes = 0;
  int32_t slots = kSpecialCount;
  std::vector<Constant> constants;
  std::vector<Instruction> code;  // ends with kExit
  bool has_barrier = false;
  std::string
      unsupported;  // not empty: what the interpreter cannot do, then `code` is not to be run
};

// In the generic address space, shared and local memory lie where no device or host pointer does.
inline constexpr uint64_t kSharedTag = 0xFFFF000100000000ULL;
inline constexpr uint64_t kLocalTag = 0xFFFF000200000000ULL;
inline constexpr uint64_t kDynamicShared = 1 << 20;  // offset within shared memory
inline constexpr uint64_t kTagMask = 0xFFFFFFFF00000000ULL;

}  // namespace simgpu::ptx
