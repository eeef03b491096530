// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA does not survive fork, and neither do our thread and our locks: a child of a process with a
// session forwards for ever. A child of one that never had a session begins as its parent did.

namespace offload {

// From now on. Once.
void forward_in_children();
// Whether this process was forked from one that had a session.
bool is_forked_child();

}  // namespace offload
