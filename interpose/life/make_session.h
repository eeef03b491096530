// SPDX-License-Identifier: Apache-2.0
#pragma once
// From options and device to a working session.

namespace offload {

struct Session;

// For the current context. Null, and said why (at info), if it is no primary context or its device
// cannot be managed. One caller at a time.
Session* make_session();

}  // namespace offload
