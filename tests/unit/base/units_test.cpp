// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/units.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <string>

namespace offload {
namespace {

TEST(Units, ReadsSizes) {
  struct Case {
    const char* text;
    std::uint64_t bytes;
  };
  for (const Case& c : {
           Case{"0", 0},
           Case{"17", 17},
           Case{"17b", 17},
           Case{"4KiB", 4096},
           Case{"4k", 4096},
           Case{"4KB", 4000},
           Case{"512 MiB", 512 * kMiB},
           Case{" 2GiB ", 2 * kGiB},
           Case{"2gib", 2 * kGiB},
           Case{"24GB", 24000000000},
           Case{"1.5GiB", kGiB + 512 * kMiB},
           Case{".5k", 512},
           Case{"0.1KiB", 102},
           Case{"1T", kTiB},
           Case{"2TB", 2000000000000},
       }) {
    std::uint64_t bytes = 99;
    EXPECT_TRUE(parse_size(c.text, bytes)) << c.text;
    EXPECT_EQ(bytes, c.bytes) << c.text;
  }
}

TEST(Units, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", " ", "MiB", "-1", "+1", "1e9", "0x10", "1,5GiB", "1.2.3", "4 M B", "4MiBs", "10%",
        "nan", "inf", "99999999999999999999", "2000000TiB", "18446744073709551616", "."}) {
    std::uint64_t bytes = 99;
    EXPECT_FALSE(parse_size(text, bytes)) << text;
    EXPECT_EQ(bytes, 99u) << text;
  }
}

TEST(Units, ReadsFractions) {
  double part = 0;
  EXPECT_TRUE(parse_fraction("10%", part));
  EXPECT_DOUBLE_EQ(part, 0.1);
  EXPECT_TRUE(parse_fraction("0.25", part));
  EXPECT_DOUBLE_EQ(part, 0.25);
  EXPECT_TRUE(parse_fraction("12.5 %", part));
  EXPECT_DOUBLE_EQ(part, 0.125);
  for (const char* text : {"", "%", "101%", "1.01", "10", "-1%", "1%%", "ten", "1e-1"}) {
    EXPECT_FALSE(parse_fraction(text, part)) << text;
  }
  EXPECT_FALSE(parse_percent("0.25", part));
}

TEST(Units, ReadsIntegersAndBooleans) {
  std::uint64_t number = 5;
  EXPECT_TRUE(parse_integer("16", number));
  EXPECT_EQ(number, 16u);
  for (const char* text : {"", "1.0", "1.", ".1", "-3", "3x", "0x3"}) {
    EXPECT_FALSE(parse_integer(text, number)) << text;
  }
  bool value = false;
  for (const char* text : {"1", "on", "Yes", "TRUE"}) {
    value = false;
    EXPECT_TRUE(parse_boolean(text, value) && value) << text;
  }
  for (const char* text : {"0", "off", "No", "false"}) {
    value = true;
    EXPECT_TRUE(parse_boolean(text, value) && !value) << text;
  }
  for (const char* text : {"", "2", "01", "y", "enabled"}) {
    EXPECT_FALSE(parse_boolean(text, value)) << text;
  }
}

TEST(Units, WritesForPeople) {
  EXPECT_STREQ(format_size(17).c_str(), "17 B");
  EXPECT_STREQ(format_size(4 * kMiB).c_str(), "4 MiB");
  EXPECT_STREQ(format_size(kGiB + kGiB / 2).c_str(), "1.50 GiB");
  EXPECT_STREQ(format_size(std::numeric_limits<std::uint64_t>::max()).c_str(), "16777216.00 TiB");
  EXPECT_STREQ(format_percent(0.1).c_str(), "10%");
  EXPECT_STREQ(format_percent(0.125).c_str(), "12.5%");
  EXPECT_STREQ(format_exact_percent(0.07).c_str(), "7%");
  EXPECT_STREQ(format_exact_percent(1).c_str(), "100%");
  EXPECT_STREQ(format_exact_percent(0.00021).c_str(), "0.021%");
  EXPECT_STREQ(format_exact_percent(0).c_str(), "0%");
  EXPECT_STREQ(format_rate(50000000000, 2000000000).c_str(), "25.00 GB/s");
  EXPECT_STREQ(format_rate(1, 0).c_str(), "-");
  EXPECT_STREQ(format_seconds(1234567890).c_str(), "1.235 s");
  EXPECT_STREQ(format_seconds(56700000).c_str(), "56.7 ms");
  EXPECT_STREQ(format_seconds(8900).c_str(), "8.9 us");
  EXPECT_STREQ(format_seconds(12).c_str(), "12 ns");
}

TEST(Units, WritesFixedNumbers) {
  EXPECT_STREQ(format_fixed(12.5, 2).c_str(), "12.50");
  EXPECT_STREQ(format_fixed(0.999, 2).c_str(), "1.00");
  EXPECT_STREQ(format_fixed(-1.05, 1).c_str(), "-1.1");
  EXPECT_STREQ(format_fixed(3, 0).c_str(), "3");
  EXPECT_STREQ(format_fixed(0.007, 3).c_str(), "0.007");
  EXPECT_STREQ(format_fixed(std::nan(""), 3).c_str(), "nan");
  EXPECT_STREQ(format_fixed(HUGE_VAL, 3).c_str(), "inf");
  EXPECT_STREQ(format_fixed(1e30, 0).c_str(), "18000000000000000000");
}

TEST(Units, ExactSizesReadBack) {
  for (std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{17}, 4096 * kKiB, 1536 * kKiB,
                              24000000000ul, kTiB, 3 * kGiB + 1}) {
    std::uint64_t read = 1;
    ASSERT_TRUE(parse_size(format_exact_size(bytes).c_str(), read));
    EXPECT_EQ(read, bytes);
  }
  EXPECT_STREQ(format_exact_size(4 * kMiB).c_str(), "4MiB");
}

TEST(Units, TheProgramsLocaleChangesNothing) {
  // Any locale with a decimal comma; skipping without one would test nothing, so the C library's
  // own is tried too.
  const char* set = nullptr;
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    if ((set = std::setlocale(LC_ALL, name)) != nullptr) break;
  }
  ASSERT_NE(set, nullptr);
  std::uint64_t bytes = 0;
  EXPECT_TRUE(parse_size("1.5KiB", bytes));
  EXPECT_EQ(bytes, 1536u);
  EXPECT_STREQ(format_fixed(1.5, 1).c_str(), "1.5");
  std::setlocale(LC_ALL, "C");
}

}  // namespace
}  // namespace offload
