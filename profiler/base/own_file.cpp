// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace offload {
namespace {

constinit bool has_stderr = true;

// Blocks SIGPIPE for this thread and takes back one that we caused ourselves.
class PipeSignalGuard {
 public:
  PipeSignalGuard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalGuard() {
    if (!was_pending_) {
      const timespec kNow{};
      sigtimedwait(&pipe_, nullptr, &kNow);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalGuard(const PipeSignalGuard&) = delete;
  PipeSignalGuard& operator=(const PipeSignalGuard&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_;
};

}  // namespace

bool write_fully(int descriptor, std::string_view text) {
  int kept = errno;
  int cause = 0;
  {
    PipeSignalGuard guard;
    while (!text.empty()) {
      ssize_t wrote = ::write(descriptor, text.data(), text.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) {
        cause = wrote < 0 ? errno : EIO;
        break;
      }
      text.remove_prefix(static_cast<std::size_t>(wrote));
    }
  }
  errno = cause == 0 ? kept : cause;
  return cause == 0;
}

void look_for_stderr() {
  const int kept = errno;
  if (fcntl(STDERR_FILENO, F_GETFD) < 0) has_stderr = false;
  errno = kept;
}

bool write_to_stderr(std::string_view text) {
  return has_stderr && write_fully(STDERR_FILENO, text);
}

OwnFile::OwnFile(int descriptor) : descriptor_(descriptor) {
  struct stat status {};
  if (descriptor >= 0 && fstat(descriptor, &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

bool OwnFile::still_ours() const {
  struct stat status {};
  return fstat(descriptor_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

bool OwnFile::write(std::string_view text) {
  if (!is_open()) return false;
  int kept = errno;
  bool ours = still_ours();
  if (!ours) descriptor_ = -1;
  bool whole = ours && write_fully(descriptor_, text);
  errno = kept;
  return whole;
}

void OwnFile::close() {
  if (is_open() && still_ours()) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace offload
