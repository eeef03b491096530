// SPDX-License-Identifier: Apache-2.0
#pragma once
// cuda.h without the macros that give an old name a new version: with this include a name means the
// symbol that libcuda exports under it, so that the rows of hooks.def can be taken literally.

#ifdef CUDA_VERSION
#error "include this instead of cuda.h"
#endif
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaTypedefs.h>
