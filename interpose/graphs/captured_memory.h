// SPDX-License-Identifier: Apache-2.0
#pragma once
// Addresses that captures have been given for memory of graphs. If the capture fails there is no
// graph, and never was such memory; and before a launch of the graph there is none yet: the driver
// refuses the free. PyTorch's stream-ordered backend ends the process then, where its own cache
// goes on, so for a process of that kind, and only there, the free is answered as done.
//
// Of the process, as captures are. Any thread.

#include "interpose/driver/cuda_api.h"

namespace offload {

// The driver has given out `address`: to the capture `id`, or (0) to no capture.
void captured_memory_allocated(CUdeviceptr address, cuuint64_t id);
// The capture is over, without a graph.
void captured_memory_lost(cuuint64_t id);
// Whether that address is one of a capture that failed, and not to be freed; then it is forgotten.
bool forget_lost_memory(CUdeviceptr address);
// The driver's answer to its free, or success where there is nothing to be freed. Forgotten, too.
CUresult answer_to_free_of_captured(CUresult by_driver, CUdeviceptr address);

}  // namespace offload
