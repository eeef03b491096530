// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the small clients share. Each client is one function that makes one mistake, or, with right
// = true, does the same thing properly: the two differ in the lines that `right` guards and nowhere
// else.

#include <cuda.h>

#include <cstddef>

namespace simgpu::client {

// Ends the process with status 1 unless a call succeeded that no variant may fail.
#define MUST(call) ::simgpu::client::must((call), #call)
void must(CUresult result, const char* call);

// The status with which a wrong client ends that the driver's answer gave away. A right one never
// gets that answer.
inline constexpr int kRefused = 98;
// kRefused if `result` is what the driver should say, with its name on stderr; 1 otherwise.
int refused(CUresult result, CUresult expected);

inline constexpr unsigned kCount = 1024;  // words per buffer
inline constexpr size_t kBytes = kCount * sizeof(unsigned);

// Kernels over kCount words. They take what they use as arguments and nothing else.
void launch_fill(CUstream stream, CUdeviceptr to, unsigned value);
void launch_copy(CUstream stream, CUdeviceptr to, CUdeviceptr from);
void launch_increment(CUstream stream, CUdeviceptr at);

CUstream make_stream();
CUevent make_event();
// `waiter` waits for all that `stream` has been given so far.
void join(CUstream waiter, CUstream stream);

// Virtual memory management, one granule at a time.
size_t granule();
CUdeviceptr reserve(size_t bytes);
CUmemGenericAllocationHandle create_granule();
void map_granule(CUdeviceptr address, CUmemGenericAllocationHandle handle);
void set_access(CUdeviceptr address);

// The client. Called with the primary context of device 0 current.
int run(bool right);

}  // namespace simgpu::client
