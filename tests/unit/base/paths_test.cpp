// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/paths.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace offload {
namespace {

constexpr const char* kRankNames[] = {"RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID",
                                      "PMI_RANK"};

class Paths : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kRankNames) unsetenv(name);
    char name[] = "/tmp/offload_paths_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override {
    for (const char* name : kRankNames) unsetenv(name);
    std::filesystem::remove_all(folder_);
  }
  static std::string expand(const char* pattern) {
    char path[kPathBytes];
    return expand_pattern(pattern, path) ? path : "(failed)";
  }
  std::filesystem::path folder_;
};

TEST_F(Paths, RankComesFromTheFirstLauncherThatGaveANumber) {
  EXPECT_EQ(process_rank(), "");
  for (int i = 4; i >= 0; --i) {
    setenv(kRankNames[i], std::to_string(10 + i).c_str(), 1);
    EXPECT_EQ(process_rank(), std::to_string(10 + i)) << kRankNames[i];
  }
  setenv("RANK", "../../etc", 1);
  EXPECT_EQ(process_rank(), "11");
  setenv("RANK", "", 1);
  EXPECT_EQ(process_rank(), "11");
}

TEST_F(Paths, Expands) {
  std::string pid = std::to_string(getpid());
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, sizeof host);
  EXPECT_EQ(expand("a/b"), "a/b");
  EXPECT_EQ(expand("x.%p.%h"), "x." + pid + "." + host);
  EXPECT_EQ(expand("50%%"), "50%");
  EXPECT_EQ(expand("%x%"), "%x%");
  setenv("RANK", "3", 1);
  EXPECT_EQ(expand("r.%r.%p.json"), "r.3." + pid + ".json");
  EXPECT_EQ(expand("%r"), "3");
}

TEST_F(Paths, WithoutARankItsJointGoesToo) {
  std::string pid = std::to_string(getpid());
  EXPECT_EQ(expand("offload-report.%r.%p.json"), "offload-report." + pid + ".json");
  EXPECT_EQ(expand("%r.log"), "log");
  EXPECT_EQ(expand("out/rank%r/x"), "out/rank/x");
  EXPECT_EQ(expand("a-%r-b"), "a-b");
  EXPECT_EQ(expand("%r"), "(failed)");
}

TEST_F(Paths, RefusesWhatDoesNotFit) {
  char path[8];
  EXPECT_TRUE(expand_pattern("1234567", path));
  EXPECT_FALSE(expand_pattern("12345678", path));
  EXPECT_FALSE(expand_pattern("", path));
}

TEST_F(Paths, MakesFoldersAndNeverOverwrites) {
  std::string pattern = folder_ / "a//b" / "file.csv";
  char taken[kPathBytes];
  for (const char* suffix : {"", ".1", ".2"}) {
    int descriptor = create_from_pattern(pattern, taken);
    ASSERT_GE(descriptor, 0);
    EXPECT_EQ(std::string(taken), pattern + suffix);
    EXPECT_TRUE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    EXPECT_TRUE(fcntl(descriptor, F_GETFL) & O_APPEND);
    close(descriptor);
  }
}

TEST_F(Paths, WhatIsNoRegularFileIsOpenedAsItIs) {
  char taken[kPathBytes];
  const int device = create_from_pattern("/dev/null", taken);
  ASSERT_GE(device, 0);
  EXPECT_STREQ(taken, "/dev/null");
  close(device);
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(create_from_pattern(pipe, taken), -1) << "waits for nobody";
  EXPECT_EQ(errno, ENXIO);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  const int writer = create_from_pattern(pipe, taken);
  ASSERT_GE(writer, 0);
  EXPECT_EQ(fcntl(writer, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(write(writer, "x", 1), 1);
  close(writer);
  close(reader);
}

TEST_F(Paths, StandardStreamsAreOpenedAsTheyAre) {
  const std::string file = folder_ / "errors";
  const int kept = dup(STDERR_FILENO);
  close(STDERR_FILENO);
  ASSERT_EQ(open(file.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), STDERR_FILENO);
  char taken[kPathBytes];
  const int descriptor = create_from_pattern("/dev/stderr", taken);
  EXPECT_EQ(write(descriptor, "text", 4), 4);
  close(descriptor);
  dup2(kept, STDERR_FILENO);
  close(kept);
  EXPECT_STREQ(taken, "/dev/stderr");
  EXPECT_EQ(std::filesystem::file_size(file), 4u);
}

TEST_F(Paths, OurFilesAreNobodysStandardStream) {
  const int kept = dup(STDERR_FILENO);
  close(STDERR_FILENO);
  char taken[kPathBytes];
  const int descriptor = create_from_pattern(std::string(folder_ / "new"), taken);
  EXPECT_EQ(fcntl(STDERR_FILENO, F_GETFD), -1);
  dup2(kept, STDERR_FILENO);
  close(kept);
  EXPECT_GT(descriptor, STDERR_FILENO);
  close(descriptor);
}

TEST_F(Paths, AFolderAndNoNameAreNoFiles) {
  char taken[kPathBytes];
  EXPECT_EQ(create_from_pattern(std::string(folder_), taken), -1);
  EXPECT_EQ(errno, EISDIR);
  EXPECT_STREQ(file_error_text(errno), "it is a folder");
  EXPECT_EQ(create_from_pattern("%r", taken), -1);
  EXPECT_STREQ(file_error_text(errno), "it gives no name: this process has no rank for %r");
}

TEST_F(Paths, TellsWhyItFailed) {
  char taken[kPathBytes];
  std::string file = folder_ / "file";
  close(open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_EQ(create_from_pattern(file + "/below/x", taken), -1);
  EXPECT_EQ(errno, ENOTDIR);
  std::string long_name = folder_ / std::string(300, 'x');
  EXPECT_EQ(create_from_pattern(long_name, taken), -1);
  EXPECT_EQ(errno, ENAMETOOLONG);
}

}  // namespace
}  // namespace offload
