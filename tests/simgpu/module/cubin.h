// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the simulated driver needs of an ELF cubin: the kernels in it and how each one's parameter
// buffer is laid out.

#include <cstddef>
#include <string>
#include <vector>

#include "tests/simgpu/module/module.h"

namespace simgpu {

struct CubinKernel {
  std::string name;
  std::vector<KernelParameter> parameters;
};

// True if `data` begins as an ELF file does.
bool is_elf(const void* data);

// Length of an ELF file of which only the beginning is known, from its own tables.
size_t elf_bytes(const void* data);

// Kernels are found by their `.nv.info.<name>` sections, layouts in them: EIATTR_KPARAM_INFO
// (0x17), or 0x45, which nvcc 12 and later write where a parameter does not fit 0x17's fields.
// False and `error` set if the file is broken.
bool read_cubin(const void* data, size_t bytes, std::vector<CubinKernel>* kernels,
                std::string* error);

}  // namespace simgpu
