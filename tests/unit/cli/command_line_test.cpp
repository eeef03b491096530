// SPDX-License-Identifier: Apache-2.0
// The built program, run as a user would.

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "tests/unit/cli/sandbox.h"

namespace offload::cli {
namespace {

constexpr const char* kShowEnvironment =
    "echo $LD_PRELOAD,$OFFLOAD_GPU_LIMIT,$OFFLOAD_VERIFY,$1,$2";

TEST(CommandLine, RunSetsTheEnvironmentAndBecomesTheProgram) {
  Sandbox sandbox;
  std::string library = sandbox.install_library("bin");
  Outcome outcome = sandbox.run(
      {"run", "--gpu-limit", "1GiB", "--verify", "sh", "-c", kShowEnvironment, "sh", "a b", "--x"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, library + ",1GiB,1,a b,--x\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(CommandLine, RunPrependsToWhatIsPreloaded) {
  Sandbox sandbox;
  std::string library = sandbox.install_library("lib");
  // An empty library name of the user's own, found by its path.
  std::string other = sandbox.install_library("other");
  Outcome outcome = sandbox.run({"run", "sh", "-c", kShowEnvironment}, {{"LD_PRELOAD", other}});
  EXPECT_EQ(outcome.out, library + ":" + other + ",,,,\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(CommandLine, TheCommandLineWinsOverTheEnvironment) {
  Sandbox sandbox;
  sandbox.install_library("bin");
  Outcome outcome =
      sandbox.run({"run", "--gpu-limit=2GiB", "sh", "-c", "echo $OFFLOAD_GPU_LIMIT $OFFLOAD_MODE"},
                  {{"OFFLOAD_GPU_LIMIT", "1GiB"}, {"OFFLOAD_MODE", "observe"}});
  EXPECT_EQ(outcome.out, "2GiB observe\n");
}

TEST(CommandLine, ExitStatusAndSignalsAreThePrograms) {
  Sandbox sandbox;
  sandbox.install_library("bin");
  EXPECT_EQ(sandbox.run({"run", "--", "sh", "-c", "exit 42"}).status, 42);
  EXPECT_EQ(sandbox.run({"run", "sh", "-c", "kill -TERM $$"}).status, -SIGTERM);
}

TEST(CommandLine, WhatCannotBeRun) {
  Sandbox sandbox;
  sandbox.install_library("bin");
  Outcome missing = sandbox.run({"run", "no-such-command-anywhere"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_NE(missing.err.find("no-such-command-anywhere cannot be run: "), std::string::npos)
      << missing.err;
  std::string text = sandbox.folder() / "text";
  std::ofstream(text) << "no program";
  EXPECT_EQ(sandbox.run({"run", text}).status, 126);
}

TEST(CommandLine, UsageErrorsAreTwo) {
  Sandbox sandbox;
  sandbox.install_library("bin");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {},
           {"fly"},
           {"run"},
           {"run", "--policy", "lru", "true"},
           {"run", "--no-such-option", "true"},
           {"doctor", "--no-such-option"},
           {"options", "--no-such-option"},
           {"options", "--all", "--markdown"},
       }) {
    Outcome outcome = sandbox.run(words);
    EXPECT_EQ(outcome.status, 2) << (words.empty() ? "" : words.back());
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err, "");
  }
}

TEST(CommandLine, StrictRefusesABadEnvironment) {
  Sandbox sandbox;
  sandbox.install_library("bin");
  Outcome outcome = sandbox.run({"run", "--strict", "echo", "ran"}, {{"OFFLOAD_EVICTED", "maybe"}});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("OFFLOAD_EVICTED=maybe is not understood"), std::string::npos)
      << outcome.err;
  // Otherwise it is the library that says so.
  EXPECT_EQ(sandbox.run({"run", "echo", "ran"}, {{"OFFLOAD_EVICTED", "maybe"}}).out, "ran\n");
}

TEST(CommandLine, DryRunPrintsAndRunsNothing) {
  Sandbox sandbox;
  std::string library = sandbox.install_library("bin");
  Outcome outcome =
      sandbox.run({"run", "--dry-run", "--gpu-limit=50%", "sh", "-c", "echo it's run"},
                  {{"OFFLOAD_LOG", "info"}});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out,
            "LD_PRELOAD=" + library +
                "\nOFFLOAD_GPU_LIMIT=50%\nOFFLOAD_LOG=info\nsh -c 'echo it'\\''s run'\n");
}

TEST(CommandLine, WithoutItsLibraryItSaysSo) {
  Sandbox sandbox;
  Outcome outcome = sandbox.run({"run", "true"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("liboffload.so is neither beside this program nor in ../lib"),
            std::string::npos);
}

TEST(CommandLine, WhatCannotBePrintedIsAFailure) {
  Sandbox sandbox;
  for (const char* command : {"options", "doctor", "--help"}) {
    const std::string line = sandbox.program() + " " + command + " > /dev/full 2> /dev/null";
    EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 1) << command;
  }
}

TEST(CommandLine, VersionHelpAndOptions) {
  Sandbox sandbox;
  EXPECT_EQ(sandbox.run({"--version"}).out, "offload " OFFLOAD_VERSION "\n");
  EXPECT_EQ(sandbox.run({"--help"}).status, 0);
  EXPECT_NE(sandbox.run({"run", "--help"}).out.find("--gpu-limit  OFFLOAD_GPU_LIMIT="),
            std::string::npos);
  EXPECT_NE(sandbox.run({"options"}).out.find("OFFLOAD_DISABLE"), std::string::npos);
  EXPECT_EQ(sandbox.run({"options"}).out.find("OFFLOAD_GRACE"), std::string::npos);
  EXPECT_NE(sandbox.run({"options", "--all"}).out.find("OFFLOAD_GRACE"), std::string::npos);
  EXPECT_EQ(sandbox.run({"options", "--markdown"}).out.find("| variable | values |"), 0u);
}

}  // namespace
}  // namespace offload::cli
