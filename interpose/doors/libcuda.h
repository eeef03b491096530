// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of the loaded objects is the CUDA driver. It is never loaded by us. Any thread; no
// allocation of ours (the loader may allocate).

namespace offload {

// Whether the object that holds this address is a driver: its file is called libcuda.so, with any
// version.
bool in_libcuda(const void* address);
bool is_libcuda_file(const char* path);
bool libcuda_is_loaded();
// The driver's own symbol; null if it has none, or there is no driver in the process.
void* driver_symbol(const char* symbol);
// In place of an entry that is not there: a function that answers CUDA_ERROR_NOT_FOUND, or
// NOT_INITIALIZED without a driver. It takes any arguments.
void* driver_refusal();
bool is_driver_refusal(const void* pointer);
void* driver_symbol_or_refusal(const char* symbol);
// A door met the driver at this address: symbols are then looked up in that object.
void note_libcuda(const void* address);
// Whether this address lies in liboffload.
bool in_liboffload(const void* address);

}  // namespace offload
