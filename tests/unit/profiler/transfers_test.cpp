// SPDX-License-Identifier: Apache-2.0
#include "profiler/transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "profiler/base/log.h"

namespace offload {
namespace {

class Transfers : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/offload_transfers_XXXXXX";
    folder_ = mkdtemp(name);
    pattern_ = folder_ / "t.csv";
    log_ = std::make_unique<TransferLog>();
    reset_log_repeats();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string content() const {
    std::ifstream file(folder_ / "t.csv");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::filesystem::path folder_;
  std::string pattern_;
  std::unique_ptr<TransferLog> log_;
};

TEST_F(Transfers, WritesALinePerCopy) {
  log_->set_file(pattern_.c_str());
  EXPECT_FALSE(std::filesystem::exists(pattern_));
  log_->record({1500000000, Direction::kOut, 7, 50000000, 2000000, 99});
  log_->record({1600000000, Direction::kIn, 7, 50000000, 0, 100, 3});
  EXPECT_EQ(content(),
            "time_s,direction,buffer,bytes,gb_per_s,position,device\n"
            "1.500000,out,7,50000000,25.000,99,0\n"
            "1.600000,in,7,50000000,,100,3\n");
}

TEST_F(Transfers, AFullDiskEndsTheListAndIsSaid) {
  static std::string said;
  said.clear();
  set_log_sink([](std::string_view text) { said += text; });
  log_->set_file("/dev/full");
  for (int i = 0; i < 3; ++i) log_->record({1500000000, Direction::kOut, 7, 50000000, 2000000, 99});
  set_log_sink(nullptr);
  EXPECT_NE(said.find("ends early: the disk is full"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(Transfers, AListWithoutTransfersIsEmpty) {
  log_->set_file(pattern_.c_str());
  log_->open();
  log_->open();
  EXPECT_EQ(content(), "time_s,direction,buffer,bytes,gb_per_s,position,device\n");
}

TEST_F(Transfers, WithoutAFileNothingIsDone) {
  log_->set_file("");
  EXPECT_FALSE(log_->wanted());
  log_->record({});
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Transfers, LinesOfManyThreadsStayWhole) {
  log_->set_file(pattern_.c_str());
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 500; ++i) log_->record({i, Direction::kOut, t, 4096, 1, i});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::istringstream lines(content());
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 6) << line;
    ++count;
  }
  EXPECT_EQ(count, 2001);
}

TEST_F(Transfers, TheFileIsMadeOnce) {
  // Two threads begin at the same moment, again and again.
  constexpr int kRounds = 200;
  auto logs = std::make_unique<TransferLog[]>(kRounds);
  std::vector<std::string> patterns;
  for (int i = 0; i < kRounds; ++i) patterns.push_back(folder_ / ("t" + std::to_string(i)));
  for (int i = 0; i < kRounds; ++i)
    logs[static_cast<std::size_t>(i)].set_file(patterns[static_cast<std::size_t>(i)].c_str());
  std::atomic<int> arrived = 0;
  auto race = [&] {
    for (int i = 0; i < kRounds; ++i) {
      arrived.fetch_add(1);
      while (arrived.load() < 2 * (i + 1)) std::this_thread::yield();
      logs[static_cast<std::size_t>(i)].record({});
    }
  };
  std::thread other(race);
  race();
  other.join();
  std::filesystem::directory_iterator files(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), kRounds);
}

TEST_F(Transfers, AFileThatCannotBeMadeIsSaidOnce) {
  log_->set_file("/proc/nowhere/t.csv");
  testing::internal::CaptureStderr();
  log_->record({});
  log_->record({});
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("OFFLOAD_TRANSFERS"), std::string::npos);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

}  // namespace
}  // namespace offload
