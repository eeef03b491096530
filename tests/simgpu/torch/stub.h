/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A function of a stand-in library that does nothing but say so. Included by generated C. */

#ifdef __cplusplus
extern "C" {
#endif

/* Names the function on standard error at its first call. Thread-safe. */
void simgpu_stub_called(const char* name, int* said);

#ifdef __cplusplus
}
#endif

#define SIMGPU_STUB(type, name, value)                           \
  __attribute__((visibility("default"), weak)) type name(void);  \
  __attribute__((visibility("default"), weak)) type name(void) { \
    static int said;                                             \
    simgpu_stub_called(#name, &said);                            \
    return value;                                                \
  }
