// SPDX-License-Identifier: Apache-2.0
#pragma once
// One CSV line per copy, appended as the copy completes: what is on disk is whole lines, whatever
// happens to the process. The file is made by the first copy. Any thread; takes a lock of its own
// around one write. Allocates nothing.

#include <pthread.h>
#include <string_view>

#include <cstdint>

#include "profiler/base/own_file.h"

namespace offload {

enum class Direction : std::uint8_t { kOut, kIn };

struct TransferRecord {
  std::uint64_t time_ns;  // since the process's statistics started, when the copy began
  Direction direction;
  std::uint64_t buffer_id;
  std::uint64_t bytes;
  std::uint64_t duration_ns;  // on the device; 0 if not measured
  std::uint64_t position;     // the device's operations submitted when it was decided
  std::uint64_t device = 0;   // its ordinal
};

class TransferLog {
 public:
  constexpr TransferLog() = default;
  TransferLog(const TransferLog&) = delete;
  TransferLog& operator=(const TransferLog&) = delete;

  // `pattern` (see paths.h) must outlive the log; empty or null: nothing is written. Before the
  // first record().
  void set_file(const char* pattern);
  bool wanted() const { return pattern_ != nullptr; }
  // Makes the file, so that a run in which nothing moves leaves a list without lines. The first
  // record() does it, too.
  void open();
  void record(const TransferRecord& transfer);

 private:
  void make_file();
  void write(std::string_view text);

  const char* pattern_ = nullptr;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  OwnFile file_;
  bool failed_ = false;
};

TransferLog& transfer_log();

}  // namespace offload
