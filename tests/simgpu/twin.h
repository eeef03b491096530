// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C interface between the simulated GPU and a library of twins: CPU functions that do what a
// kernel does. The simulated driver loads the libraries named in SIMGPU_TWINS (separated by ':')
// and
// "<executable>.twins.so" if it exists, calls simgpu_twins() once in each, and finds a twin by the
// mangled name under which the kernel was registered or stands in a module.
//
// Device memory is never mapped at the addresses that the program holds: a host access to them
// faults, as it does on a machine with a GPU. It is mapped at `address + pointer_delta`. A twin
// passes every device pointer through simgpu_pointer() before it reads or writes through it,
// pointers found in structs or in device memory included. Addresses outside the device window
// (pinned host memory) come back unchanged.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIMGPU_TWIN_VERSION 1

typedef struct SimgpuLaunch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;   // dynamic shared memory asked for at the launch
  uintptr_t window_begin;  // device addresses are in [window_begin, window_end)
  uintptr_t window_end;
  ptrdiff_t pointer_delta;  // where the executor sees them
} SimgpuLaunch;

// Told by a twin: this launch reads (write = 0) or writes (write = 1) these bytes. Device addresses
// as the program knows them, not translated.
typedef void (*SimgpuAccessSink)(void* context, const void* address, size_t bytes, int write);

typedef struct SimgpuTwin {
  const char* name;  // as nvcc mangles it
  int parameter_count;
  const size_t* parameter_offset;  // bytes, as the kernel's parameter buffer is laid out
  const size_t* parameter_size;    // bytes
  // Runs the whole grid on the calling (executor) thread. arguments[i] points to parameter i. Must
  // not call CUDA, block, or hold a lock: it may be abandoned by a long jump when it touches
  // unmapped memory.
  void (*run)(const SimgpuLaunch* launch, void* const* arguments);
  // The exact access set, reported before run. NULL: unknown, then everything that the arguments
  // name counts.
  void (*access)(const SimgpuLaunch* launch, void* const* arguments, SimgpuAccessSink sink,
                 void* context);
  // Floating-point operations of this launch, for the clock. NULL: bytes accessed alone set the
  // time.
  double (*flops)(const SimgpuLaunch* launch, void* const* arguments);
} SimgpuTwin;

typedef struct SimgpuTwinTable {
  int version;  // SIMGPU_TWIN_VERSION
  int count;
  const SimgpuTwin* twins;
} SimgpuTwinTable;

const SimgpuTwinTable* simgpu_twins(void);  // exported by each library of twins

static inline void* simgpu_pointer(const SimgpuLaunch* launch, const void* pointer) {
  uintptr_t address = (uintptr_t)pointer;
  if (address >= launch->window_begin && address < launch->window_end) {
    address += (uintptr_t)launch->pointer_delta;
  }
  return (void*)address;
}

#ifdef __cplusplus
}
#endif
