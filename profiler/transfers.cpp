// SPDX-License-Identifier: Apache-2.0
#include "profiler/transfers.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "profiler/base/log.h"
#include "profiler/base/paths.h"
#include "profiler/base/units.h"

namespace offload {
namespace {

constinit TransferLog process_log;

constexpr std::string_view kHeader = "time_s,direction,buffer,bytes,gb_per_s,position,device\n";

class MutexGuard {
 public:
  explicit MutexGuard(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~MutexGuard() { pthread_mutex_unlock(&mutex_); }
  MutexGuard(const MutexGuard&) = delete;
  MutexGuard& operator=(const MutexGuard&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

TransferLog& transfer_log() {
  return process_log;
}

void TransferLog::set_file(const char* pattern) {
  pattern_ = pattern == nullptr || *pattern == '\0' ? nullptr : pattern;
}

void TransferLog::open() {
  if (!wanted()) return;
  MutexGuard guard(mutex_);
  make_file();
}

void TransferLog::make_file() {
  if (failed_ || file_.is_open()) return;
  char path[kPathBytes];
  const int descriptor = create_from_pattern(pattern_, std::span<char>(path));
  file_ = OwnFile(descriptor);
  if (descriptor < 0) {
    log_warn(
        "the list of transfers cannot be written to %s (%s); it is left out; choose another "
        "OFFLOAD_TRANSFERS",
        pattern_, file_error_text(errno));
    failed_ = true;
    return;
  }
  log_info("the list of transfers is in %s", path);
  write(kHeader);
}

void TransferLog::record(const TransferRecord& transfer) {
  if (!wanted()) return;
  char line[160];
  ShortText rate{""};
  if (transfer.duration_ns != 0) {
    rate = format_fixed(
        static_cast<double>(transfer.bytes) / static_cast<double>(transfer.duration_ns), 3);
  }
  int length = std::snprintf(line, sizeof line, "%s,%s,%llu,%llu,%s,%llu,%llu\n",
                             format_fixed(static_cast<double>(transfer.time_ns) / 1e9, 6).c_str(),
                             transfer.direction == Direction::kOut ? "out" : "in",
                             static_cast<unsigned long long>(transfer.buffer_id),
                             static_cast<unsigned long long>(transfer.bytes), rate.c_str(),
                             static_cast<unsigned long long>(transfer.position),
                             static_cast<unsigned long long>(transfer.device));
  MutexGuard guard(mutex_);
  make_file();
  if (failed_) return;
  write({line, static_cast<std::size_t>(length)});
}

// A program that closed our file, or a full disk, ends the list: the rest in a second file helps
// nobody.
void TransferLog::write(std::string_view text) {
  if (file_.write(text)) return;
  failed_ = true;
  log_warn(
      "the list of transfers (OFFLOAD_TRANSFERS) ends early: the disk is full, or the program has "
      "closed the file");
}

}  // namespace offload
