// SPDX-License-Identifier: Apache-2.0
// Several contexts in one process, of one device and of two, that use the same buffers: the handles
// of their streams are the same, and an event of one cannot be recorded on a stream of another.

#include <thread>

#include "tests/clients/graphs.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 24;

Client in_own_context(const Client& client) {
  Client other = client;
  CUctxCreateParams parameters{};
  CHECK_CUDA(client.cuda.cuCtxCreate(&other.context, &parameters, 0, client.device));
  other.load_kernels();
  return other;
}

void enter(const Client& client) {
  CHECK_CUDA(client.cuda.cuCtxSetCurrent(client.context));
}

// What `from` has been given runs before what `to` is given from now on.
void order(Client& from, Client& to) {
  enter(from);
  const CUevent event = new_event(from);
  CHECK_CUDA(from.cuda.cuEventRecord(event, from.stream));
  enter(to);
  CHECK_CUDA(to.cuda.cuStreamWaitEvent(to.stream, event, 0));
  CHECK_CUDA(from.cuda.cuEventDestroy(event));
}

// The two take turns at all buffers, of which not all fit; the host does not wait in between.
void take_turns(Client& first, Client& second, const std::vector<CUdeviceptr>& buffers,
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

std::vector<std::vector<uint32_t>> crowd_on_host() {
  std::vector<std::vector<uint32_t>> wanted;
  for (uint32_t i = 0; i < kCrowd; ++i) wanted.push_back(filled(1000 * i));
  return wanted;
}

void expect_all(Client& client, const std::vector<CUdeviceptr>& buffers,
                const std::vector<std::vector<uint32_t>>& wanted) {
  enter(client);
  for (size_t i = 0; i < buffers.size(); ++i) client.expect(buffers[i], wanted[i]);
}

// A context of the program's own beside the primary one. `null_streams`: both use the handle null.
void two_contexts(Client& client, bool null_streams) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  Client other = in_own_context(client);
  if (!null_streams) {
    other.stream = new_stream(other);
    enter(client);
    client.stream = new_stream(client);
  }
  take_turns(client, other, buffers, wanted);
  // What the other allocates is its own.
  enter(other);
  const CUdeviceptr theirs = other.allocate();
  other.fill(theirs, 5);
  std::vector<uint32_t> sum = filled(5);
  for (uint32_t i = 0; i < kCrowd; ++i) {
    other.mix(theirs, buffers[i]);
    mix_on_host(sum, wanted[i]);
  }
  other.expect(theirs, sum);
  other.free(theirs);
  expect_all(client, buffers, wanted);
  client.disperse(buffers);
  CHECK_CUDA(client.cuda.cuCtxDestroy(other.context));
}
void two_contexts_null(Client& client) {
  two_contexts(client, true);
}
void two_contexts_streams(Client& client) {
  two_contexts(client, false);
}

// Contexts come, use the buffers, and are destroyed with work that is still queued, while the
// primary one goes on; the next may get the same handles.
void contexts_come_and_go(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  for (uint32_t round = 0; round < 6; ++round) {
    const CUdeviceptr doomed = client.allocate();
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    Client other = in_own_context(client);
    if (round % 2 == 0) other.stream = new_stream(other);
    for (uint32_t i = round; i < kCrowd; i += 3) {
      other.mix(buffers[i], buffers[(i + 1) % kCrowd]);
      mix_on_host(wanted[i], wanted[(i + 1) % kCrowd]);
    }
    CHECK_CUDA(other.cuda.cuCtxSynchronize());
    other.fill(doomed, 1);  // whether that runs is the driver's affair
    CHECK_CUDA(client.cuda.cuCtxDestroy(other.context));
    enter(client);
    for (uint32_t i = 0; i < kCrowd; ++i) {
      client.mix(buffers[i], buffers[(i + 5) % kCrowd]);
      mix_on_host(wanted[i], wanted[(i + 5) % kCrowd]);
    }
    client.free(doomed);
  }
  expect_all(client, buffers, wanted);
  client.disperse(buffers);
}

// A stream of one context captures while the other uses its null stream.
void capture_in_other_context(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  Client other = in_own_context(client);
  other.mix(buffers[0], buffers[1]);  // on its null stream, which is followed from now on
  mix_on_host(wanted[0], wanted[1]);
  CHECK_CUDA(other.cuda.cuCtxSynchronize());
  other.stream = new_stream(other, CU_STREAM_DEFAULT);
  const Graphs graphs(client);
  enter(client);  // whichever is current
  CHECK_CUDA(graphs.begin(other.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  enter(other);
  other.mix(buffers[2], buffers[3]);
  enter(client);
  for (uint32_t i = 4; i < kCrowd; ++i) {  // the rest leaves and comes back
    client.mix(buffers[i], buffers[0]);
    mix_on_host(wanted[i], wanted[0]);
  }
  CUgraph graph = nullptr;
  CHECK_CUDA(graphs.end(other.stream, &graph));
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  enter(other);
  const CUgraphExec exec = graphs.instance(graph);
  for (int i = 0; i < 3; ++i) {
    CHECK_CUDA(graphs.launch(exec, other.stream));
    mix_on_host(wanted[2], wanted[3]);
  }
  CHECK_CUDA(other.cuda.cuCtxSynchronize());
  CHECK_CUDA(graphs.destroy_exec(exec));
  CHECK_CUDA(graphs.destroy(graph));
  expect_all(client, buffers, wanted);
  client.disperse(buffers);
}

CUresult let_see(Client& client, Client& memory_of) {
  using Enable = CUresult (*)(CUcontext, unsigned);
  const auto enable = reinterpret_cast<Enable>(client.cuda.other("cuCtxEnablePeerAccess"));
  CHECK(enable != nullptr);
  enter(client);
  return enable(memory_of.context, 0);
}

// Two devices, one thread that goes from one to the other. The second's kernels read and write what
// the first one's have evicted; the second's own memory is the driver's, and the first reads it.
void two_devices(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  Client other = client;
  other.start(1);
  CHECK_CUDA(let_see(other, client));
  CHECK_CUDA(let_see(client, other));
  enter(other);
  other.stream = new_stream(other);
  const std::vector<CUdeviceptr> theirs = other.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted_there = crowd_on_host();
  enter(client);
  client.stream = new_stream(client);
  order(other, client);
  take_turns(client, other, buffers, wanted);
  for (uint32_t i = 0; i < kCrowd; ++i) {
    enter(other);
    other.mix(theirs[i], buffers[i]);
    mix_on_host(wanted_there[i], wanted[i]);
    order(other, client);
    client.mix(buffers[i], theirs[i]);
    mix_on_host(wanted[i], wanted_there[i]);
    order(client, other);
  }
  expect_all(other, theirs, wanted_there);
  expect_all(client, buffers, wanted);
  enter(other);
  other.disperse(theirs);
  CHECK_CUDA(client.cuda.cuDevicePrimaryCtxReset(other.device));
  take_turns(client, client, buffers, wanted);
  expect_all(client, buffers, wanted);
  client.disperse(buffers);
}

// A thread for each device, at the same time.
void two_devices_two_threads(Client& client) {
  const std::vector<CUdeviceptr> shared = client.crowd(kCrowd / 2);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  Client other = client;
  other.start(1);
  CHECK_CUDA(let_see(other, client));
  const auto read_all = [&shared](Client& own, uint32_t seed) {
    enter(own);
    own.stream = new_stream(own);
    for (int step = 0; step < 6; ++step) {
      const CUdeviceptr sum = own.allocate();
      own.fill(sum, seed);
      std::vector<uint32_t> wanted = filled(seed);
      const std::vector<CUdeviceptr> stash = own.crowd(kCrowd / 2);
      for (uint32_t i = kCrowd / 2; i-- > 0;) {
        own.mix(sum, shared[i]);
        mix_on_host(wanted, filled(1000 * i));
        own.mix(sum, stash[i]);
        mix_on_host(wanted, filled(1000 * i));
      }
      own.expect(sum, wanted);
      own.disperse(stash);
      own.free(sum);
    }
  };
  std::thread beside([&] { read_all(other, 100); });
  Client own = client;
  read_all(own, 200);
  beside.join();
  enter(client);
  for (uint32_t i = 0; i < kCrowd / 2; ++i) client.expect(shared[i], filled(1000 * i));
  client.disperse(shared);
}

}  // namespace

const std::vector<Scenario> kContextScenarios = {
    {"two-contexts", &two_contexts_streams},
    {"two-contexts-null-streams", &two_contexts_null},
    {"contexts-come-and-go", &contexts_come_and_go},
    {"capture-in-other-context", &capture_in_other_context},
    {"two-devices", &two_devices},
    {"two-devices-two-threads", &two_devices_two_threads},
};

}  // namespace clients
