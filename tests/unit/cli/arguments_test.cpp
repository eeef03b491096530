// SPDX-License-Identifier: Apache-2.0
#include "interpose/cli/arguments.h"

#include <gtest/gtest.h>

#include "profiler/base/option_text.h"

namespace offload::cli {
namespace {

using Words = std::vector<std::string>;

TEST(RunArguments, OptionsThenCommand) {
  RunArguments a = read_run_arguments(
      {"--gpu-limit", "1GiB", "--policy=none", "--verify", "python", "--mode", "x.py"});
  EXPECT_EQ(a.error, "");
  ASSERT_EQ(a.options.size(), 3u);
  EXPECT_EQ(a.options[0], std::make_pair(OptionId::gpu_limit, std::string("1GiB")));
  EXPECT_EQ(a.options[1], std::make_pair(OptionId::policy, std::string("none")));
  EXPECT_EQ(a.options[2], std::make_pair(OptionId::verify, std::string("1")));
  EXPECT_EQ(a.command, (Words{"python", "--mode", "x.py"}));
  EXPECT_FALSE(a.dry_run);
}

TEST(RunArguments, ASwitchMayHaveItsValueBesideIt) {
  RunArguments a = read_run_arguments({"--verify", "0", "--strict", "1", "--disable", "10", "x"});
  ASSERT_EQ(a.options.size(), 3u);
  EXPECT_EQ(a.options[0], std::make_pair(OptionId::verify, std::string("0")));
  EXPECT_EQ(a.options[1], std::make_pair(OptionId::strict, std::string("1")));
  EXPECT_EQ(a.options[2], std::make_pair(OptionId::disable, std::string("1")));
  EXPECT_EQ(a.command, (Words{"10", "x"}));
}

TEST(RunArguments, TwoDashesEndTheOptions) {
  RunArguments a = read_run_arguments({"--dry-run", "--", "--weird-program", "--"});
  EXPECT_EQ(a.error, "");
  EXPECT_TRUE(a.dry_run);
  EXPECT_EQ(a.command, (Words{"--weird-program", "--"}));
}

TEST(RunArguments, EveryOptionOfTheTableIsTaken) {
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    const OptionInfo& info = option_table()[i];
    char flag[48];
    flag_name(info, std::span<char>(flag));
    std::string value = info.default_text.empty() ? "file" : std::string(info.default_text);
    RunArguments a = read_run_arguments({std::string(flag) + "=" + value, "ls"});
    EXPECT_EQ(a.error, "") << flag;
    ASSERT_EQ(a.options.size(), 1u);
    EXPECT_EQ(a.options[0].first, static_cast<OptionId>(i));
  }
}

TEST(RunArguments, ABooleanDoesNotEatTheCommand) {
  EXPECT_EQ(read_run_arguments({"--disable", "off"}).command, (Words{"off"}));
  EXPECT_EQ(read_run_arguments({"--disable=off", "ls"}).options[0].second, "off");
}

TEST(RunArguments, MistakesAreNamed) {
  struct Case {
    Words words;
    const char* error;
  };
  for (const Case& c : {
           Case{{}, "there is no command to run"},
           Case{{"--dry-run"}, "there is no command to run"},
           Case{{"--"}, "there is no command to run"},
           Case{{"--gpu-limt", "1GiB", "ls"},
                "there is no option --gpu-limt; did you mean --gpu-limit?"},
           Case{{"--gpu_limit", "1GiB", "ls"},
                "there is no option --gpu_limit; did you mean --gpu-limit?"},
           Case{{"--xyzzy", "ls"}, "there is no option --xyzzy"},
           Case{{"-g", "ls"}, "there is no option -g"},
           Case{{"--policy"}, "--policy needs a value"},
           Case{{"--policy", "lru", "ls"},
                "--policy does not take \"lru\"; expected pressure or none"},
           Case{
               {"--disable=maybe", "ls"},
               "--disable does not take \"maybe\"; expected 0, 1, off, on, no, yes, false or true"},
       }) {
    EXPECT_EQ(read_run_arguments(c.words).error, c.error);
  }
}

TEST(RunArguments, HelpWinsOverWhatFollows) {
  EXPECT_TRUE(read_run_arguments({"--help", "--nonsense"}).help);
  EXPECT_FALSE(read_run_arguments({"ls", "--help"}).help);
}

}  // namespace
}  // namespace offload::cli
