// SPDX-License-Identifier: Apache-2.0
#include "interpose/cli/doctor.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/cli/sandbox.h"

namespace offload::cli {
namespace {

using Variables = std::map<std::string, std::string>;

class Doctor : public testing::Test {
 protected:
  Outcome examine(Variables variables = {}) {
    variables.emplace("LD_LIBRARY_PATH", FAKE_DRIVER_FOLDER);
    return sandbox_.run({"doctor"}, variables);
  }
  static void expect_line(const Outcome& outcome, const std::string& text) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\nin\n" << outcome.out;
  }
  Sandbox sandbox_;
};

TEST_F(Doctor, FindsAHealthyMachineHealthy) {
  std::string library = sandbox_.install_library("bin");
  Outcome outcome = examine();
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  expect_line(outcome, "ok       library      " + library + " loads\n");
  expect_line(outcome, "ok       driver       libcuda.so.1 for CUDA 13.0\n");
  expect_line(outcome, "ok       device 0     Fake 9000, 24 GiB, compute capability 9.0\n");
  expect_line(outcome, "ok       device 0     virtual memory management in steps of 2 MiB\n");
  expect_line(outcome,
              "host memory can be mapped at a buffer's address, node 0, in steps of 2 MiB\n");
  EXPECT_EQ(outcome.out.find("problem"), std::string::npos) << outcome.out;
}

TEST_F(Doctor, EveryProblemIsNamedWithItsRemedy) {
  sandbox_.install_library("bin");
  struct Case {
    Variables variables;
    const char* problem;
    const char* remedy;
  };
  for (const Case& c : {
           Case{{{"LD_LIBRARY_PATH", "/nowhere"}},
                "driver       libcuda.so.1: cannot open",
                "nvidia-smi"},
           Case{{{"FAKE_INIT", "100"}}, "cuInit: CUDA_ERROR_NO_DEVICE (100)", "nvidia-smi"},
           Case{{{"FAKE_VERSION", "12020"}},
                "CUDA 12.2 does not tell what a kernel's parameters are",
                "12.4"},
           Case{{{"FAKE_DEVICES", "0"}}, "no device is visible", "CUDA_VISIBLE_DEVICES"},
           Case{{{"FAKE_VMM", "0"}}, "no virtual memory management", "device and driver"},
           Case{{{"LD_LIBRARY_PATH", BARE_DRIVER_FOLDER}},
                "the driver lacks cuCtxGetCurrent, ",
                "update"},
           Case{{{"OFFLOAD_POLICY", "lru"}},
                "OFFLOAD_POLICY=lru is not understood",
                "offload options"},
           Case{{{"LD_PRELOAD", "/nowhere/x.so"}},
                "/nowhere/x.so in LD_PRELOAD does not exist",
                "remove it"},
       }) {
    Outcome outcome = examine(c.variables);
    EXPECT_EQ(outcome.status, 1) << c.problem;
    expect_line(outcome, "problem  ");
    expect_line(outcome, c.problem);
    expect_line(outcome, " -> ");
    expect_line(outcome, c.remedy);
  }
}

TEST_F(Doctor, WhatOnlyCostsIsANote) {
  sandbox_.install_library("bin");
  Outcome outcome = examine({{"FAKE_HOST_NUMA", "0"}});
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  expect_line(outcome, "note     device 0     host memory cannot be mapped");
  outcome = examine({{"OFFLOAD_DISABLE", "1"}});
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  expect_line(outcome, "note     options      OFFLOAD_DISABLE is set");
}

TEST_F(Doctor, ALibraryThatDoesNotLoadIsAProblem) {
  EXPECT_EQ(examine().status, 1);
  std::ofstream(sandbox_.folder() / "bin" / "liboffload.so") << "no library";
  Outcome outcome = examine();
  EXPECT_EQ(outcome.status, 1);
  expect_line(outcome, "problem  library      ");
  expect_line(outcome, "does not load: ERROR: ld.so");
}

TEST_F(Doctor, AnotherLibraryInFrontIsAProblem) {
  std::string ours = sandbox_.install_library("bin");
  std::string other = sandbox_.folder() / "other.so";
  std::filesystem::copy_file(FAKE_LIBRARY, other);
  Outcome outcome = examine({{"LD_PRELOAD", other + ":" + ours}});
  EXPECT_EQ(outcome.status, 1);
  expect_line(outcome, "liboffload.so is not the first in LD_PRELOAD");
  EXPECT_EQ(examine({{"LD_PRELOAD", ours + ":" + other}}).status, 0);
}

TEST(Findings, OneProblemIsEnough) {
  Findings findings;
  findings.ok("a", "b");
  findings.note("a", "b");
  EXPECT_TRUE(findings.healthy());
  findings.problem("a", "b", "c");
  EXPECT_FALSE(findings.healthy());
}

}  // namespace
}  // namespace offload::cli
