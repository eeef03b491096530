// SPDX-License-Identifier: Apache-2.0
#include "tests/clients/client.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace clients {
namespace {

constexpr unsigned kBlocks = 4;
constexpr unsigned kThreads = 64;

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(__FILE__, __LINE__, std::string("no ") + path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::string kernel_code() {
  return read_file(CLIENT_KERNELS);
}

void fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "client: %s:%d: %s\n", file, line, what.c_str());
  std::_Exit(1);
}

void expect_result(const char* file, int line, const char* call, CUresult result, CUresult wanted) {
  if (result == wanted) return;
  fail(file, line,
       std::string(call) + " is " + std::to_string(result) + ", not " + std::to_string(wanted));
}

Client::Client(const Cuda& entries) : cuda(entries) {}

void Client::start(int ordinal) {
  CHECK_CUDA(cuda.cuInit(0));
  CHECK_CUDA(cuda.cuDeviceGet(&device, ordinal));
  CHECK_CUDA(cuda.cuDevicePrimaryCtxRetain(&context, device));
  CHECK_CUDA(cuda.cuCtxSetCurrent(context));
  module_ = load();
}

CUmodule Client::load() {
  CUmodule module = nullptr;
  CHECK_CUDA(cuda.cuModuleLoadData(&module, kernel_code().c_str()));
  return module;
}

CUfunction Client::function(const char* name) {
  CUfunction function = nullptr;
  CHECK_CUDA(cuda.cuModuleGetFunction(&function, module_, name));
  return function;
}

void Client::launch(CUfunction function, std::vector<void*> arguments, std::vector<size_t> sizes) {
  switch (style) {
    case Style::kParameters:
      CHECK_CUDA(cuda.cuLaunchKernel(function, kBlocks, 1, 1, kThreads, 1, 1, 0, stream,
                                     arguments.data(), nullptr));
      break;
    case Style::kExtra: {
      std::vector<char> block;
      for (size_t i = 0; i < arguments.size(); ++i) {
        while (block.size() % (sizes[i] % 8 == 0 ? 8 : 4) != 0) block.push_back(0);
        const auto* bytes = static_cast<const char*>(arguments[i]);
        block.insert(block.end(), bytes, bytes + sizes[i]);
      }
      size_t bytes = block.size();
      void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                       &bytes, CU_LAUNCH_PARAM_END};
      CHECK_CUDA(
          cuda.cuLaunchKernel(function, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, nullptr, extra));
      break;
    }
    case Style::kEx: {
      CUlaunchConfig config{};
      config.gridDimX = kBlocks;
      config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
      config.blockDimX = kThreads;
      config.hStream = stream;
      CHECK_CUDA(cuda.cuLaunchKernelEx(&config, function, arguments.data(), nullptr));
      break;
    }
    case Style::kCooperative:
      CHECK_CUDA(cuda.cuLaunchCooperativeKernel(function, kBlocks, 1, 1, kThreads, 1, 1, 0, stream,
                                                arguments.data()));
      break;
  }
}

CUdeviceptr Client::allocate(size_t bytes) {
  CUdeviceptr at = 0;
  CHECK_CUDA(cuda.cuMemAlloc(&at, bytes));
  return at;
}

void Client::free(CUdeviceptr at) {
  CHECK_CUDA(cuda.cuMemFree(at));
}

void Client::fill(CUdeviceptr to, uint32_t seed, uint32_t words) {
  launch(function("fill"), {&to, &words, &seed}, {8, 4, 4});
}

void Client::mix(CUdeviceptr to, CUdeviceptr from) {
  uint32_t words = kWords;
  launch(function("mix"), {&to, &from, &words}, {8, 8, 4});
}

std::vector<uint32_t> Client::read(CUdeviceptr from, uint32_t words) {
  std::vector<uint32_t> found(words);
  CHECK_CUDA(cuda.cuStreamSynchronize(stream));
  CHECK_CUDA(cuda.cuMemcpyDtoH(found.data(), from, words * sizeof(uint32_t)));
  return found;
}

void Client::expect(CUdeviceptr at, const std::vector<uint32_t>& wanted) {
  const std::vector<uint32_t> found = read(at, static_cast<uint32_t>(wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (found[i] == wanted[i]) continue;
    fail(__FILE__, __LINE__,
         "word " + std::to_string(i) + " is " + std::to_string(found[i]) + ", not " +
             std::to_string(wanted[i]));
  }
}

std::vector<CUdeviceptr> Client::crowd(size_t count) {
  std::vector<CUdeviceptr> buffers;
  for (size_t i = 0; i < count; ++i) {
    buffers.push_back(allocate());
    fill(buffers.back(), static_cast<uint32_t>(1000 * i));
  }
  return buffers;
}

void Client::disperse(const std::vector<CUdeviceptr>& buffers) {
  CHECK_CUDA(cuda.cuStreamSynchronize(stream));
  for (const CUdeviceptr at : buffers) free(at);
}

void* host_page(const Client& client) {
  constexpr size_t kPage = 4096;
  void* page = nullptr;
  CHECK_CUDA(client.cuda.cuMemHostAlloc(&page, kPage,
                                        CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
  std::memset(page, 0, kPage);
  return page;
}

void mix_hidden(Client& client, CUdeviceptr to, CUdeviceptr from) {
  void* const page = host_page(client);
  std::memcpy(page, &from, sizeof from);
  auto table = reinterpret_cast<CUdeviceptr>(page);
  uint32_t entries = 1;
  uint32_t words = kWords;
  client.launch(client.function("mix_table"), {&to, &table, &entries, &words}, {8, 8, 4, 4});
  CHECK_CUDA(client.cuda.cuStreamSynchronize(client.stream));
  CHECK_CUDA(client.cuda.cuMemFreeHost(page));
}

std::vector<uint32_t> filled(uint32_t seed, uint32_t words) {
  std::vector<uint32_t> values(words);
  for (uint32_t i = 0; i < words; ++i) values[i] = seed + i;
  return values;
}

void mix_on_host(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = to[i] * 31 + from[i];
}

}  // namespace clients
