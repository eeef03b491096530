// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes, parts, rates and times as people write and read them. Locale-independent (a program may
// have called setlocale), allocates nothing, safe on any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace offload {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;
inline constexpr std::uint64_t kTiB = 1024 * kGiB;

// Each parser takes the whole text, reports success, and leaves `value` alone when it fails.
// Surrounding blanks and the case of letters do not matter.

// "4096", "512 KiB", "1.5GiB", "24GB". KB, MB, GB, TB are powers of 1000; K, M, G, T and the KiB
// family powers of 1024.
bool parse_size(std::string_view text, std::uint64_t& bytes);
// "10%" or "0.1" for a tenth; within 0 and 1.
bool parse_fraction(std::string_view text, double& fraction);
// "10%": only with the sign; within 0 and 1.
bool parse_percent(std::string_view text, double& fraction);
// Decimal, not negative.
bool parse_integer(std::string_view text, std::uint64_t& value);
// 0/1, off/on, no/yes, false/true.
bool parse_boolean(std::string_view text, bool& value);

std::string_view trim(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

// A short text on the stack, always terminated; what does not fit is cut.
struct ShortText {
  char data[40];
  const char* c_str() const { return data; }
};

ShortText format_size(std::uint64_t bytes);  // "4 MiB", "1.50 GiB", "17 B"
ShortText format_exact_size(
    std::uint64_t bytes);  // "4MiB", "1536KiB", "17": reads back as the same number
ShortText format_percent(double fraction);        // "10%", "12.5%"
ShortText format_exact_percent(double fraction);  // "7%", "0.021%": to twelve decimals
ShortText format_rate(std::uint64_t bytes,
                      std::uint64_t ns);             // "23.1 GB/s" (powers of 1000); "-" if ns is 0
ShortText format_seconds(std::uint64_t ns);          // "1.234 s", "56.7 ms", "8.9 us", "12 ns"
ShortText format_fixed(double value, int decimals);  // "12.50"; "nan" and "inf" for what is none

}  // namespace offload
