// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/options.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "profiler/base/log.h"
#include "profiler/base/options_environment.h"
#include "profiler/base/units.h"

namespace offload {
namespace {

struct Reading {
  Options options;
  OptionProblems problems;
  bool usable;
  std::string all_messages() const {
    std::string all;
    for (std::size_t i = 0; i < problems.kept(); ++i)
      all += std::string(problems.messages[i]) + "\n";
    return all;
  }
};

Reading read(const std::vector<std::string>& variables) {
  std::vector<const char*> block;
  for (const std::string& variable : variables) block.push_back(variable.c_str());
  block.push_back(nullptr);
  Reading reading{};
  reading.usable = read_options(block.data(), reading.options, reading.problems);
  return reading;
}

TEST(Options, DefaultsAreAsDesigned) {
  Reading r = read({});
  EXPECT_TRUE(r.usable);
  EXPECT_EQ(r.problems.count, 0u);
  const Options& o = r.options;
  EXPECT_FALSE(o.disable);
  EXPECT_EQ(o.mode, Mode::kOffload);
  EXPECT_EQ(o.policy, PolicyName::kPressure);
  EXPECT_TRUE(o.gpu_limit.is_part);
  EXPECT_EQ(o.gpu_limit.of(24 * kGiB), 24 * kGiB);
  EXPECT_DOUBLE_EQ(o.watermark, 0.1);
  EXPECT_EQ(o.host_limit.of(100 * kGiB), 80 * kGiB);
  EXPECT_EQ(o.min_size_bytes, 4 * kMiB);
  EXPECT_EQ(o.evicted, Evicted::kAuto);
  EXPECT_EQ(o.victims, Victims::kOrdered);
  EXPECT_EQ(o.pytorch_alloc, PytorchAlloc::kAsync);
  EXPECT_EQ(o.ipc, Ipc::kManaged);
  EXPECT_EQ(o.log, LogLevel::kWarn);
  EXPECT_TRUE(o.log_file.empty());
  EXPECT_EQ(o.report, Report::kOff);
  EXPECT_TRUE(o.report_file.empty());
  EXPECT_TRUE(o.transfers.empty());
  EXPECT_FALSE(o.strict);
  EXPECT_FALSE(o.verify);
  EXPECT_EQ(o.grace_operations, 16u);
  EXPECT_EQ(o.queue_depth, 512u);
  EXPECT_EQ(o.slot_chunk_bytes, 64 * kMiB);
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    EXPECT_EQ(o.source[i], OptionSource::kDefault) << option_table()[i].name;
  }
}

TEST(Options, EveryDefaultIsAValueOfItsOption) {
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    Options options{};
    EXPECT_TRUE(set_option(options, static_cast<OptionId>(i), option_table()[i].default_text,
                           OptionSource::kDefault))
        << option_table()[i].name;
  }
}

TEST(Options, GoodValuesAreTaken) {
  Reading r = read({"PATH=/bin",
                    "OFFLOAD_DISABLE=yes",
                    "OFFLOAD_MODE=Observe",
                    "OFFLOAD_POLICY=none",
                    "OFFLOAD_GPU_LIMIT=1.5GiB",
                    "OFFLOAD_WATERMARK=0.25",
                    "OFFLOAD_HOST_LIMIT=0",
                    "OFFLOAD_MIN_SIZE=64KiB",
                    "OFFLOAD_EVICTED=unmapped",
                    "OFFLOAD_VICTIMS=finished",
                    "OFFLOAD_PYTORCH_ALLOC=native",
                    "OFFLOAD_IPC=native",
                    "OFFLOAD_LOG=trace",
                    "OFFLOAD_LOG_FILE=/x/%h.%p",
                    "OFFLOAD_REPORT=json",
                    "OFFLOAD_REPORT_FILE=r.%r.json",
                    "OFFLOAD_TRANSFERS=t%%.csv",
                    "OFFLOAD_STRICT=on",
                    "OFFLOAD_VERIFY=true",
                    "OFFLOAD_GRACE=0",
                    "OFFLOAD_QUEUE_DEPTH=2",
                    "OFFLOAD_SLOT_CHUNK=2MiB"});
  EXPECT_TRUE(r.usable);
  EXPECT_EQ(r.all_messages(), "");
  const Options& o = r.options;
  EXPECT_TRUE(o.disable);
  EXPECT_EQ(o.mode, Mode::kObserve);
  EXPECT_EQ(o.policy, PolicyName::kNone);
  EXPECT_EQ(o.gpu_limit.of(24 * kGiB), kGiB + kGiB / 2);
  EXPECT_EQ(o.gpu_limit.of(kGiB), kGiB);
  EXPECT_DOUBLE_EQ(o.watermark, 0.25);
  EXPECT_EQ(o.host_limit.of(kGiB), 0u);
  EXPECT_EQ(o.min_size_bytes, 64 * kKiB);
  EXPECT_EQ(o.evicted, Evicted::kUnmapped);
  EXPECT_EQ(o.victims, Victims::kFinished);
  EXPECT_EQ(o.pytorch_alloc, PytorchAlloc::kNative);
  EXPECT_EQ(o.ipc, Ipc::kNative);
  EXPECT_EQ(o.log, LogLevel::kTrace);
  EXPECT_STREQ(o.log_file.c_str(), "/x/%h.%p");
  EXPECT_EQ(o.report, Report::kJson);
  EXPECT_STREQ(o.report_file.c_str(), "r.%r.json");
  EXPECT_STREQ(o.transfers.c_str(), "t%%.csv");
  EXPECT_TRUE(o.strict);
  EXPECT_TRUE(o.verify);
  EXPECT_EQ(o.grace_operations, 0u);
  EXPECT_EQ(o.queue_depth, 2u);
  EXPECT_EQ(o.slot_chunk_bytes, 2 * kMiB);
  for (OptionSource source : o.source) EXPECT_EQ(source, OptionSource::kEnvironment);
}

TEST(Options, AReportFileWithoutAReportIsSaid) {
  const Reading silent = read({"OFFLOAD_REPORT=json", "OFFLOAD_REPORT_FILE=r.json"});
  EXPECT_EQ(silent.all_messages(), "");
  const Reading said = read({"OFFLOAD_REPORT_FILE=r.json"});
  EXPECT_TRUE(said.usable);
  EXPECT_NE(said.all_messages().find("OFFLOAD_REPORT is off, so no report is written"),
            std::string::npos)
      << said.all_messages();
}

struct Wrong {
  const char* name;
  std::vector<std::string> values;
};

const std::vector<Wrong>& wrong_values() {
  static const std::vector<Wrong> kWrong = {
      {"DISABLE", {"maybe", "2", "-1"}},
      {"MODE", {"off", "profile", "0", "offload,observe"}},
      {"POLICY", {"lru", "pressure ure", "1"}},
      {"GPU_LIMIT", {"0", "0%", "101%", "-1GiB", "1.5.5GiB", "24 gigs", "99999999999TiB", "all"}},
      {"WATERMARK", {"10", "95%", "1.5", "-10%", "alpha", "1GiB"}},
      {"HOST_LIMIT", {"120%", "-5%", "80 percent", "1e9"}},
      {"MIN_SIZE", {"0", "1KiB", "2TiB", "10%", "big"}},
      {"EVICTED", {"alias", "device", "1"}},
      {"VICTIMS", {"all", "order"}},
      {"PYTORCH_ALLOC", {"cudaMallocAsync", "cached"}},
      {"IPC", {"1", "shared"}},
      {"LOG", {"verbose", "3", "warning"}},
      {"LOG_FILE", {"log.%d", "log%", std::string(1024, 'x')}},
      {"REPORT", {"html", "1", "yes"}},
      {"REPORT_FILE", {"%e.json", "100%.json"}},
      {"TRANSFERS", {"%", "%%%"}},
      {"STRICT", {"very", "10"}},
      {"VERIFY", {"checksum", "11"}},
      {"GRACE", {"-1", "1.5", "100001", "many", "16 ops"}},
      {"QUEUE_DEPTH", {"0", "100001", "-1", "many"}},
      {"SLOT_CHUNK", {"0", "1024", "65GiB", "50%"}},
  };
  return kWrong;
}

TEST(Options, EveryOptionHasWrongValuesHere) {
  std::set<std::string> covered;
  for (const Wrong& wrong : wrong_values()) covered.insert(wrong.name);
  for (const OptionInfo& info : option_table()) {
    EXPECT_TRUE(covered.count(std::string(info.name))) << info.name;
  }
}

TEST(Options, AWrongValueIsNamedAndTheDefaultHolds) {
  for (const Wrong& wrong : wrong_values()) {
    OptionId id{};
    ASSERT_TRUE(find_option(wrong.name, id));
    const OptionInfo& info = option_info(id);
    char default_value[64];
    info.print(read({}).options, std::span<char>(default_value));
    for (const std::string& value : wrong.values) {
      Reading r = read({"OFFLOAD_" + std::string(wrong.name) + "=" + value});
      EXPECT_TRUE(r.usable);
      ASSERT_EQ(r.problems.count, 1u) << wrong.name << "=" << value;
      std::string message = r.problems.messages[0];
      // What failed, what happens instead, how to mend it.
      EXPECT_EQ(message.find("OFFLOAD_" + std::string(wrong.name) + "=" + value.substr(0, 64)), 0u)
          << message;
      EXPECT_NE(message.find("using the default, "), std::string::npos) << message;
      EXPECT_NE(message.find("; expected "), std::string::npos) << message;
      EXPECT_LT(message.size(), OptionProblems::kMessageBytes - 1) << "cut: " << message;
      char now[64];
      info.print(r.options, std::span<char>(now));
      EXPECT_STREQ(now, default_value) << wrong.name << "=" << value;
      EXPECT_EQ(r.options.source_of(id), OptionSource::kRejected);
    }
  }
}

TEST(Options, StrictMakesAWrongValueFatal) {
  for (const Wrong& wrong : wrong_values()) {
    if (std::string(wrong.name) == "STRICT") continue;
    Reading r =
        read({"OFFLOAD_" + std::string(wrong.name) + "=" + wrong.values[0], "OFFLOAD_STRICT=1"});
    EXPECT_FALSE(r.usable) << wrong.name;
    EXPECT_TRUE(r.options.disable) << wrong.name;
    const std::string message = r.problems.messages[0];
    EXPECT_EQ(message.find("default"), std::string::npos) << message;
    EXPECT_NE(message.find("is not understood; expected "), std::string::npos) << message;
  }
  // An unknown name is not a wrong value.
  EXPECT_TRUE(read({"OFFLOAD_STRICT=1", "OFFLOAD_FOO=1"}).usable);
}

TEST(Options, MessagesReadWell) {
  EXPECT_EQ(read({"OFFLOAD_POLICY=lru"}).all_messages(),
            "OFFLOAD_POLICY=lru is not understood; using the default, pressure; expected pressure "
            "or none\n");
  EXPECT_EQ(
      read({"OFFLOAD_MIN_SIZE=1"}).all_messages(),
      "OFFLOAD_MIN_SIZE=1 is not understood; using the default, 4MiB; expected a size such as "
      "512MiB, from 4KiB to 1TiB\n");
  EXPECT_EQ(read({"OFFLOAD_LOG=loud\nfake: line"}).all_messages().find('\n'),
            read({"OFFLOAD_LOG=loud\nfake: line"}).all_messages().size() - 1);
}

TEST(Options, AnUnknownNameGetsTheNearest) {
  struct Case {
    const char* variable;
    const char* nearest;
  };
  for (const Case& c : {Case{"OFFLOAD_GPU_LIMT=1GiB", "OFFLOAD_GPU_LIMIT"},
                        Case{"OFFLOAD_LIMIT=1GiB", "OFFLOAD_GPU_LIMIT"},
                        Case{"OFFLOAD_PLOICY=none", "OFFLOAD_POLICY"},
                        Case{"OFFLOAD_GPULIMIT=1GiB", "OFFLOAD_GPU_LIMIT"},
                        Case{"OFFLOAD_DISABLED=1", "OFFLOAD_DISABLE"},
                        Case{"OFFLOAD_REPORTFILE=x", "OFFLOAD_REPORT_FILE"},
                        Case{"OFFLOAD_TRANSFER=x", "OFFLOAD_TRANSFERS"}}) {
    Reading r = read({c.variable});
    ASSERT_EQ(r.problems.count, 1u) << c.variable;
    EXPECT_NE(r.all_messages().find(std::string("did you mean ") + c.nearest + "?"),
              std::string::npos)
        << r.all_messages();
    EXPECT_EQ(r.problems.bad_values, 0u);
  }
  EXPECT_EQ(read({"OFFLOAD_XYZZY=1"}).all_messages(),
            "OFFLOAD_XYZZY is not an option and is ignored; \"offload options\" lists them all\n");
  EXPECT_NE(read({"OFFLOAD_=1"}).all_messages(), "");
  EXPECT_NE(read({"OFFLOAD_" + std::string(300, 'A') + "=1"}).all_messages().find("..."),
            std::string::npos);
  EXPECT_NE(read({"OFFLOAD_gpu_limit=1GiB"}).all_messages(), "");
}

TEST(Options, NamesOfOthersAreLeftAlone) {
  Reading r = read({"OFFLOAD_TRACE=1", "OFFLOAD_TRACK_ALLOCATION_TRACES=true", "OFFLOADER=2",
                    "LIBOFFLOAD_DEBUG=1", "XOFFLOAD_MODE=x", "OFFLOAD_WITHOUT_EQUALS"});
  EXPECT_EQ(r.all_messages(), "");
}

TEST(Options, AnEmptyValueIsNoValue) {
  Reading r = read({"OFFLOAD_MODE=", "OFFLOAD_REPORT_FILE=", "OFFLOAD_GPU_LIMIT="});
  EXPECT_EQ(r.all_messages(), "");
  EXPECT_EQ(r.options.source_of(OptionId::mode), OptionSource::kDefault);
}

TEST(Options, TheFirstOfTwoWins) {
  EXPECT_EQ(read({"OFFLOAD_MODE=observe", "OFFLOAD_MODE=offload"}).options.mode, Mode::kObserve);
  Reading r = read({"OFFLOAD_MODE=x", "OFFLOAD_MODE=observe"});
  EXPECT_EQ(r.options.mode, Mode::kOffload);
  EXPECT_EQ(r.problems.count, 1u);
}

TEST(Options, ManyProblemsAreCounted) {
  std::vector<std::string> variables;
  for (int i = 0; i < 20; ++i) variables.push_back("OFFLOAD_UNKNOWN" + std::to_string(i) + "=1");
  Reading r = read(variables);
  EXPECT_EQ(r.problems.count, 20u);
  EXPECT_EQ(r.problems.kept(), OptionProblems::kCapacity);
}

TEST(Options, NoEnvironmentAtAll) {
  Options options{};
  OptionProblems problems{};
  EXPECT_TRUE(read_options(nullptr, options, problems));
  EXPECT_EQ(options.min_size_bytes, 4 * kMiB);
}

TEST(Options, AnyTextIsReadSafely) {
  // Pieces of what the parsers look for, put together at random: whatever comes, every field holds
  // a value that its option takes.
  const std::vector<std::string> pieces = {"0",  "1",  "9999999999", ".",    "%",    "-",    "MiB",
                                           "GB", " ",  "p",          "none", "json", "\xff", "\n",
                                           "e9", "0x", "offload",    "%p",   ".."};
  std::mt19937 random(11);
  for (int round = 0; round < 20000; ++round) {
    const OptionInfo& info = option_table()[random() % kOptionCount];
    std::string value;
    for (std::size_t length = random() % 6; length > 0; --length)
      value += pieces[random() % pieces.size()];
    Reading r = read({"OFFLOAD_" + std::string(info.name) + "=" + value});
    OptionId id{};
    ASSERT_TRUE(find_option(info.name, id));
    bool refused = r.options.source_of(id) == OptionSource::kRejected;
    // A file for a report that is off is said, too.
    const bool useless = id == OptionId::report_file && !refused && !value.empty();
    EXPECT_EQ(r.problems.count, refused || useless ? 1u : 0u) << info.name << "=" << value;
    char printed[Text::kCapacity];
    info.print(r.options, std::span<char>(printed));
    Options again{};
    // A default that no file name is given stays empty; a percentage is printed with one decimal,
    // so tiny ones print as none.
    bool tiny =
        std::string(printed) == "0%" && value.find_first_not_of("0.% ") != std::string::npos;
    EXPECT_TRUE(tiny || info.parse(printed, info.range, again))
        << info.name << "=" << value << " printed as " << printed;
  }
}

std::string said;

TEST(Options, ProblemsAreSaidOnce) {
  set_log_sink([](std::string_view line) { said += line; });
  reset_log_repeats();
  Reading r = read({"OFFLOAD_STRICT=1", "OFFLOAD_MODE=x", "OFFLOAD_FOO_BAR_BAZ=1"});
  said.clear();
  start_log(r.options, r.problems);
  EXPECT_NE(said.find("warn: OFFLOAD_MODE=x is not understood"), std::string::npos) << said;
  EXPECT_NE(said.find("warn: OFFLOAD_FOO_BAR_BAZ is not an option"), std::string::npos) << said;
  EXPECT_NE(
      said.find("error: an option's value is bad and OFFLOAD_STRICT=1: liboffload stays inactive"),
      std::string::npos)
      << said;
  Reading quiet = read({"OFFLOAD_LOG=off", "OFFLOAD_MODE=x"});
  said.clear();
  start_log(quiet.options, quiet.problems);
  EXPECT_EQ(said, "");
  set_log_sink(nullptr);
  set_log_level(LogLevel::kWarn);
}

}  // namespace
}  // namespace offload
