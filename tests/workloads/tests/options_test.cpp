// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/options.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/workloads/errors.h"

namespace gpt {
namespace {

Options parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "train_gpt");
  return parse_options(int(arguments.size()), arguments.data());
}

std::string message(std::vector<const char*> arguments) {
  try {
    parse(std::move(arguments));
  } catch (const BadOption& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Options, takes_values_after_a_space_or_an_equals_sign) {
  const Options options = parse({"--layers", "3", "--width=32", "--heads", "2", "--allocator=async",
                                 "--vary-sequence", "--seed", "12345678901"});
  EXPECT_EQ(options.layers, 3);
  EXPECT_EQ(options.width, 32);
  EXPECT_TRUE(options.async_allocator);
  EXPECT_TRUE(options.vary_sequence);
  EXPECT_FALSE(options.optimizer_stream);
  EXPECT_EQ(options.seed, 12345678901);
}

TEST(Options, tiny_is_a_start_that_others_change_wherever_they_stand) {
  const Options options = parse({"--steps", "9", "--tiny"});
  EXPECT_EQ(options.steps, 9);
  EXPECT_EQ(options.width, 32);
}

TEST(Options, bad_ones_are_named_with_what_would_be_right) {
  EXPECT_EQ(message({"--layers", "0"}), "--layers 0: must be a whole number of at least 1");
  EXPECT_EQ(message({"--layers", "3x"}), "--layers 3x: must be a whole number of at least 1");
  EXPECT_EQ(message({"--batch", "99999999999"}),
            "--batch 99999999999: must be a whole number of at least 1");
  EXPECT_EQ(message({"--layer", "1"}), "unknown option --layer; --help lists them");
  EXPECT_EQ(message({"--steps"}), "--steps needs a value: --steps N");
  EXPECT_EQ(message({"--quiet=1"}), "--quiet takes no value");
  EXPECT_EQ(message({"--allocator", "pool"}), "--allocator pool: must be sync or async");
  EXPECT_EQ(message({"--learning-rate", "fast"}),
            "--learning-rate fast: must be a number from 0 to 1000");
  EXPECT_EQ(message({"--width", "40", "--heads", "5"}), "--width 40: must be a multiple of 16");
  EXPECT_EQ(message({"--heads", "3"}),
            "--width 64 --heads 3: width / heads must be 8, 16, 32 or 64");
  EXPECT_EQ(message({"--batch", "65535", "--sequence", "65536"}),
            "--sequence 65536 --batch 65535 --width 64: one tensor would pass 4 GiB");
}

}  // namespace
}  // namespace gpt
