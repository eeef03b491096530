// SPDX-License-Identifier: Apache-2.0
// Ways to end: what runs after our own exit handler still reads right, and nothing waits for ever.

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kBuffers = 24;

struct Late {
  Client* client;
  std::vector<CUdeviceptr> buffers;
  std::vector<std::vector<uint32_t>> wanted;
};
Late* late = nullptr;

// Leaked: they are read when static objects may be gone.
Late* more_than_fits(Client& client) {
  auto* made = new Late{new Client(client), client.crowd(kBuffers), {}};
  for (uint32_t i = 0; i < kBuffers; ++i) made->wanted.push_back(filled(1000 * i));
  return made;
}

// An exit handler that was registered before the first allocation runs after ours. It may save
// results.
void read_after_exit(Client& client) {
  std::atexit([] {
    for (uint32_t i = 0; i < kBuffers; ++i) late->client->expect(late->buffers[i], late->wanted[i]);
  });
  late = more_than_fits(client);
  // Whatever is on its way to where when the program ends.
  std::minstd_rand engine(7);
  const auto random = [&] { return static_cast<uint32_t>(engine()); };
  for (int turn = 0; turn < 60; ++turn) {
    const uint32_t to = random() % kBuffers;
    const uint32_t from = (to + 1 + random() % (kBuffers - 1)) % kBuffers;
    client.mix(late->buffers[to], late->buffers[from]);
    mix_on_host(late->wanted[to], late->wanted[from]);
  }
}

// The handler interrupts a call, ours or the driver's, and ends the process there. On a thread of
// its own, which allocates from a part of the C library's heap of its own: what exit() frees of the
// first thread's is not behind a lock that the interrupted call holds, as it could be without us.
void exit_in_handler(Client& client) {
  constexpr uint32_t kSmall = kWords / 4;
  std::vector<CUdeviceptr> buffers;
  for (int i = 0; i < 60; ++i) buffers.push_back(client.allocate(kSmall * sizeof(uint32_t)));
  signal(SIGALRM, [](int) {
    if (write(STDOUT_FILENO, "ok\n", 3) == 3) std::exit(0);
  });
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  std::thread interrupted([&] {
    CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
    for (uint32_t i = 0;; ++i) client.fill(buffers[i % buffers.size()], i, kSmall);
  });
  pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  ualarm(30000, 0);
  interrupted.join();
}

}  // namespace

const std::vector<Scenario> kEndScenarios = {
    {"read-after-exit", &read_after_exit},
    {"exit-in-handler", &exit_in_handler},
};

}  // namespace clients
