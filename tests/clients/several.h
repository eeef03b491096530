// SPDX-License-Identifier: Apache-2.0
// What the scenarios with several contexts or devices share. Each context is a Client of its own.
#pragma once

#include "tests/clients/graphs.h"

namespace clients {

constexpr uint32_t kCrowd = 24;

inline void enter(const Client& client) {
  CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
}

// What `from` has been given runs before what `to` is given from now on.
inline void order(Client& from, Client& to) {
  enter(from);
  const CUevent event = new_event(from);
  CHECK_CUDA(from.cuda.cuEventRecord(event, from.stream));
  enter(to);
  CHECK_CUDA(to.cuda.cuStreamWaitEvent(to.stream, event, 0));
  CHECK_CUDA(from.cuda.cuEventDestroy(event));
}

// The two take turns at all buffers, of which not all fit; the host does not wait in between.
inline void take_turns(Client& first, Client& second, const std::vector<CUdeviceptr>& buffers,
                       std::vector<std::vector<uint32_t>>& wanted) {
  constexpr uint32_t kTurns = 3;
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    for (uint32_t i = 0; i < buffers.size(); ++i) {
      Client& at_work = (i + turn) % 2 == 0 ? first : second;
      Client& other = (i + turn) % 2 == 0 ? second : first;
      enter(at_work);
      const uint32_t from = (i + 1) % static_cast<uint32_t>(buffers.size());
      at_work.mix(buffers[i], buffers[from]);
      mix_on_host(wanted[i], wanted[from]);
      order(at_work, other);
    }
  }
}

inline std::vector<std::vector<uint32_t>> crowd_on_host() {
  std::vector<std::vector<uint32_t>> wanted;
  for (uint32_t i = 0; i < kCrowd; ++i) wanted.push_back(filled(1000 * i));
  return wanted;
}

inline void expect_all(Client& client, const std::vector<CUdeviceptr>& buffers,
                       const std::vector<std::vector<uint32_t>>& wanted) {
  enter(client);
  for (size_t i = 0; i < buffers.size(); ++i) client.expect(buffers[i], wanted[i]);
}

inline CUresult let_see(Client& client, Client& memory_of) {
  using Enable = CUresult (*)(CUcontext, unsigned);
  const auto enable = reinterpret_cast<Enable>(client.cuda.other("cuCtxEnablePeerAccess"));
  CHECK(enable != nullptr);
  enter(client);
  return enable(memory_of.context, 0);
}

// The second device, with a stream of its own.
inline Client second_device(const Client& client) {
  Client other = client;
  other.start(1);
  other.stream = new_stream(other);
  return other;
}

}  // namespace clients
