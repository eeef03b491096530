// SPDX-License-Identifier: Apache-2.0
#include "profiler/report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "profiler/base/log.h"
#include "profiler/base/units.h"
#include "tests/unit/profiler/json_values.h"

namespace offload {
namespace {

template <class Write>
std::string written(Write write) {
  std::string text;
  write(Sink{
      [](void* target, std::string_view piece) { *static_cast<std::string*>(target) += piece; },
      &text});
  return text;
}

Snapshot busy_run() {
  auto s = std::make_unique<Statistics>();
  s->start();
  s->allocations.add(5);
  s->operations.add(1234);
  s->rounding_waste_bytes.add(3 * kMiB);
  s->mapped_bytes.add(300 * kMiB);
  s->host_bytes.add(125 * kMiB);
  s->add_live(400 * kMiB);
  s->remove_live(150 * kMiB);
  s->mapped_bytes.subtract(20 * kMiB);
  s->host_bytes.subtract(kMiB);
  for (int i = 0; i < 10; ++i) s->moved_out(50000000, 50000000, 2000000);
  for (int i = 0; i < 9; ++i) s->moved_in(50000000, 50000000, 1000000);
  s->demand_misses.add(2);
  s->exposed_ns.add(12500000);
  s->waited(HostWait::slots, 1500000);
  s->waited(HostWait::slots, 500000);
  s->passed_through(PassThrough::unknown_entry);
  s->remap_ns.add(4000);
  Snapshot snapshot{};
  s->read(snapshot);
  return snapshot;
}

Snapshot idle_run() {
  auto s = std::make_unique<Statistics>();
  s->allocations.add(1);
  s->add_live(kMiB);
  Snapshot snapshot{};
  s->read(snapshot);
  return snapshot;
}

ReportFacts some_facts() {
  return {.version = "1.2.3",
          .program = "train",
          .device = "Some \"GPU\"",
          .device_total_bytes = 24 * kGiB,
          .gpu_limit_bytes = 300 * kMiB,
          .host_limit_bytes = 8 * kGiB};
}

JsonValues json_of(const Snapshot& snapshot, const ReportFacts& facts) {
  return JsonValues(written([&](Sink out) { write_json_report(snapshot, facts, out); }));
}

TEST(Report, JsonHoldsWhatItPromises) {
  JsonValues json = json_of(busy_run(), some_facts());
  EXPECT_EQ(json.at("format"), "1");
  EXPECT_EQ(json.at("version"), "1.2.3");
  EXPECT_EQ(json.at("policy"), "pressure");
  EXPECT_EQ(json.at("process"), std::to_string(getpid()));
  EXPECT_EQ(json.at("device"), "Some \\\"GPU\\\"");
  EXPECT_EQ(json.at("peak_bytes_without"), std::to_string(400 * kMiB));
  EXPECT_EQ(json.at("peak_bytes_with"), std::to_string(300 * kMiB));
  EXPECT_EQ(json.at("peak_operation"), "1234");
  EXPECT_EQ(json.at("bytes_out"), "500000000");
  EXPECT_EQ(json.at("bytes_in"), "450000000");
  EXPECT_EQ(json.at("copies_out"), "10");
  EXPECT_EQ(json.at("copies_in"), "9");
  EXPECT_EQ(json.at("demand_misses"), "2");
  EXPECT_EQ(json.at("host_waits.slots.count"), "2");
  EXPECT_EQ(json.at("host_waits.slots.seconds"), "0.002000");
  EXPECT_EQ(json.at("host_waits.queue.count"), "0");
  EXPECT_EQ(json.at("exposed_seconds"), "0.012500");
  EXPECT_EQ(json.at("host_peak_bytes"), std::to_string(125 * kMiB));
  EXPECT_EQ(json.at("rounding_waste_bytes"), std::to_string(3 * kMiB));
  EXPECT_EQ(json.at("spare_bytes"), std::to_string(22 * kMiB));
  EXPECT_EQ(json.at("gpu_limit_bytes"), std::to_string(300 * kMiB));
  EXPECT_EQ(json.at("d2h_gb_per_s"), "25.000");
  EXPECT_EQ(json.at("h2d_gb_per_s"), "50.000");
  EXPECT_EQ(json.at("pass_through.unknown_entry"), "1");
  EXPECT_EQ(json.at("top_buffers.0.bytes"), "50000000");
  EXPECT_EQ(json.at("top_buffers.0.moved_bytes"), "950000000");
  EXPECT_EQ(json.at("reason"), "null");
  EXPECT_FALSE(json.has("remap_ns")) << "times are in seconds";
}

TEST(Report, JsonHasEveryCounterAndCause) {
  JsonValues json = json_of(idle_run(), {});
#define COUNTER(name, sentence) \
  EXPECT_TRUE(json.has(#name) || std::string(#name).ends_with("_ns")) << #name;
#define HOST_WAIT(name, sentence) EXPECT_TRUE(json.has("host_waits." #name ".seconds")) << #name;
#define PASS_THROUGH(name, sentence) EXPECT_TRUE(json.has("pass_through." #name)) << #name;
#include "profiler/statistics.def"
  EXPECT_EQ(json.at("top_buffers"), "[]");
  EXPECT_EQ(json.at("d2h_gb_per_s"), "0.000");
}

TEST(Report, TellsOfEachOfSeveralDevices) {
  const Snapshot busy = busy_run();
  const Snapshot idle = idle_run();
  const DeviceFacts devices[] = {{0, "First", 24 * kGiB, 300 * kMiB, &busy},
                                 {3, "Second", 16 * kGiB, 200 * kMiB, &idle}};
  ReportFacts facts = some_facts();
  facts.devices = devices;
  JsonValues json = json_of(busy, facts);
  EXPECT_EQ(json.at("devices.0.name"), "First");
  EXPECT_EQ(json.at("devices.0.bytes_out"), "500000000");
  EXPECT_EQ(json.at("devices.0.peak_bytes_with"), std::to_string(300 * kMiB));
  EXPECT_EQ(json.at("devices.1.device"), "3");
  EXPECT_EQ(json.at("devices.1.gpu_limit_bytes"), std::to_string(200 * kMiB));
  EXPECT_EQ(json.at("devices.1.peak_bytes_without"), std::to_string(kMiB));
  EXPECT_EQ(json.at("devices.1.copies_in"), "0");
  std::string text = written([&](Sink out) { write_text_report(busy, facts, out); });
  EXPECT_NE(text.find("device 3         Second, 16 GiB; limit 200 MiB; peak 1 MiB without us, "
                      "0 B with us\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("moved out 476.84 MiB, moved in 429.15 MiB\n"), std::string::npos) << text;
  // One is told of in the head.
  facts.devices = std::span(devices).first(1);
  text = written([&](Sink out) { write_text_report(busy, facts, out); });
  EXPECT_EQ(text.find("First"), std::string::npos) << text;
  EXPECT_NE(text.find("Some \"GPU\""), std::string::npos) << text;
}

TEST(Report, MeasuredRatesWin) {
  ReportFacts facts = some_facts();
  facts.d2h_bytes_per_s = 13.5e9;
  EXPECT_EQ(json_of(busy_run(), facts).at("d2h_gb_per_s"), "13.500");
}

TEST(Report, SaysWhyNothingWasMoved) {
  EXPECT_EQ(json_of(idle_run(), {}).at("reason"), "it_fitted");
  std::string text = written([](Sink out) { write_text_report(idle_run(), {}, out); });
  EXPECT_NE(text.find("Nothing was moved: everything fitted: free memory never fell below the "
                      "watermark.\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("moved out"), std::string::npos) << text;
}

TEST(Report, SaysWhyMovingStopped) {
  Snapshot snapshot = busy_run();
  snapshot.reason = Reason::unknown_entry;
  snapshot.reason_given = true;
  EXPECT_EQ(json_of(snapshot, {}).at("reason"), "unknown_entry");
  std::string text = written([&](Sink out) { write_text_report(snapshot, {}, out); });
  EXPECT_NE(text.find("Moving stopped: the program called"), std::string::npos) << text;
}

// Host memory may have room again later: moving goes on.
TEST(Report, SaysThatHostMemoryWasAtItsLimitAtTimes) {
  Snapshot snapshot = busy_run();
  snapshot.reason = Reason::host_memory_exhausted;
  snapshot.reason_given = true;
  std::string text = written([&](Sink out) { write_text_report(snapshot, {}, out); });
  EXPECT_NE(text.find("Less could leave at times: host memory"), std::string::npos) << text;
  EXPECT_EQ(text.find("Moving stopped"), std::string::npos) << text;
}

TEST(Report, SaysThatItsNumbersAreNotFinal) {
  ReportFacts facts;
  facts.incomplete = "the program ended in the middle of a call";
  EXPECT_EQ(json_of(busy_run(), {}).at("incomplete"), "null");
  EXPECT_EQ(json_of(busy_run(), facts).at("incomplete"), std::string(facts.incomplete));
  EXPECT_EQ(json_of(idle_run(), facts).at("reason"), "null") << "nobody knows";
  std::string text = written([&](Sink out) { write_text_report(idle_run(), facts, out); });
  EXPECT_NE(text.find("  The numbers are not final: the program ended"), std::string::npos) << text;
  EXPECT_EQ(text.find("everything fitted"), std::string::npos) << text;
}

TEST(Report, SendsNoControlCharactersToTheTerminal) {
  ReportFacts facts = some_facts();
  facts.program = "e\x1b[31mred";
  std::string text = written([&](Sink out) { write_text_report(busy_run(), facts, out); });
  EXPECT_NE(text.find("liboffload 1.2.3: e?[31mred, process "), std::string::npos) << text;
}

TEST(Report, TextReadsWell) {
  std::string text = written([](Sink out) { write_text_report(busy_run(), some_facts(), out); });
  for (const char* line : {
           "liboffload 1.2.3: train, process ",
           "  policy           pressure\n",
           "  device           Some \"GPU\", 24 GiB; limit 300 MiB\n",
           "  peak without us  400 MiB of live buffers, at operation 1234 (",
           "  peak with us     300 MiB of device memory mapped, 25% less\n",
           "  rounding waste   3 MiB at the peak; 22 MiB more were kept for later\n",
           "  host memory      125 MiB at most, of 8 GiB allowed\n",
           "  moved out        476.84 MiB in 10 buffers, 25.00 GB/s\n",
           "  moved in         429.15 MiB in 9 buffers, 50.00 GB/s\n",
           "  demand misses    2\n",
           "  exposed time     12.5 ms that the device stood waiting for copies\n",
           "  host waits       2 times, 2.0 ms: host memory was being pinned, or none was free\n",
           "  passed through   1 calls: the driver's entry point is not known to liboffload\n",
           "  moved most       buffers of 47.68 MiB: 905.99 MiB, out 10 times, in 9 times\n",
       }) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nin\n" << text;
  }
  EXPECT_EQ(text.find("Nothing was moved"), std::string::npos);
}

// A small run maps more than the program has: pages, and what is parked.
TEST(Report, SaysWhyMoreWasMappedThanLived) {
  Snapshot snapshot = idle_run();
  snapshot.live_bytes.peak = 8004;
  snapshot.mapped_bytes.peak = std::uint64_t{14} << 20;
  std::string text = written([&](Sink out) { write_text_report(snapshot, {}, out); });
  EXPECT_NE(text.find("  peak with us     14 MiB of device memory mapped, 13.99 MiB more: whole "
                      "pages, and what is kept for the next request\n"),
            std::string::npos)
      << text;
  snapshot.mapped_bytes.peak = snapshot.live_bytes.peak;
  text = written([&](Sink out) { write_text_report(snapshot, {}, out); });
  EXPECT_NE(text.find("7.82 KiB of device memory mapped\n"), std::string::npos) << text;
}

class ReportFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/offload_report_XXXXXX";
    folder_ = mkdtemp(name);
    unsetenv("RANK");
    set_defaults(options_);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    set_log_level(LogLevel::kWarn);
    unsetenv("RANK");
  }
  void set(OptionId id, const std::string& text) {
    ASSERT_TRUE(set_option(options_, id, text, OptionSource::kEnvironment));
  }
  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string write() {
    testing::internal::CaptureStderr();
    write_report(options_, some_facts(), busy_run());
    return testing::internal::GetCapturedStderr();
  }
  std::filesystem::path folder_;
  Options options_{};
};

TEST_F(ReportFile, OffIsSilent) {
  EXPECT_EQ(write(), "");
}

TEST_F(ReportFile, TextGoesToStderr) {
  set(OptionId::report, "text");
  EXPECT_EQ(write().find("liboffload 1.2.3: train"), 0u);
}

TEST_F(ReportFile, JsonGoesToItsDefaultFile) {
  set(OptionId::report, "json");
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  EXPECT_EQ(write(), "");
  setenv("RANK", "2", 1);
  EXPECT_EQ(write(), "");
  std::filesystem::current_path(before);
  std::string pid = std::to_string(getpid());
  EXPECT_EQ(JsonValues(content(folder_ / ("offload-report." + pid + ".json"))).at("rank"), "");
  EXPECT_EQ(JsonValues(content(folder_ / ("offload-report.2." + pid + ".json"))).at("rank"), "2");
}

TEST_F(ReportFile, GoesWhereItIsTold) {
  set(OptionId::report, "text");
  set(OptionId::report_file, (folder_ / "a" / "summary").string());
  set_log_level(LogLevel::kInfo);
  std::string said = write();
  EXPECT_NE(said.find("info: the summary is in " + (folder_ / "a" / "summary").string() + "\n"),
            std::string::npos)
      << said;
  write();
  EXPECT_EQ(content(folder_ / "a" / "summary").find("liboffload 1.2.3"), 0u);
  EXPECT_EQ(content(folder_ / "a" / "summary.1").find("liboffload 1.2.3"), 0u);
}

TEST_F(ReportFile, TextThatCannotBeWrittenComesAnyway) {
  set(OptionId::report, "text");
  set(OptionId::report_file, "/proc/nowhere/summary");
  std::string said = write();
  EXPECT_NE(said.find("cannot be written to /proc/nowhere/summary"), std::string::npos) << said;
  EXPECT_NE(said.find("liboffload 1.2.3: train"), std::string::npos) << said;
}

TEST_F(ReportFile, JsonThatCannotBeWrittenIsLost) {
  set(OptionId::report, "json");
  set(OptionId::report_file, "/dev/null/x");
  std::string said = write();
  EXPECT_NE(said.find("it is lost"), std::string::npos) << said;
  EXPECT_EQ(said.find("peak_bytes"), std::string::npos) << said;
}

}  // namespace
}  // namespace offload
