// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dialect in which the kernels are written, once for nvcc and once for g++.
//
// A kernel is written for one *group* of kLanes threads that run in lock step; `Lanes` is one float
// of each. As CUDA, Lanes is the float of this thread and a group is half a warp. On the CPU, Lanes
// is a vector of kLanes floats and a group is one call of the kernel's function, so the compiler
// needs to vectorise nothing. Groups share nothing and meet nowhere: no shared memory, no barrier,
// no atomics. Each output element is written by one group, in an order of additions fixed by the
// source, so results repeat to the last bit on either side (but not between the two).
//
// A kernel is launched on a grid of groups: blocks of kLanes x kGroupsPerBlock threads. group_x()
// may pass the end, because x is rounded up to whole blocks: each kernel checks it; group_y() and
// group_z() are exact.

#include <cstddef>
#include <cstdint>

constexpr int kLanes = 16;
constexpr int kGroupsPerBlock = 8;

#if defined(__CUDACC__) || \
    defined(GPT_THREADS_AS_LANES)  // the latter: a test runs the CUDA side on host threads
#include "tests/workloads/kernels/lanes_cuda.h"
#else
#include "tests/workloads/kernels/lanes_cpu.h"
#endif
