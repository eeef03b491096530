// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/host_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "profiler/base/units.h"

namespace offload {
namespace {

class HostMemoryFiles : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/offload_host_XXXXXX";
    root_ = mkdtemp(name);
    put("proc/meminfo",
        "MemTotal:       79691776 kB\nMemFree:         1000 kB\nMemAvailable:   41943040 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& name, const std::string& text) {
    std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void put_group(const std::string& group, const std::string& limit, const std::string& usage,
                 const std::string& inactive_file) {
    std::string folder = "sys/fs/cgroup" + group;
    put(folder + "/memory.max", limit + "\n");
    put(folder + "/memory.current", usage + "\n");
    put(folder + "/memory.stat",
        "anon 1\nfile 2\ninactive_anon 7\ninactive_file " + inactive_file + "\n");
  }
  HostMemory read() { return read_host_memory(root_.c_str()); }

  std::filesystem::path root_;
};

TEST_F(HostMemoryFiles, WithoutCgroupsTheMachineCounts) {
  HostMemory memory = read();
  EXPECT_EQ(memory.total_bytes, 76 * kGiB);
  EXPECT_EQ(memory.available_bytes, 40 * kGiB);
  EXPECT_EQ(memory.cgroup_headroom_bytes, HostMemory::kUnknown);
  EXPECT_EQ(memory.headroom_bytes(), 40 * kGiB);
}

TEST_F(HostMemoryFiles, AContainersLimitCountsLessWhatItUses) {
  put("proc/self/cgroup", "0::/\n");
  put_group("", std::to_string(8 * kGiB), std::to_string(3 * kGiB), std::to_string(kGiB));
  HostMemory memory = read();
  EXPECT_EQ(memory.cgroup_limit_bytes, 8 * kGiB);
  EXPECT_EQ(memory.headroom_bytes(), 6 * kGiB);
}

TEST_F(HostMemoryFiles, TheTightestGroupAboveCounts) {
  put("proc/self/cgroup", "0::/user.slice/job/step\n");
  put_group("/user.slice/job/step", "max", "0", "0");
  put_group("/user.slice/job", std::to_string(4 * kGiB), std::to_string(3 * kGiB), "0");
  put_group("/user.slice", std::to_string(30 * kGiB), std::to_string(5 * kGiB), "0");
  EXPECT_EQ(read().headroom_bytes(), kGiB);
  put_group("/user.slice/job", std::to_string(4 * kGiB), std::to_string(5 * kGiB), "0");
  EXPECT_EQ(read().cgroup_headroom_bytes, 0u) << "over its limit";
}

TEST_F(HostMemoryFiles, AGroupSeenFromTheHostsNamespace) {
  // docker without a cgroup namespace: the path is the host's, the mount shows the container's
  // group.
  put("proc/self/cgroup", "0::/docker/0123456789\n");
  put_group("", std::to_string(2 * kGiB), "0", "0");
  EXPECT_EQ(read().headroom_bytes(), 2 * kGiB);
}

TEST_F(HostMemoryFiles, VersionOne) {
  put("proc/self/cgroup",
      "12:cpu,cpuacct:/docker/abc\n5:memory:/docker/abc\n1:name=systemd:/docker/abc\n");
  put("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", std::to_string(8 * kGiB) + "\n");
  put("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", std::to_string(5 * kGiB) + "\n");
  put("sys/fs/cgroup/memory/docker/abc/memory.stat",
      "inactive_file 5\ntotal_inactive_file " + std::to_string(2 * kGiB) + "\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "70000000000\n");
  HostMemory memory = read();
  EXPECT_EQ(memory.cgroup_limit_bytes, 8 * kGiB);
  EXPECT_EQ(memory.headroom_bytes(), 5 * kGiB);
}

TEST_F(HostMemoryFiles, VersionOneWithoutALimit) {
  put("proc/self/cgroup", "5:memory:/\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "70000000000\n");
  HostMemory memory = read();
  EXPECT_EQ(memory.cgroup_limit_bytes, HostMemory::kUnknown);
  EXPECT_EQ(memory.cgroup_headroom_bytes, HostMemory::kUnknown);
}

TEST_F(HostMemoryFiles, NothingReadableIsNoMemory) {
  std::filesystem::remove_all(root_ / "proc");
  EXPECT_EQ(read().headroom_bytes(), 0u);
}

TEST(HostMemoryHere, ThisMachineHasSome) {
  HostMemory memory = read_host_memory();
  EXPECT_GT(memory.total_bytes, 64 * kMiB);
  EXPECT_LT(memory.total_bytes, HostMemory::kUnknown);
  EXPECT_GT(memory.headroom_bytes(), 0u);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

}  // namespace
}  // namespace offload
