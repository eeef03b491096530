// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a kernel's arguments name: of a launch, or of a node of a graph.

#include "interpose/hooks/operation.h"

namespace offload {

// Arguments as cuLaunchKernel takes them. `caller`: who launches, or null. A communication
// library's kernels wait for those of other processes.
CUresult name_arguments(Operation& operation, CUfunction function, void** parameters, void** extra,
                        const void* caller);

// Nodes whose arguments other kernels will change, which cannot be seen.
void look_for_device_updates(CUlaunchAttributeID attribute);

}  // namespace offload
