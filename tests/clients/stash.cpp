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

// Two passes forward before one back; the first is gone through twice, as where a graph is kept.
void two_passes(Client& client) {
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 7);
  std::vector<uint32_t> wanted = filled(7);
  const std::vector<CUdeviceptr> passes[2] = {client.crowd(kLayers), client.crowd(kLayers)};
  for (const size_t pass : {0, 0, 1}) {
    for (size_t i = kLayers; i-- > 0;) {
      client.mix(sum, passes[pass][i]);
      mix_on_host(wanted, filled(static_cast<uint32_t>(1000 * i)));
    }
  }
  client.expect(sum, wanted);
  for (const auto& pass : passes) client.disperse(pass);
  client.free(sum);
}

// What is saved is a view: its buffer is never named by its first address again, and a part of it
// is written while another is read. Gradients go while the pass is still under way.
void views(Client& client) {
  constexpr uint32_t kPart = kWords / 4;
  uint32_t words = kPart;
  const std::vector<CUdeviceptr> stash = client.crowd(kLayers);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 7);
  std::vector<uint32_t> wanted = filled(7);
  for (uint32_t i = kLayers; i-- > 0;) {
    CUdeviceptr gradient = 0;
    CHECK_CUDA(client.cuda.cuMemAllocAsync(&gradient, kBytes, client.stream));
    CUdeviceptr to = gradient + kPart * 4;
    CUdeviceptr from = stash[i] + 3 * kPart * 4;
    client.fill(gradient, i);
    client.launch(client.function("mix"), {&to, &from, &words}, {8, 8, 4});
    CUdeviceptr written = stash[i] + kPart * 4;
    client.launch(client.function("mix"), {&written, &to, &words}, {8, 8, 4});
    CUdeviceptr part = sum + 2 * kPart * 4;
    client.launch(client.function("mix"), {&part, &written, &words}, {8, 8, 4});
    CHECK_CUDA(client.cuda.cuMemFreeAsync(gradient, client.stream));
    for (uint32_t word = 0; word < kPart; ++word) {
      const uint32_t mixed = (i + kPart + word) * 31 + (1000 * i + 3 * kPart + word);
      const uint32_t saved = (1000 * i + kPart + word) * 31 + mixed;
      wanted[2 * kPart + word] = wanted[2 * kPart + word] * 31 + saved;
    }
  }
  client.expect(sum, wanted);
  client.disperse(stash);
  client.free(sum);
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
    {"stash", &forward_and_backward},
    {"extra", &with_extra},
    {"launch-ex", &with_ex},
    {"cooperative", &cooperatively},
    {"own-stream", &on_own_stream},
    {"two-passes", &two_passes},
    {"views", &views},
};

}  // namespace clients
