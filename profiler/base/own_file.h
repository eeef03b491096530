// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file that belongs to us inside somebody else's process: a program may close our descriptor and
// be given the same number for a file of its own, which we must not write into; and a write to a
// closed pipe must not kill it.

#include <sys/types.h>

#include <string_view>

namespace offload {

// Writes all of `text`, retrying what was interrupted, without raising SIGPIPE. errno is kept.
// False if something was lost.
bool write_fully(int descriptor, std::string_view text);

// For messages. A process that was started without a stderr may use its number for a file of its
// own, so nothing is written there then: to be called before the program opens anything.
void look_for_stderr();
bool write_to_stderr(std::string_view text);

class OwnFile {
 public:
  constexpr OwnFile() = default;
  // Takes over an open descriptor.
  explicit OwnFile(int descriptor);
  bool is_open() const { return descriptor_ >= 0; }
  // Writes if the descriptor is still ours; otherwise gives it up. errno is kept. Not to be called
  // from two threads at once on files that keep an offset (those opened for appending do not).
  bool write(std::string_view text);
  void close();

 private:
  bool still_ours() const;
  int descriptor_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace offload
