// SPDX-License-Identifier: Apache-2.0
// Several contexts in one process that use the same buffers: the handles of their streams are the
// same, and an event of one cannot be recorded on a stream of another.

#include "tests/clients/several.h"

namespace clients {
namespace {

Client in_own_context(const Client& client) {
  Client other = client;
  CUctxCreateParams parameters{};
  CHECK_CUDA(client.cuda.cuCtxCreate(&other.context, &parameters, 0, client.device));
  other.load_kernels();
  return other;
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

// Two green contexts over the primary one's memory, each with half of the device's multiprocessors:
// a stream made in one, used wherever; a stream of the other while that one is current. One comes
// and goes.
void green_contexts(Client& client) {
  const auto entry = [&]<class Function>(Function*, const char* name) {
    auto* found = reinterpret_cast<Function*>(client.cuda.other(name));
    CHECK(found != nullptr);
    return found;
  };
#define GREEN(name) entry(&::name, #name)
  CUdevResource all{};
  CHECK_CUDA(GREEN(cuDeviceGetDevResource)(client.device, &all, CU_DEV_RESOURCE_TYPE_SM));
  CUdevResource parts[2] = {};
  unsigned groups = 2;
  CHECK_CUDA(
      GREEN(cuDevSmResourceSplitByCount)(parts, &groups, &all, nullptr, 0, all.sm.smCount / 2));
  CHECK(groups == 2);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  CUgreenCtx green[2] = {};
  Client within[2] = {client, client};
  const auto create = [&](int which) {
    CUdevResourceDesc desc = nullptr;
    CHECK_CUDA(GREEN(cuDevResourceGenerateDesc)(&desc, &parts[which], 1));
    CHECK_CUDA(
        GREEN(cuGreenCtxCreate)(&green[which], desc, client.device, CU_GREEN_CTX_DEFAULT_STREAM));
    CHECK_CUDA(GREEN(cuGreenCtxStreamCreate)(&within[which].stream, green[which],
                                             CU_STREAM_NON_BLOCKING, 0));
  };
  create(1);
  CHECK_CUDA(GREEN(cuCtxFromGreenCtx)(&within[1].context, green[1]));
  for (int round = 0; round < 3; ++round) {
    create(0);  // with the handles of the one before
    take_turns(within[0], within[1], buffers, wanted);
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    enter(client);
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    CHECK_CUDA(client.cuda.cuStreamDestroy(within[0].stream));
    CHECK_CUDA(GREEN(cuGreenCtxDestroy)(green[0]));
  }
  enter(within[1]);
  for (uint32_t i = 0; i < kCrowd; ++i) {
    within[1].mix(buffers[i], buffers[(i + 5) % kCrowd]);
    mix_on_host(wanted[i], wanted[(i + 5) % kCrowd]);
  }
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  expect_all(client, buffers, wanted);
  CHECK_CUDA(client.cuda.cuStreamDestroy(within[1].stream));
  CHECK_CUDA(GREEN(cuGreenCtxDestroy)(green[1]));
  client.disperse(buffers);
#undef GREEN
}

// Each turn of the other context is pushed, and popped again.
void contexts_pushed(Client& client) {
  const auto push = ENTRY_OF(client, cuCtxPushCurrent);
  const auto pop = ENTRY_OF(client, cuCtxPopCurrent);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  std::vector<std::vector<uint32_t>> wanted = crowd_on_host();
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  Client other = in_own_context(client);
  CUcontext popped = nullptr;
  CHECK_CUDA(pop(&popped));
  CHECK(popped == other.context);
  const auto mix = [&](Client& at_work, uint32_t to, uint32_t from) {
    at_work.mix(buffers[to % kCrowd], buffers[from % kCrowd]);
    mix_on_host(wanted[to % kCrowd], wanted[from % kCrowd]);
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
  };
  for (uint32_t i = 0; i < 2 * kCrowd; ++i) {
    mix(client, i, i + 5);
    CHECK_CUDA(push(other.context));
    mix(other, i + 7, i);
    CHECK_CUDA(pop(&popped));
  }
  // What is allocated there belongs there, and is the driver's.
  CUdeviceptr theirs = 0;
  CUcontext of = nullptr;
  CHECK_CUDA(push(other.context));
  CHECK_CUDA(client.cuda.cuMemAlloc(&theirs, kBytes));
  CHECK_CUDA(pop(&popped));
  CHECK_CUDA(client.cuda.cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, theirs));
  CHECK(of == other.context);
  expect_all(client, buffers, wanted);
  client.disperse(buffers);
  CHECK_CUDA(client.cuda.cuCtxDestroy(other.context));
}

// Released, the primary context goes with all that is in it, and is made anew.
void primary_context_again(Client& client) {
  const auto release = ENTRY_OF(client, cuDevicePrimaryCtxRelease);
  for (int round = 0; round < 3; ++round) {
    const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
    for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    CHECK_CUDA(release(client.device));
    client.start();
  }
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (uint32_t i = 0; i < kCrowd; ++i) client.expect(buffers[i], filled(1000 * i));
  client.disperse(buffers);
}

// Another pool takes the default one's place, and gives it back: what comes from it is the
// driver's.
void pools_exchanged(Client& client) {
  const auto create = ENTRY_OF(client, cuMemPoolCreate);
  const auto exchange = ENTRY_OF(client, cuDeviceSetMemPool);
  client.stream = new_stream(client);
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {client.device}};
  CUmemoryPool own = nullptr;
  CUmemoryPool usual = nullptr;
  CHECK_CUDA(create(&own, &properties));
  CHECK_CUDA(client.cuda.cuDeviceGetDefaultMemPool(&usual, client.device));
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  for (const CUmemoryPool pool : {own, usual}) {
    CHECK_CUDA(exchange(client.device, pool));
    CUdeviceptr sum = 0;
    CHECK_CUDA(client.cuda.cuMemAllocAsync(&sum, kBytes, client.stream));
    client.fill(sum, 9);
    std::vector<uint32_t> wanted = filled(9);
    for (uint32_t i = 0; i < kCrowd; ++i) {
      client.mix(sum, buffers[i]);
      mix_on_host(wanted, filled(1000 * i));
    }
    client.expect(sum, wanted);
    CHECK_CUDA(client.cuda.cuMemFreeAsync(sum, client.stream));
    cuuint64_t used = 0;
    CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
    CHECK_CUDA(client.cuda.cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &used));
    CHECK(used >= kBytes);
  }
  client.disperse(buffers);
}

}  // namespace

const std::vector<Scenario> kContextScenarios = {
    {"two-contexts", &two_contexts_streams},
    {"two-contexts-null-streams", &two_contexts_null},
    {"contexts-come-and-go", &contexts_come_and_go},
    {"capture-in-other-context", &capture_in_other_context},
    {"green-contexts", &green_contexts},
    {"contexts-pushed", &contexts_pushed},
    {"primary-context-again", &primary_context_again},
    {"pools-exchanged", &pools_exchanged},
};

}  // namespace clients
