// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the options from an environment block. Runs in the library's constructor, where malloc may
// not be ready.

#include <cstddef>
#include <span>
#include <string_view>

#include "profiler/base/options.h"

namespace offload {

// One message per thing that is wrong, each saying what failed, what happens instead and how to
// mend it. They are kept rather than written, because where messages go is itself an option.
struct OptionProblems {
  static constexpr std::size_t kCapacity = 8;
  static constexpr std::size_t kMessageBytes = 384;
  char messages[kCapacity][kMessageBytes];
  std::size_t count = 0;       // may exceed kCapacity: the rest is only counted
  std::size_t bad_values = 0;  // of these, values that their option does not take
  std::size_t kept() const { return count < kCapacity ? count : kCapacity; }
};

// Sets every field: from `environment` (as `environ`, null-terminated; null for none) where it
// holds a good value, else to its default. An empty value counts as not set. Of two variables of
// one name the first wins, as for getenv. Names that begin with OFFLOAD_ and are not ours are a
// problem unless they are LLVM's. Returns false if the configuration must not be used: a bad value
// while OFFLOAD_STRICT=1. The options then have `disable` set.
bool read_options(const char* const* environment, Options& options, OptionProblems& problems);

// Sets level and file of the log as the options say, then writes what was wrong. `options` must
// outlive the log.
void start_log(const Options& options, const OptionProblems& problems);

// True for OFFLOAD_ names (given whole) that belong to LLVM's offloading runtime.
bool is_foreign_name(std::string_view variable);

}  // namespace offload
