// SPDX-License-Identifier: Apache-2.0
#pragma once
// One element of saxpy, written once: the kernel and its twin both call it.

#ifdef __CUDACC__
#define DEVICE_FUNCTION __device__
#else
#define DEVICE_FUNCTION
#endif

DEVICE_FUNCTION inline void saxpy_element(float a, const float* x, float* y, int i) {
  y[i] = a * x[i] + y[i];
}
