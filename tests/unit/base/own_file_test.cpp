// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/own_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace offload {
namespace {

int temporary(std::string& path) {
  char name[] = "/tmp/offload_own_XXXXXX";
  int descriptor = mkstemp(name);
  path = name;
  return descriptor;
}

off_t size_of(const std::string& path) {
  int descriptor = open(path.c_str(), O_RDONLY);
  off_t size = lseek(descriptor, 0, SEEK_END);
  close(descriptor);
  return size;
}

TEST(OwnFile, NeverWritesIntoAnothersFile) {
  std::string ours;
  std::string theirs;
  int descriptor = temporary(ours);
  OwnFile file(descriptor);
  EXPECT_TRUE(file.write("text"));
  // The program closes everything, then opens a file of its own.
  close(descriptor);
  int other = temporary(theirs);
  ASSERT_EQ(other, descriptor);
  EXPECT_FALSE(file.write("more"));
  EXPECT_FALSE(file.is_open());
  EXPECT_EQ(size_of(theirs), 0);
  EXPECT_EQ(size_of(ours), 4);
  file.close();
  EXPECT_GE(fcntl(other, F_GETFD), 0) << "closed a descriptor of the program's";
  close(other);
  unlink(ours.c_str());
  unlink(theirs.c_str());
}

TEST(OwnFile, ADescriptorThatIsGoneIsNoError) {
  std::string path;
  int descriptor = temporary(path);
  OwnFile file(descriptor);
  close(descriptor);
  errno = 5;
  EXPECT_FALSE(file.write("text"));
  EXPECT_EQ(errno, 5);
  unlink(path.c_str());
}

}  // namespace
}  // namespace offload
