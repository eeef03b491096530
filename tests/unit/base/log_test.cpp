// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace offload {
namespace {

std::string said;

class Log : public testing::Test {
 protected:
  void SetUp() override {
    said.clear();
    reset_log_repeats();
    set_log_level(LogLevel::kWarn);
    set_log_sink([](std::string_view line) { said += line; });
  }
  void TearDown() override {
    set_log_sink(nullptr);
    set_log_file("");
    set_log_level(LogLevel::kWarn);
  }
  static std::string prefix(const char* level) {
    return "liboffload[" + std::to_string(getpid()) + "]: " + level + ": ";
  }
};

TEST_F(Log, SaysWhoAndHowBad) {
  log_warn("%d of %s", 3, "four");
  log_error("gone");
  EXPECT_EQ(said, prefix("warn") + "3 of four\n" + prefix("error") + "gone\n");
}

TEST_F(Log, SendsNoControlCharactersToTheTerminal) {
  log_warn("%s", "a\x1b[31mb\nc\x7f\xc3\xa9");
  EXPECT_EQ(said, prefix("warn") + "a?[31mb?c?\xc3\xa9\n");
}

TEST_F(Log, SaysOnlyWhatTheLevelAllows) {
  log_info("no");
  EXPECT_EQ(said, "");
  set_log_level(LogLevel::kInfo);
  log_info("yes");
  log_debug("no");
  EXPECT_EQ(said, prefix("info") + "yes\n");
  said.clear();
  set_log_level(LogLevel::kOff);
  log_error("no");
  EXPECT_EQ(said, "");
  set_log_level(LogLevel::kTrace);
  log_debug("d");
  log_trace("t");
  EXPECT_EQ(said, prefix("debug") + "d\n" + prefix("trace") + "t\n");
}

TEST_F(Log, CutsWhatIsTooLong) {
  std::string large(5000, 'x');
  log_warn("%s", large.c_str());
  EXPECT_EQ(said.size(), 1024u);
  EXPECT_EQ(said.back(), '\n');
}

TEST_F(Log, RepeatsAFewTimes) {
  for (int i = 0; i < 100; ++i) log_warn("again %d", i);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), kRepeats);
  EXPECT_NE(said.find("again 7 (not said again)\n"), std::string::npos) << said;
  EXPECT_EQ(said.find("again 6 (not"), std::string::npos);
  said.clear();
  log_warn("something else");
  EXPECT_NE(said, "");
}

TEST_F(Log, InformationIsNotCapped) {
  set_log_level(LogLevel::kInfo);
  for (int i = 0; i < 100; ++i) log_info("again %d", i);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 100);
}

TEST_F(Log, DropsWhatIsSaidFromInside) {
  set_log_sink([](std::string_view line) {
    said += line;
    log_error("from the sink");
  });
  log_warn("outer");
  EXPECT_EQ(said, prefix("warn") + "outer\n");
}

TEST_F(Log, KeepsErrno) {
  errno = EDOM;
  log_warn("%m");
  EXPECT_EQ(errno, EDOM);
  EXPECT_NE(said.find("argument out of domain"), std::string::npos) << said;
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class LogFile : public Log {
 protected:
  void SetUp() override {
    Log::SetUp();
    set_log_sink(nullptr);
    char name[] = "/tmp/offload_log_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override {
    Log::TearDown();
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_;
};

TEST_F(LogFile, IsMadeByTheFirstMessageOnly) {
  std::string pattern = folder_ / "deep" / "log.%p";
  set_log_file(pattern.c_str());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "deep"));
  log_warn("one");
  log_warn("two");
  EXPECT_EQ(content(folder_ / "deep" / ("log." + std::to_string(getpid()))),
            prefix("warn") + "one\n" + prefix("warn") + "two\n");
}

TEST_F(LogFile, NeverOverwrites) {
  std::ofstream(folder_ / "log") << "mine";
  std::string pattern = folder_ / "log";
  set_log_file(pattern.c_str());
  log_warn("text");
  EXPECT_EQ(content(folder_ / "log"), "mine");
  EXPECT_EQ(content(folder_ / "log.1"), prefix("warn") + "text\n");
}

TEST_F(LogFile, FallsBackToStderr) {
  set_log_file("/proc/no/such/folder/log");
  testing::internal::CaptureStderr();
  log_warn("text");
  std::string out = testing::internal::GetCapturedStderr();
  EXPECT_NE(out.find("log file /proc/no/such/folder/log cannot be made"), std::string::npos) << out;
  EXPECT_NE(out.find(prefix("warn") + "text\n"), std::string::npos) << out;
}

TEST_F(LogFile, ABrokenPipeDoesNotKill) {
  pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL);
    int ends[2];
    if (pipe(ends) != 0) _exit(3);
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    log_warn("into nothing");
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace offload
