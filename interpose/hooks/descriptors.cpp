// SPDX-License-Identifier: Apache-2.0
// Tensor maps and textures: opaque objects that hold an address.

#include "interpose/hooks/define.h"
#include "interpose/hooks/keep.h"

namespace offload {

template <Entry E>
CUresult tensor_map_encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                 void* address, const cuuint64_t* dimensions,
                                 const cuuint64_t* strides, const cuuint32_t* box,
                                 const cuuint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (const CUresult refused = keep(address); refused != CUDA_SUCCESS) return refused;
  return real<E>()(map, type, rank, address, dimensions, strides, box, element_strides, interleave,
                   swizzle, promotion, fill);
}

template <Entry E>
CUresult tensor_map_encode_im2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                  void* address, const cuuint64_t* dimensions,
                                  const cuuint64_t* strides, const int* lower, const int* upper,
                                  cuuint32_t channels, cuuint32_t pixels,
                                  const cuuint32_t* element_strides,
                                  CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                  CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (const CUresult refused = keep(address); refused != CUDA_SUCCESS) return refused;
  return real<E>()(map, type, rank, address, dimensions, strides, lower, upper, channels, pixels,
                   element_strides, interleave, swizzle, promotion, fill);
}

template <Entry E>
CUresult tensor_map_encode_im2col_wide(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* dimensions, const cuuint64_t* strides, int lower, int upper,
    cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
    CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (const CUresult refused = keep(address); refused != CUDA_SUCCESS) return refused;
  return real<E>()(map, type, rank, address, dimensions, strides, lower, upper, channels, pixels,
                   element_strides, interleave, mode, swizzle, promotion, fill);
}

template <Entry E>
CUresult tensor_map_replace_address(CUtensorMap* map, void* address) {
  if (const CUresult refused = keep(address); refused != CUDA_SUCCESS) return refused;
  return real<E>()(map, address);
}

template <Entry E>
CUresult tex_object_create(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  CUresult refused = CUDA_SUCCESS;
  if (resource != nullptr && resource->resType == CU_RESOURCE_TYPE_LINEAR)
    refused = keep(resource->res.linear.devPtr);
  if (resource != nullptr && resource->resType == CU_RESOURCE_TYPE_PITCH2D)
    refused = keep(resource->res.pitch2D.devPtr);
  return refused != CUDA_SUCCESS ? refused : real<E>()(object, resource, texture, view);
}

template <Entry E>
CUresult tex_ref_set_address(size_t* offset, CUtexref texture, CUdeviceptr address, size_t bytes) {
  if (const CUresult refused = keep(address); refused != CUDA_SUCCESS) return refused;
  return real<E>()(offset, texture, address, bytes);
}

template <Entry E>
CUresult tex_ref_set_address_2d(CUtexref texture, const CUDA_ARRAY_DESCRIPTOR* descriptor,
                                CUdeviceptr address, size_t pitch) {
  if (const CUresult refused = keep(address); refused != CUDA_SUCCESS) return refused;
  return real<E>()(texture, descriptor, address, pitch);
}

}  // namespace offload

#define FAMILY_descriptors DEFINE_HOOK
#include "interpose/hooks/families.h"
