// SPDX-License-Identifier: Apache-2.0
// quiet_end normal|late-free|_exit|kill|opens-a-file FILE|without-memory: starts CUDA, allocates
// (but for the last), and ends in that way. A destructor that frees after main, as many programs
// have, must get the answer that it gets without liboffload.

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

CUresult (*release)(CUdeviceptr) = nullptr;

struct Owner {
  CUdeviceptr memory = 0;
  ~Owner() {
    if (memory == 0) return;
    const CUresult result = release(memory);
    std::printf("late free: %s\n",
                result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED ? "fine" : "failed");
  }
};
Owner owner;

}  // namespace

int main(int count, char** arguments) {
  const char* how = count > 1 ? arguments[1] : "normal";
  if (std::strcmp(how, "opens-a-file") == 0)
    std::printf("the file is %d\n", open(arguments[2], O_CREAT | O_WRONLY, 0600));
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  reinterpret_cast<decltype(&cuInit)>(dlsym(driver, "cuInit"))(0);
  reinterpret_cast<decltype(&cuDevicePrimaryCtxRetain)>(dlsym(driver, "cuDevicePrimaryCtxRetain"))(
      &context, 0);
  reinterpret_cast<decltype(&cuCtxSetCurrent)>(dlsym(driver, "cuCtxSetCurrent"))(context);
  release = reinterpret_cast<decltype(release)>(dlsym(driver, "cuMemFree_v2"));
  if (std::strcmp(how, "without-memory") == 0) return 6;
  if (reinterpret_cast<decltype(&cuMemAlloc)>(dlsym(driver, "cuMemAlloc_v2"))(&memory, 8 << 20) !=
      CUDA_SUCCESS)
    return 2;
  std::printf("allocated\n");
  std::fflush(stdout);
  if (std::strcmp(how, "late-free") == 0) {
    owner.memory = memory;
    return 4;
  }
  if (std::strcmp(how, "_exit") == 0) _exit(5);
  if (std::strcmp(how, "kill") == 0) kill(getpid(), SIGTERM);
  return 4;
}
