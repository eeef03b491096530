// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end: the worker stops, the summary is written. The hooks stay at work, as exit handlers and
// destructors of the program come after ours and may still read what has been moved; they forward
// once the driver says that it has gone. Nothing is freed. Runs from atexit, registered after the
// driver's first initialisation so that it comes before the driver's own end.

namespace offload {

// A driver was met: if nothing more comes of it, the summary says so.
void report_at_exit();
// A summary is wanted, and the library was just loaded: if the process ends without having met a
// driver, one line says so. Children of a process that says so itself stay silent, so that a script
// gets one line, not one for each of its commands.
void speak_at_exit_without_driver();
// A session was made.
void end_session_at_exit();

}  // namespace offload
