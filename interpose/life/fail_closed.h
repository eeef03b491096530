// SPDX-License-Identifier: Apache-2.0
#pragma once
// When what the program does can no longer be seen: what was moved comes home before the call goes
// on, nothing moves from there on, and one line says why.

namespace offload {

// From now on trapped entries and the like lead here. Before any of them is handed out.
void listen_to_traps();

// What happened before there was a session and could not be guarded counts from its beginning.
void catch_up();
// Looks for libraries that reach the driver past our doors. Cheap while nothing is loaded.
void look_for_bypasses();

}  // namespace offload
