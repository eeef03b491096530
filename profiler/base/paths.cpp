// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "profiler/base/sink.h"

namespace offload {
namespace {

constexpr int kMostNumbers = 10000;

bool is_joint(char c) {
  return c == '.' || c == '-' || c == '_';
}

// Whoever closed a standard descriptor must not get our file under its number.
int above_standard(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int higher = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int cause = errno;
  close(descriptor);
  return errno = cause, higher;
}

int standard_stream(const char* path) {
  if (std::strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
  return std::strcmp(path, "/dev/stdout") == 0 ? STDOUT_FILENO : -1;
}

// Opened without waiting for a reader, written to as usual.
int open_special(const char* path) {
  const int descriptor = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor >= 0) fcntl(descriptor, F_SETFL, O_APPEND);
  return above_standard(descriptor);
}

}  // namespace

std::string_view process_rank() {
  constexpr const char* kNames[] = {"RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID",
                                    "PMI_RANK"};
  for (const char* name : kNames) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    std::size_t digits = std::strspn(value, "0123456789");
    if (digits > 0 && digits <= 10 && value[digits] == '\0') return {value, digits};
  }
  return {};
}

bool expand_pattern(std::string_view pattern, std::span<char> path) {
  BufferSink out(path);
  char number[16];
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    std::string_view piece = pattern.substr(i, 1);
    if (pattern[i] == '%' && next != '\0') {
      ++i;
      if (next == 'p') {
        std::snprintf(number, sizeof number, "%d", static_cast<int>(getpid()));
        piece = number;
      } else if (next == 'h') {
        char host[HOST_NAME_MAX + 1] = {};
        if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
        BufferSink::append(&out, host);
        piece = {};
      } else if (next == 'r') {
        piece = process_rank();
        bool joint_before = out.used > 0 && is_joint(path[out.used - 1]);
        bool joint_after = i + 1 < pattern.size() && is_joint(pattern[i + 1]);
        if (piece.empty() && joint_before) {
          path[--out.used] = '\0';
        } else if (piece.empty() && joint_after) {
          ++i;
        }
      } else {
        piece = next == '%' ? "%" : pattern.substr(i - 1, 2);
      }
    }
    BufferSink::append(&out, piece);
  }
  return out.whole && out.used > 0;
}

bool make_parent_folders(const char* path) {
  char folder[kPathBytes];
  std::size_t length = std::strlen(path);
  if (length >= sizeof folder) return errno = ENAMETOOLONG, false;
  std::memcpy(folder, path, length + 1);
  for (std::size_t i = 1; i < length; ++i) {
    if (folder[i] != '/' || folder[i - 1] == '/') continue;
    folder[i] = '\0';
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
      // A folder that exists may answer with another error, for example on a read-only file system.
      struct stat status {};
      int cause = errno;
      if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode)) return errno = cause, false;
    }
    folder[i] = '/';
  }
  return true;
}

int create_new_file(const char* path, std::span<char> taken) {
  if (const int standard = standard_stream(path); standard >= 0) {
    std::snprintf(taken.data(), taken.size(), "%s", path);
    return fcntl(standard, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  }
  for (int number = 0; number < kMostNumbers; ++number) {
    int length = number == 0 ? std::snprintf(taken.data(), taken.size(), "%s", path)
                             : std::snprintf(taken.data(), taken.size(), "%s.%d", path, number);
    if (length < 0 || static_cast<std::size_t>(length) >= taken.size()) {
      return errno = ENAMETOOLONG, -1;
    }
    int descriptor = open(taken.data(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) return above_standard(descriptor);
    struct stat status {};
    if (number != 0 || stat(taken.data(), &status) != 0 || S_ISREG(status.st_mode)) continue;
    if (S_ISDIR(status.st_mode)) return errno = EISDIR, -1;
    return open_special(taken.data());
  }
  return errno = EEXIST, -1;
}

int create_from_pattern(std::string_view pattern, std::span<char> taken) {
  char path[kPathBytes];
  if (!expand_pattern(pattern, path)) return errno = path[0] == '\0' ? EINVAL : ENAMETOOLONG, -1;
  if (!make_parent_folders(path)) return -1;
  return create_new_file(path, taken);
}

const char* file_error_text(int error) {
  if (error == EISDIR) return "it is a folder";
  if (error == EINVAL) return "it gives no name: this process has no rank for %r";
  if (error == ENXIO) return "nobody reads from it";
  return strerrordesc_np(error);
}

}  // namespace offload
