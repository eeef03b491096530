// SPDX-License-Identifier: Apache-2.0
// OFFLOAD_VERIFY: every round trip is checked, byte for byte by checksum, with the host waiting at
// each step.

#include <cinttypes>

#include "interpose/engine/engine.h"
#include "profiler/base/log.h"

namespace offload {

namespace {

void report(Statistics& statistics, const char* step) {
  statistics.verify_failures.add();
  log_error(
      "verify: %s: the content differs; results of this run cannot be trusted. Please report it, "
      "with "
      "OFFLOAD_LOG=debug",
      step);
}

}  // namespace

// No op can touch the buffer between its copy and here: it is claimed, and what it waits for has
// run.
void Engine::verify_leave(Piece& piece, const Slot& slot, Point copied) {
  streams_.synchronize(copied);
  const uint64_t bytes = bytes_of(piece);
  uint64_t device = 0;
  piece.checksum = port_.checksum_host(slot.home, bytes);
  if (port_.checksum_device(piece.extent->home, bytes, &device) != Status::kOk) return;
  if (device != piece.checksum) report(statistics_, "a buffer's copy in host memory");
}

void Engine::verify_slot(Piece& piece) {
  if (piece.used_in_place) {
    for (const Point& point : piece.copied) streams_.synchronize(point);
    piece.checksum = port_.checksum_host(piece.slot->home, bytes_of(piece));
    return;
  }
  if (port_.checksum_host(piece.slot->home, bytes_of(piece)) != piece.checksum) {
    report(statistics_, "a buffer's copy changed while it was in host memory");
  }
}

void Engine::verify_return(const Buffer& buffer, const Piece& piece, Point copied) {
  streams_.synchronize(copied);
  statistics_.verified.add();
  uint64_t device = 0;
  if (port_.checksum_device(address_of(buffer, piece), bytes_of(piece), &device) != Status::kOk)
    return;
  if (device != piece.checksum) report(statistics_, "a buffer that came back");
}

}  // namespace offload
