// SPDX-License-Identifier: Apache-2.0
// forks [cuda|first]: a child that is forked, with the driver in use or not, runs on and ends as
// ever. With `cuda` the child also calls the driver, which must answer as it does without
// liboffload. With `first` the parent only finds the driver, and the child is the one that uses it.

#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

void* driver = nullptr;

template <typename Function>
Function* find(const char* name) {
  void* function = dlsym(driver, name);
  if (function == nullptr) std::exit(2);
  return reinterpret_cast<Function*>(function);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

CUdeviceptr start_cuda() {
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) std::exit(2);
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  const bool good = find<decltype(cuInit)>("cuInit")(0) == CUDA_SUCCESS &&
                    find<decltype(cuDeviceGet)>("cuDeviceGet")(&device, 0) == CUDA_SUCCESS &&
                    find<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(
                        &context, device) == CUDA_SUCCESS &&
                    find<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context) == CUDA_SUCCESS &&
                    find<decltype(cuMemAlloc)>("cuMemAlloc_v2")(&memory, 8 << 20) == CUDA_SUCCESS &&
                    find<decltype(cuMemsetD8)>("cuMemsetD8_v2")(memory, 5, 8 << 20) == CUDA_SUCCESS;
  if (!good) std::exit(3);
  return memory;
}

}  // namespace

int main(int count, char** arguments) {
  const bool with_cuda = count > 1 && std::strcmp(arguments[1], "cuda") == 0;
  const bool first = count > 1 && std::strcmp(arguments[1], "first") == 0;
  const CUdeviceptr memory = with_cuda ? start_cuda() : 0;
  if (first) {
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == nullptr) std::exit(2);
    find<decltype(cuMemAlloc)>("cuMemAlloc_v2");
  }
  const pid_t child = fork();
  if (child == 0) {
    void* some = std::malloc(100);
    std::free(some);
    std::thread([] {}).join();
    if (with_cuda) {
      CUdeviceptr other = 0;
      std::printf("child's allocation: %d\n",
                  find<decltype(cuMemAlloc)>("cuMemAlloc_v2")(&other, 1 << 20));
      std::fflush(stdout);
    }
    if (first) {
      char back[16] = {};
      const CUdeviceptr own = start_cuda();
      std::printf("child's memory: %d",
                  find<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH_v2")(back, own, sizeof(back)));
      std::printf(" holds %d\n", back[9]);
      std::fflush(stdout);
    }
    std::exit(11);  // handlers of the parent's run here too
  }
  std::printf("child ended with %d\n", wait_for(child));
  const pid_t grandchild = fork();
  if (grandchild == 0) _exit(wait_for(fork() == 0 ? (_exit(0), 0) : -1) == 0 ? 12 : 13);
  std::printf("grandchild ended with %d\n", wait_for(grandchild));
  if (with_cuda) {
    char back[16] = {};
    const CUresult result =
        find<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH_v2")(back, memory, sizeof(back));
    std::printf("memory holds %d, result %d, free %d\n", back[9], result,
                find<decltype(cuMemFree)>("cuMemFree_v2")(memory));
  }
  return 9;
}
