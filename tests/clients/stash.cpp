// SPDX-License-Identifier: Apache-2.0
// What training does: buffers are written one after the other, left alone, and read again last
// first.

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr size_t kLayers = 24;

void forward_and_backward(Client& client) {
  for (int step = 0; step < 2; ++step) {
    const CUdeviceptr sum = client.allocate();
    client.fill(sum, 7);
    std::vector<uint32_t> wanted = filled(7);
    const std::vector<CUdeviceptr> stash = client.crowd(kLayers);
    for (size_t i = kLayers; i-- > 0;) {
      client.mix(sum, stash[i]);
      mix_on_host(wanted, filled(static_cast<uint32_t>(1000 * i)));
    }
    client.expect(sum, wanted);
    client.disperse(stash);
    client.free(sum);
  }
}

void with_extra(Client& client) {
  client.style = Style::kExtra;
  forward_and_backward(client);
}
void with_ex(Client& client) {
  client.style = Style::kEx;
  forward_and_backward(client);
}
void cooperatively(Client& client) {
  client.style = Style::kCooperative;
  forward_and_backward(client);
}
void on_own_stream(Client& client) {
  CHECK_CUDA(client.cuda.cuStreamCreate(&client.stream, CU_STREAM_NON_BLOCKING));
  forward_and_backward(client);
  CHECK_CUDA(client.cuda.cuStreamDestroy(client.stream));
}

}  // namespace

const std::vector<Scenario> kStashScenarios = {
    {"stash", &forward_and_backward}, {"extra", &with_extra},         {"launch-ex", &with_ex},
    {"cooperative", &cooperatively},  {"own-stream", &on_own_stream},
};

}  // namespace clients
