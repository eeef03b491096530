// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA does not survive fork, and neither do our thread and our locks: a forked child forwards for
// ever.

namespace offload {

// From now on. Once.
void forward_in_children();
// Whether this process was forked from one that had started.
bool is_forked_child();

}  // namespace offload
