// SPDX-License-Identifier: Apache-2.0
// Tensor maps: what a kernel gets to copy tiles of a tensor with. The arguments are checked as
// documented (cuda.h, cuTensorMapEncodeTiled); the 128 opaque bytes hold the address and the shape.
// No kernel here can use them.
#include <cstring>

#include "tests/simgpu/driver/call.h"

using simgpu::Call;
using simgpu::Needs;

namespace {

struct Encoded {
  uint64_t kind;
  uint64_t address;
  uint32_t type;
  uint32_t rank;
  uint64_t dimensions[5];
  uint64_t strides[4];
  uint8_t rest[32];
};
static_assert(sizeof(Encoded) == sizeof(CUtensorMap));

constexpr uint64_t kTiled = 0x54414d52534e4554;

size_t element_bytes(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

bool shape_is_valid(uint32_t rank, const cuuint64_t* dimensions, const cuuint64_t* strides,
                    const cuuint32_t* element_strides, CUtensorMapInterleave interleave) {
  if (rank == 0 || rank > 5 || dimensions == nullptr || element_strides == nullptr) return false;
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE && rank < 3) return false;
  if (rank > 1 && strides == nullptr) return false;
  const cuuint64_t unit = interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dimensions[i] == 0 || dimensions[i] > (uint64_t{1} << 32)) return false;
    if (element_strides[i] == 0 || element_strides[i] > 8) return false;
    if (i + 1 < rank && (strides[i] % unit != 0 || strides[i] >= (uint64_t{1} << 40))) return false;
  }
  return true;
}

bool place_is_valid(const CUtensorMap* map, const void* address, CUtensorMapInterleave interleave) {
  const uintptr_t unit = interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
  return map != nullptr && reinterpret_cast<uintptr_t>(map) % 64 == 0 &&
         reinterpret_cast<uintptr_t>(address) % unit == 0;
}

void encode(CUtensorMap* map, CUtensorMapDataType type, uint32_t rank, const void* address,
            const cuuint64_t* dimensions, const cuuint64_t* strides) {
  Encoded encoded = {};
  encoded.kind = kTiled;
  encoded.address = reinterpret_cast<uintptr_t>(address);
  encoded.type = type;
  encoded.rank = rank;
  std::memcpy(encoded.dimensions, dimensions, rank * sizeof *dimensions);
  if (rank > 1) std::memcpy(encoded.strides, strides, (rank - 1) * sizeof *strides);
  std::memcpy(map, &encoded, sizeof encoded);
}

}  // namespace

SIMGPU_API cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                  void* address, const cuuint64_t* dimensions,
                                  const cuuint64_t* strides, const cuuint32_t* box,
                                  const cuuint32_t* element_strides,
                                  CUtensorMapInterleave interleave, CUtensorMapSwizzle,
                                  CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  const size_t element = element_bytes(type);
  if (element == 0 || box == nullptr || !place_is_valid(map, address, interleave) ||
      !shape_is_valid(rank, dimensions, strides, element_strides, interleave)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (uint32_t i = 0; i < rank; ++i) {
    if (box[i] == 0 || box[i] > 256) return CUDA_ERROR_INVALID_VALUE;
  }
  if (interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && box[0] * element % 16 != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  encode(map, type, rank, address, dimensions, strides);
  return CUDA_SUCCESS;
}

SIMGPU_API cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                   void* address, const cuuint64_t* dimensions,
                                   const cuuint64_t* strides, const int* lower, const int* upper,
                                   cuuint32_t channels, cuuint32_t pixels,
                                   const cuuint32_t* element_strides,
                                   CUtensorMapInterleave interleave, CUtensorMapSwizzle,
                                   CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (element_bytes(type) == 0 || rank < 3 || lower == nullptr || upper == nullptr ||
      channels > 256 || pixels > 1024 || !place_is_valid(map, address, interleave) ||
      !shape_is_valid(rank, dimensions, strides, element_strides, interleave)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  encode(map, type, rank, address, dimensions, strides);
  return CUDA_SUCCESS;
}

SIMGPU_API cuTensorMapEncodeIm2colWide(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                       void* address, const cuuint64_t* dimensions,
                                       const cuuint64_t* strides, int lower, int upper,
                                       cuuint32_t channels, cuuint32_t pixels,
                                       const cuuint32_t* element_strides,
                                       CUtensorMapInterleave interleave,
                                       CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                                       CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  const auto in_range = [](int corner) { return corner >= -32768 && corner <= 32767; };
  const size_t element = element_bytes(type);
  const size_t span =
      swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64
      : swizzle == CU_TENSOR_MAP_SWIZZLE_128B || swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B
          ? 128
          : 0;  // no other is supported
  const bool by_pixels = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W;
  if (element == 0 || rank < 3 || !in_range(lower) || !in_range(upper) || channels > 256 ||
      (by_pixels ? pixels > 1024 : mode != CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128) || span == 0 ||
      (interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && channels * element > span) ||
      !place_is_valid(map, address, interleave) ||
      !shape_is_valid(rank, dimensions, strides, element_strides, interleave)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  encode(map, type, rank, address, dimensions, strides);
  return CUDA_SUCCESS;
}

SIMGPU_API cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  Call call(Needs::kDriver);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (!place_is_valid(map, address, CU_TENSOR_MAP_INTERLEAVE_NONE)) return CUDA_ERROR_INVALID_VALUE;
  Encoded encoded = {};
  std::memcpy(&encoded, map, sizeof encoded);
  if (encoded.kind != kTiled) return CUDA_ERROR_INVALID_VALUE;
  encoded.address = reinterpret_cast<uintptr_t>(address);
  std::memcpy(map, &encoded, sizeof encoded);
  return CUDA_SUCCESS;
}
