// SPDX-License-Identifier: Apache-2.0
#pragma once
// The copies under way, timed by pairs of events on their lane, and told to the statistics (and to
// whoever asked) once they have completed. Under the engine's mutex.

#include <cstdint>

#include "interpose/engine/buffer.h"
#include "interpose/engine/streams.h"

namespace offload {

// One buffer's way out or back.
struct Transfer {
  Lane lane = Lane::kOut;
  uint64_t buffer = 0;        // id
  uint64_t buffer_bytes = 0;  // the whole buffer, as asked for
  uint64_t bytes = 0;         // copied
  uint64_t device_ns = 0;
  uint64_t submitted_ns = 0;  // Port::now_nanoseconds
  uint64_t op = 0;            // how many ops the device had seen when it was submitted
};

using TransferSink = void (*)(const Transfer& transfer, void* context);

class Transfers {
 public:
  Transfers(Port& port, Streams& streams, Statistics& statistics);
  void tell(TransferSink sink, void* context) {
    sink_ = sink;
    context_ = context;
  }

  // Around the copies of one buffer. begin() comes after the lane's waits.
  Event begin(Lane lane);
  void end(Lane lane, Event begin, const Buffer& buffer, uint64_t bytes);
  void collect();
  bool forget_all();  // whether there was any

 private:
  struct Pending {
    Transfer transfer;
    Event begin;
    Event end;
  };

  Port& port_;
  Streams& streams_;
  Statistics& statistics_;
  TransferSink sink_ = nullptr;
  void* context_ = nullptr;
  OwnDeque<Pending> pending_[2];
};

}  // namespace offload
