// SPDX-License-Identifier: Apache-2.0
#pragma once
// Communication libraries register their own memory with other devices and machines: it must be the
// driver's, not ours. They carry their own runtime, so the caller of the driver lies in their file.

namespace offload {

// Whether this return address lies in libnccl, libnvshmem or libucx (and the like). A table look-up
// once a page of code has been seen.
bool from_communication_library(const void* caller);

}  // namespace offload
