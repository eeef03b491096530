// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/option_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "profiler/base/options_environment.h"

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

TEST(OptionText, FlagsAreInKebabCase) {
  char flag[48];
  flag_name(option_info(OptionId::min_size_bytes), std::span<char>(flag));
  EXPECT_STREQ(flag, "--min-size");
}

TEST(OptionText, HelpNamesEveryOption) {
  std::string help = written([](Sink out) { write_option_help(out, true); });
  for (const OptionInfo& info : option_table()) {
    EXPECT_NE(help.find("OFFLOAD_" + std::string(info.name) + "="), std::string::npos) << info.name;
  }
  EXPECT_NE(help.find("--mode  OFFLOAD_MODE=offload|observe\n"), std::string::npos);
  EXPECT_NE(help.find("Default: 4MiB, 4KiB to 1TiB\n"), std::string::npos);
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(OptionText, TestOptionsAreKeptFromUsers) {
  EXPECT_EQ(written([](Sink out) { write_option_help(out, false); }).find("GRACE"),
            std::string::npos);
  std::string table = written(write_option_markdown);
  EXPECT_EQ(table.find("GRACE"), std::string::npos);
  EXPECT_NE(table.find("| `OFFLOAD_GPU_LIMIT` | SIZE or PERCENT, 1 to 100% | `100%` | "),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("| `OFFLOAD_REPORT` | off, text, json | `off` | "), std::string::npos)
      << table;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 5) << line;
  }
}

TEST(OptionText, StartLineTellsWhoSetWhat) {
  const char* environment[] = {"OFFLOAD_GPU_LIMIT=314572800", "OFFLOAD_POLICY=none",
                               "OFFLOAD_LOG=x", nullptr};
  Options options{};
  OptionProblems problems{};
  read_options(environment, options, problems);
  std::string text = written([&](Sink out) { write_option_values(options, out); });
  EXPECT_EQ(text.find("POLICY=none GPU_LIMIT=300MiB (environment); DISABLE=0 MODE=offload "), 0u)
      << text;
  EXPECT_NE(text.find("LOG=warn"), std::string::npos) << text;
  EXPECT_EQ(text.find("REPORT_FILE"), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.size() - 10), " (default)") << text;
  EXPECT_LT(text.size(), 400u);
}

}  // namespace
}  // namespace offload
