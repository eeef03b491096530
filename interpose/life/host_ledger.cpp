// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/host_ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

struct HostLedger::Row {
  int32_t process;
  uint32_t unused;
  uint64_t start_time;     // of the process, in the kernel's ticks: numbers come back
  uint64_t machine_bytes;  // what could be pinned in all, as it found it
  uint64_t pinned_bytes;
};

struct HostLedger::Table {
  uint64_t magic;
  Row rows[kRows];
};

namespace {

constexpr uint64_t kMagic = 0x3130676c64656c6f;  // "oledgl01"; another layout gets another
constexpr int kAttempts = 5000;
constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 100'000};

constinit HostLedger ledger;

// Field 22 of /proc/PID/stat, behind the name, which may hold anything. 0: there is no such
// process.
uint64_t start_time_of(int process) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[1024];
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  const char* at = std::strrchr(text, ')');
  constexpr int kFieldsBetween = 20;
  for (int field = 0; at != nullptr && field < kFieldsBetween; ++field)
    at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
}

}  // namespace

// Holds the ledger for some microseconds. The lock belongs to the file as it is open here, and ends
// with its owner. Whoever is stopped while he holds it must not stop the others: then they go on
// without. The file is opened each time, because programs close descriptors that they do not know.
class HostLedger::Locked {
 public:
  explicit Locked(const char* name) {
    char path[96];
    std::snprintf(path, sizeof path, "/dev/shm/%s", name);
    constexpr mode_t kMine = 0600;
    file_ = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMine);
    if (file_ < 0) return;
    struct stat found {};
    if (::fstat(file_, &found) != 0 || found.st_uid != ::geteuid() || !S_ISREG(found.st_mode))
      return;
    for (int attempt = 0; attempt < kAttempts && !held_; ++attempt) {
      held_ = ::flock(file_, LOCK_EX | LOCK_NB) == 0;
      if (!held_) ::nanosleep(&kPause, nullptr);
    }
  }
  ~Locked() {
    if (held_) ::flock(file_, LOCK_UN);  // a mapping would keep it beyond the descriptor
    if (file_ >= 0) ::close(file_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  bool held() const { return held_; }
  // Null: it is too short, and would not grow.
  Table* map() const {
    struct stat found {};
    if (::fstat(file_, &found) != 0) return nullptr;
    const auto bytes = static_cast<off_t>(sizeof(Table));
    if (found.st_size < bytes && (found.st_size != 0 || ::ftruncate(file_, bytes) != 0))
      return nullptr;
    void* at = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    return at == MAP_FAILED ? nullptr : static_cast<Table*>(at);
  }

 private:
  int file_ = -1;
  bool held_ = false;
};

HostLedger& host_ledger() {
  return ledger;
}

void HostLedger::start(uint64_t machine_bytes, const char* name) {
  machine_bytes_ = machine_bytes;
  if (name != nullptr) {
    std::snprintf(name_, sizeof name_, "%s", name);
    return;
  }
  struct stat space {};
  ::stat("/proc/self/ns/pid", &space);
  std::snprintf(name_, sizeof name_, "liboffload-%u-%llu", ::geteuid(),
                static_cast<unsigned long long>(space.st_ino));
}

// Maps the table, for ever, and takes a row. In a forked child anew.
bool HostLedger::join() {
  if (process_ == ::getpid()) return table_ != nullptr;
  process_ = ::getpid();
  table_ = nullptr;
  if (name_[0] != '\0') {
    const Locked locked(name_);
    if (locked.held()) table_ = locked.map();
    if (table_ != nullptr && table_->magic == 0) table_->magic = kMagic;
    if (table_ != nullptr && (table_->magic != kMagic || own_row(*table_) == nullptr))
      table_ = nullptr;
  }
  if (table_ == nullptr)
    log_info("no ledger of pinned host memory in /dev/shm: other processes are not counted");
  return table_ != nullptr;
}

// With the lock: rows of the dead are cleared, and this process's is found or made. Null: all
// taken.
HostLedger::Row* HostLedger::own_row(Table& table) {
  uint64_t others = 0;
  Row* own = nullptr;
  Row* empty = nullptr;
  for (Row& row : table.rows) {
    if (row.process != 0 && start_time_of(row.process) != row.start_time) row = Row{};
    if (row.process == 0) {
      if (empty == nullptr) empty = &row;
    } else if (row.process == process_) {
      own = &row;
    } else {
      others += row.pinned_bytes;
    }
  }
  if (own != nullptr || empty == nullptr) return own;
  *empty = Row{.process = process_,
               .unused = 0,
               .start_time = start_time_of(process_),
               .machine_bytes = machine_bytes_ + others,
               .pinned_bytes = 0};
  return empty;
}

uint64_t HostLedger::take(uint64_t wanted_bytes, uint64_t unit_bytes) {
  const uint64_t wanted = wanted_bytes / unit_bytes * unit_bytes;
  if (!join()) return wanted;
  const Locked locked(name_);
  if (!locked.held()) return wanted;
  Row* own = own_row(*table_);
  if (own == nullptr) return wanted;
  uint64_t machine = 0;
  uint64_t pinned = 0;
  uint32_t processes = 0;
  for (const Row& row : table_->rows) {
    if (row.process == 0) continue;
    ++processes;
    pinned += row.pinned_bytes;
    machine = std::max(machine, row.machine_bytes);
  }
  const uint64_t share = machine / processes;
  const uint64_t of_share = share - std::min(share, own->pinned_bytes);
  const uint64_t left = machine - std::min(machine, pinned);
  const uint64_t given = std::min({wanted, of_share, left}) / unit_bytes * unit_bytes;
  own->pinned_bytes += given;
  if (given == 0 && processes > 1 && !said_) {
    said_ = true;
    log_warn(
        "%u processes share %s of host memory for moved buffers, and this one has its part of %s: "
        "buffers "
        "stay on the GPU beyond that",
        processes, format_size(machine).c_str(), format_size(own->pinned_bytes).c_str());
  }
  return given;
}

void HostLedger::give(uint64_t bytes) {
  if (process_ != ::getpid() || table_ == nullptr) return;
  const Locked locked(name_);
  if (!locked.held()) return;
  if (Row* own = own_row(*table_); own != nullptr)
    own->pinned_bytes -= std::min(own->pinned_bytes, bytes);
}

HostLedger::Totals HostLedger::totals() {
  Totals totals;
  if (!join()) return totals;
  const Locked locked(name_);
  if (!locked.held()) return totals;
  own_row(*table_);
  for (const Row& row : table_->rows) {
    if (row.process == 0) continue;
    ++totals.processes;
    totals.pinned_bytes += row.pinned_bytes;
  }
  return totals;
}

}  // namespace offload
