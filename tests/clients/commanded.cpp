// SPDX-License-Identifier: Apache-2.0
// Scenarios that another process leads: by lines on the standard input.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "tests/clients/client.h"

extern char** environ;

namespace clients {
namespace {

constexpr uint32_t kFilled = 3;
constexpr uint32_t kAnswer = 11;

// Each line is how many buffers there are to be; answered is how many there are, which is fewer
// where memory is refused.
void holds_what_it_can(Client& client) {
  std::vector<CUdeviceptr> buffers;
  for (size_t wanted = 0; std::cin >> wanted;) {
    while (buffers.size() < wanted) {
      CUdeviceptr at = 0;
      const CUresult result = client.cuda.cuMemAlloc(&at, kBytes);
      if (result == CUDA_ERROR_OUT_OF_MEMORY) break;
      CHECK_CUDA(result);
      client.fill(at, static_cast<uint32_t>(1000 * buffers.size()));
      buffers.push_back(at);
    }
    std::cout << "holds " << buffers.size() << std::endl;
  }
  for (uint32_t i = 0; i < buffers.size(); ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

// The other end of handle_for_another(): the handle comes as bytes.
void opens_a_handle(Client& client) {
  const auto open_handle = ENTRY_OF(client, cuIpcOpenMemHandle);
  const auto close_handle = ENTRY_OF(client, cuIpcCloseMemHandle);
  CUipcMemHandle handle{};
  std::cin.read(handle.reserved, sizeof handle.reserved);
  CHECK(std::cin.good());
  client.disperse(client.crowd(2));
  CUdeviceptr at = 0;
  CHECK_CUDA(open_handle(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  client.expect(at, filled(kFilled));
  client.fill(at, kAnswer);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CHECK_CUDA(close_handle(at));
}

// Another process opens the handle, reads what is there and writes. That one is this program again,
// under liboffload too, without a report of its own.
void handle_for_another(Client& client) {
  const CUdeviceptr shared = client.allocate();
  client.fill(shared, kFilled);
  std::vector<CUdeviceptr> ordered(24);
  for (uint32_t i = 0; i < ordered.size(); ++i) {
    CHECK_CUDA(client.cuda.cuMemAllocAsync(&ordered[i], kBytes, client.stream));
    client.fill(ordered[i], 1000 * i);
  }
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CUipcMemHandle handle{};
  CHECK_CUDA(client.cuda.cuIpcGetMemHandle(&handle, shared));
  std::array<int, 2> ends{};
  CHECK(pipe2(ends.data(), O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  std::vector<char*> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    if (std::strncmp(*each, "OFFLOAD_REPORT", std::strlen("OFFLOAD_REPORT")) != 0)
      variables.push_back(*each);
  }
  variables.push_back(nullptr);
  std::string words[] = {"client", "proc", "opens-a-handle"};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t other = 0;
  CHECK(posix_spawn(&other, "/proc/self/exe", &actions, nullptr, arguments, variables.data()) == 0);
  CHECK(write(ends[1], handle.reserved, sizeof handle.reserved) == sizeof handle.reserved);
  close(ends[1]);
  int status = 0;
  CHECK(waitpid(other, &status, 0) == other);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  client.expect(shared, filled(kAnswer));
  for (uint32_t i = 0; i < ordered.size(); ++i) client.expect(ordered[i], filled(1000 * i));
  for (const CUdeviceptr at : ordered) CHECK_CUDA(client.cuda.cuMemFreeAsync(at, client.stream));
  client.free(shared);
}

}  // namespace

const std::vector<Scenario> kCommandedScenarios = {
    {"holds-what-it-can", &holds_what_it_can},
    {"opens-a-handle", &opens_a_handle},
    {"handle-for-another", &handle_for_another},
};

}  // namespace clients
