// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/units.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace offload {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// A decimal number kept exact: digits without the point, and how many of them stand behind it.
struct Decimal {
  std::uint64_t digits = 0;
  int decimals = 0;
};

// Reads "12", "1.5" or ".5" from the front of `text`. Fails on signs, exponents, hexadecimals and
// overflow.
bool take_decimal(std::string_view& text, Decimal& number) {
  Decimal read;
  std::size_t used = 0;
  bool point = false;
  bool any = false;
  for (; used < text.size(); ++used) {
    char c = text[used];
    if (c == '.' && !point) {
      point = true;
    } else if (is_digit(c)) {
      if (__builtin_mul_overflow(read.digits, 10u, &read.digits) ||
          __builtin_add_overflow(read.digits, static_cast<std::uint64_t>(c - '0'), &read.digits)) {
        return false;
      }
      read.decimals += point ? 1 : 0;
      any = true;
    } else {
      break;
    }
  }
  if (!any || read.decimals > 9) return false;
  text.remove_prefix(used);
  number = read;
  return true;
}

double to_double(const Decimal& number) {
  double value = static_cast<double>(number.digits);
  for (int i = 0; i < number.decimals; ++i) value /= 10;
  return value;
}

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr Unit kUnits[] = {
    {"", 1},
    {"b", 1},
    {"k", kKiB},
    {"kib", kKiB},
    {"kb", 1000},
    {"m", kMiB},
    {"mib", kMiB},
    {"mb", 1000000},
    {"g", kGiB},
    {"gib", kGiB},
    {"gb", 1000000000},
    {"t", kTiB},
    {"tib", kTiB},
    {"tb", 1000000000000},
};

ShortText print(double value, int decimals, const char* unit) {
  ShortText number = format_fixed(value, decimals);
  ShortText text;
  std::snprintf(text.data, sizeof text.data, "%s%s", number.data, unit);
  return text;
}

}  // namespace

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

bool parse_size(std::string_view text, std::uint64_t& bytes) {
  text = trim(text);
  Decimal number;
  if (!take_decimal(text, number)) return false;
  text = trim(text);
  for (const Unit& unit : kUnits) {
    if (!equal_ignoring_case(text, unit.name)) continue;
    unsigned __int128 exact = static_cast<unsigned __int128>(number.digits) * unit.bytes;
    for (int i = 0; i < number.decimals; ++i) exact /= 10;
    // Nobody has an exbibyte; refusing it keeps sums of sizes from overflowing.
    if (exact >= (static_cast<unsigned __int128>(1) << 60)) return false;
    bytes = static_cast<std::uint64_t>(exact);
    return true;
  }
  return false;
}

bool parse_percent(std::string_view text, double& fraction) {
  text = trim(text);
  if (text.empty() || text.back() != '%') return false;
  text = trim(text.substr(0, text.size() - 1));
  Decimal number;
  if (!take_decimal(text, number) || !text.empty()) return false;
  double value = to_double(number) / 100;
  if (value > 1) return false;
  fraction = value;
  return true;
}

bool parse_fraction(std::string_view text, double& fraction) {
  if (parse_percent(text, fraction)) return true;
  text = trim(text);
  Decimal number;
  if (!take_decimal(text, number) || !text.empty()) return false;
  double value = to_double(number);
  if (value > 1) return false;
  fraction = value;
  return true;
}

bool parse_integer(std::string_view text, std::uint64_t& value) {
  text = trim(text);
  Decimal number;
  bool point = text.find('.') != std::string_view::npos;
  if (point || !take_decimal(text, number) || !text.empty()) return false;
  value = number.digits;
  return true;
}

bool parse_boolean(std::string_view text, bool& value) {
  constexpr std::string_view kFalse[] = {"0", "off", "no", "false"};
  constexpr std::string_view kTrue[] = {"1", "on", "yes", "true"};
  text = trim(text);
  for (std::string_view word : kFalse) {
    if (equal_ignoring_case(text, word)) return value = false, true;
  }
  for (std::string_view word : kTrue) {
    if (equal_ignoring_case(text, word)) return value = true, true;
  }
  return false;
}

ShortText format_fixed(double value, int decimals) {
  ShortText text;
  if (std::isnan(value) || std::isinf(value)) {
    std::snprintf(text.data, sizeof text.data, "%s", std::isnan(value) ? "nan" : "inf");
    return text;
  }
  std::uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  const char* sign = value < 0 ? "-" : "";
  double magnitude = std::fabs(value) * static_cast<double>(scale) + 0.5;
  constexpr double kLargest = 1.8e19;  // below 2^64, where the conversion is still defined
  std::uint64_t scaled = static_cast<std::uint64_t>(magnitude < kLargest ? magnitude : kLargest);
  if (decimals == 0) {
    std::snprintf(text.data, sizeof text.data, "%s%llu", sign,
                  static_cast<unsigned long long>(scaled));
  } else {
    std::snprintf(text.data, sizeof text.data, "%s%llu.%0*llu", sign,
                  static_cast<unsigned long long>(scaled / scale), decimals,
                  static_cast<unsigned long long>(scaled % scale));
  }
  return text;
}

ShortText format_size(std::uint64_t bytes) {
  constexpr Unit kNames[] = {{" TiB", kTiB}, {" GiB", kGiB}, {" MiB", kMiB}, {" KiB", kKiB}};
  for (const Unit& unit : kNames) {
    if (bytes < unit.bytes) continue;
    double value = static_cast<double>(bytes) / static_cast<double>(unit.bytes);
    return print(value, bytes % unit.bytes == 0 ? 0 : 2, unit.name.data());
  }
  return print(static_cast<double>(bytes), 0, " B");
}

ShortText format_exact_size(std::uint64_t bytes) {
  constexpr Unit kNames[] = {{"TiB", kTiB}, {"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}};
  ShortText text;
  for (const Unit& unit : kNames) {
    if (bytes == 0 || bytes % unit.bytes != 0) continue;
    std::snprintf(text.data, sizeof text.data, "%llu%s",
                  static_cast<unsigned long long>(bytes / unit.bytes), unit.name.data());
    return text;
  }
  std::snprintf(text.data, sizeof text.data, "%llu", static_cast<unsigned long long>(bytes));
  return text;
}

ShortText format_exact_percent(double fraction) {
  ShortText text = print(fraction * 100, 12, "");
  std::size_t length = std::strlen(text.data);
  while (text.data[length - 1] == '0') --length;
  if (text.data[length - 1] == '.') --length;
  std::snprintf(text.data + length, sizeof text.data - length, "%%");
  return text;
}

ShortText format_percent(double fraction) {
  double percent = fraction * 100;
  bool whole = std::fabs(percent - std::round(percent)) < 1e-9;
  return print(percent, whole ? 0 : 1, "%");
}

ShortText format_rate(std::uint64_t bytes, std::uint64_t ns) {
  if (ns == 0) return ShortText{"-"};
  return print(static_cast<double>(bytes) / static_cast<double>(ns), 2, " GB/s");
}

ShortText format_seconds(std::uint64_t ns) {
  double value = static_cast<double>(ns);
  if (ns >= 1000000000) return print(value / 1e9, 3, " s");
  if (ns >= 1000000) return print(value / 1e6, 1, " ms");
  if (ns >= 1000) return print(value / 1e3, 1, " us");
  return print(value, 0, " ns");
}

}  // namespace offload
