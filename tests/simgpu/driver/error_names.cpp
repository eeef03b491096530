// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/error_names.h"

namespace simgpu {

namespace {

struct Row {
  CUresult error;
  const char* name;
  const char* text;
};

constexpr Row kRows[] = {
#define SIMGPU_ERROR(name, text) {name, #name, text},
#include "tests/simgpu/driver/errors.def"
#undef SIMGPU_ERROR
};

const Row* find(CUresult error) {
  for (const Row& row : kRows) {
    if (row.error == error) return &row;
  }
  return nullptr;
}

}  // namespace

const char* error_name(CUresult error) {
  const Row* row = find(error);
  return row ? row->name : nullptr;
}

const char* error_text(CUresult error) {
  const Row* row = find(error);
  return row ? row->text : nullptr;
}

}  // namespace simgpu
