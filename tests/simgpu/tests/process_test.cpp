// SPDX-License-Identifier: Apache-2.0
// The driver in its process: options, forks, the end, the report.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/simgpu/tests/support/gpu.h"

namespace simgpu::test {
namespace {

void race() {
  Gpu gpu;
  const CUdeviceptr p = allocate(64);
  CU(gpu.launch_store(p, 16, 1, new_stream()));
  CU(gpu.launch_store(p, 16, 1, new_stream()));
  CU(cuCtxSynchronize());
}

TEST(Process, AForkedChildCannotUseIt) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const pid_t child = fork();
    if (child == 0) {
      CUdeviceptr p = 0;
      const bool refused = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                           cuMemAlloc(&p, 4) == CUDA_ERROR_NOT_INITIALIZED;
      std::exit(refused ? 7 : 8);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 7);
    CU(cuMemsetD8(allocate(64), 0, 64));
    CU(cuCtxSynchronize());
  }));
}

TEST(Process, AChildOfAProcessThatNeverDidMayUseIt) {
  EXPECT_CLEAN(in_child({}, [] {
    const pid_t child = fork();
    if (child == 0) {
      Gpu gpu;
      std::exit(cuCtxSynchronize() == CUDA_SUCCESS ? 7 : 8);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 7);
  }));
}

TEST(Process, ReportsDecideTheExitStatus) {
  EXPECT_REPORT(in_child({}, race), "check: 1 reports; the exit status is 97");
  EXPECT_CLEAN(in_child({{"SIMGPU_CHECK", "off"}}, race));
  const Outcome aborted = in_child({{"SIMGPU_CHECK", "abort"}}, race);
  EXPECT_EQ(aborted.signal, SIGABRT);
}

TEST(Process, WhatTheProgramWroteIsNotLost) {
  const std::string path = testing::TempDir() + "simgpu_output_" + std::to_string(getpid());
  const Outcome outcome = in_child({}, [&] {
    std::FILE* output = std::fopen(path.c_str(), "w");  // and never closed
    std::fprintf(output, "not flushed");
    race();
  });
  EXPECT_EQ(outcome.status, 97);
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "not flushed");
  std::remove(path.c_str());
}

TEST(Process, ExitHandlersMayStillCallTheDriver) {
  EXPECT_CLEAN(in_child({}, [] {
    // Registered before the driver is initialised, so it runs late.
    std::atexit([] {
      CUcontext context = nullptr;
      if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) _exit(3);
      if (cuCtxSynchronize() != CUDA_SUCCESS) _exit(4);
    });
    Gpu gpu;
    CU(cuMemsetD8(allocate(64), 0, 64));
  }));
}

TEST(Process, OthersMayRunWhileItEnds) {
  EXPECT_CLEAN(in_child({}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(64);
    std::thread([&gpu, p] {
      cuCtxSetCurrent(gpu.context);
      for (;;) {
        if (gpu.launch_store(p, 16, 1, nullptr) != CUDA_SUCCESS) pause();
      }
    }).detach();
    const timespec pause{0, 20000000};
    nanosleep(&pause, nullptr);
  }));
}

TEST(Process, TheReportFile) {
  const std::string path = testing::TempDir() + "simgpu_report_%p.json";
  std::string real;
  const Outcome outcome = in_child({{"SIMGPU_REPORT", path}}, [] {
    Gpu gpu;
    const CUdeviceptr p = allocate(4 << 20);
    std::vector<char> host(1000, 1);
    CU(cuMemcpyHtoD(p, host.data(), 1000));
    CU(cuMemcpyDtoH(host.data(), p, 10));
    CU(gpu.launch_store(p, 16, 1, nullptr));
    CU(cuCtxSynchronize());
    std::fprintf(stderr, "%d", getpid());
  });
  real = path;
  real.replace(real.find("%p"), 2, outcome.errors);
  std::ifstream file(real);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find("\"kernels\": 1,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"bytes_host_to_device\": 1000,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"bytes_device_to_host\": 10,"), std::string::npos) << text;
  EXPECT_NE(text.find("\"peak_bytes\": [4194304]"), std::string::npos) << text;
  EXPECT_NE(text.find("\"checker_reports\": 0, \"checker\": \"silent\"}"), std::string::npos)
      << text;
  std::remove(real.c_str());
}

TEST(Process, BadOptionsAreToldAndReplaced) {
  const Outcome outcome =
      in_child({{"SIMGPU_MEMORY", "lots"}, {"SIMGPU_SCHEDULE", "random:x"}}, [] {
        CU(cuInit(0));
        size_t bytes = 0;
        CU(cuDeviceTotalMem(&bytes, 0));
        EXPECT_EQ(bytes, size_t{2} << 30);
      });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.errors,
            "simgpu: SIMGPU_MEMORY=lots is not a valid value, using 2GiB\n"
            "simgpu: SIMGPU_SCHEDULE=random:x is not a valid value, using fifo\n");
}

TEST(Process, AnUnknownClockIsRefusedClearly) {
  const Outcome outcome = in_child({{"SIMGPU_CLOCK", "sundial"}}, [] { CU(cuInit(0)); });
  EXPECT_TRUE(outcome.says("SIMGPU_CLOCK=sundial is not a valid value, using off"))
      << outcome.errors;
}

TEST(Process, HelpPrintsEveryOptionAndLeaves) {
  const Outcome outcome = in_child({{"SIMGPU_HELP", "1"}}, [] {
    int version = 0;
    CU(cuDriverGetVersion(&version));  // not yet
    cuInit(0);
    std::abort();
  });
  EXPECT_EQ(outcome.status, 0);
#define SIMGPU_OPTION(type, field, name, preset, help) \
  EXPECT_TRUE(outcome.says("SIMGPU_" #name " [" preset "]")) << outcome.errors;
#include "tests/simgpu/driver/options.def"
#undef SIMGPU_OPTION
}

}  // namespace
}  // namespace simgpu::test
