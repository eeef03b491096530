// SPDX-License-Identifier: Apache-2.0
// Fills. The type of the value is the size of an element.

#include "interpose/hooks/define.h"
#include "interpose/hooks/node_names.h"

namespace offload {

CUresult name_fill(Operation& operation, CUdeviceptr at, size_t row_bytes, size_t pitch,
                   size_t rows) {
  statistics().copies.add();
  if (row_bytes == 0 || rows == 0) return CUDA_SUCCESS;
  return name_range(operation, at, (rows - 1) * pitch + row_bytes);
}

template <Entry E, typename Value>
CUresult fill(CUdeviceptr at, Value value, size_t count) {
  const auto name = [=](Operation& operation) {
    return name_fill(operation, at, count * sizeof(Value), 0, 1);
  };
  return operate<E>(nullptr, name, at, value, count);
}

template <Entry E, typename Value>
CUresult fill_async(CUdeviceptr at, Value value, size_t count, CUstream stream) {
  const auto name = [=](Operation& operation) {
    return name_fill(operation, at, count * sizeof(Value), 0, 1);
  };
  return operate<E>(stream, name, at, value, count, stream);
}

template <Entry E, typename Value>
CUresult fill_2d(CUdeviceptr at, size_t pitch, Value value, size_t width, size_t height) {
  const auto name = [=](Operation& operation) {
    return name_fill(operation, at, width * sizeof(Value), pitch, height);
  };
  return operate<E>(nullptr, name, at, pitch, value, width, height);
}

template <Entry E, typename Value>
CUresult fill_2d_async(CUdeviceptr at, size_t pitch, Value value, size_t width, size_t height,
                       CUstream stream) {
  const auto name = [=](Operation& operation) {
    return name_fill(operation, at, width * sizeof(Value), pitch, height);
  };
  return operate<E>(stream, name, at, pitch, value, width, height, stream);
}

}  // namespace offload

#define FAMILY_fills DEFINE_HOOK
#include "interpose/hooks/families.h"
