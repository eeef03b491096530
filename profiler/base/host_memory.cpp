// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/host_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "profiler/base/units.h"

namespace offload {
namespace {

constexpr std::size_t kFileBytes = 16384;
constexpr std::size_t kNameBytes = 1024;
// cgroup v1 writes "no limit" as the largest multiple of the page size.
constexpr std::uint64_t kNoLimitV1 = std::uint64_t{1} << 60;

struct FileText {
  char data[kFileBytes];
  std::size_t size = 0;

  bool read(const char* path) {
    size = 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    while (size < sizeof data) {
      ssize_t got = ::read(descriptor, data + size, sizeof data - size);
      if (got <= 0) break;
      size += static_cast<std::size_t>(got);
    }
    close(descriptor);
    return size > 0;
  }
  std::string_view text() const { return {data, size}; }
};

// The number in the line that begins with `label`.
bool find_number(std::string_view text, std::string_view label, std::uint64_t& number) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(label)) continue;
    line = trim(line.substr(label.size()));
    return parse_integer(line.substr(0, line.find(' ')), number);
  }
  return false;
}

struct Hierarchy {
  const char* mount;  // below root
  const char* limit;  // file names
  const char* usage;
  const char* reclaimable;  // label in memory.stat
};
constexpr Hierarchy kV2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};
constexpr Hierarchy kV1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                           "memory.usage_in_bytes", "total_inactive_file "};

bool read_number(const char* root, const Hierarchy& kind, std::string_view group, const char* file,
                 FileText& buffer, std::uint64_t& number) {
  char path[2 * kNameBytes];
  std::snprintf(path, sizeof path, "%s%s%.*s/%s", root, kind.mount, static_cast<int>(group.size()),
                group.data(), file);
  // "max" is no number: no limit.
  return buffer.read(path) && parse_integer(buffer.text(), number);
}

void take_limit(const char* root, const Hierarchy& kind, std::string_view group, FileText& buffer,
                HostMemory& memory) {
  std::uint64_t limit = 0;
  std::uint64_t usage = 0;
  if (!read_number(root, kind, group, kind.limit, buffer, limit) || limit >= kNoLimitV1) return;
  if (!read_number(root, kind, group, kind.usage, buffer, usage)) return;
  char path[2 * kNameBytes];
  std::snprintf(path, sizeof path, "%s%s%.*s/memory.stat", root, kind.mount,
                static_cast<int>(group.size()), group.data());
  std::uint64_t reclaimable = 0;
  if (buffer.read(path)) find_number(buffer.text(), kind.reclaimable, reclaimable);
  usage -= std::min(usage, reclaimable);
  memory.cgroup_limit_bytes = std::min(memory.cgroup_limit_bytes, limit);
  memory.cgroup_headroom_bytes =
      std::min(memory.cgroup_headroom_bytes, limit > usage ? limit - usage : 0);
}

// The group and all above it: any of them may have the tighter limit. A container without a cgroup
// namespace sees its path as the host does, but only its own group, at the mount: the walk ends
// there.
void take_groups(const char* root, const Hierarchy& kind, std::string_view group, FileText& buffer,
                 HostMemory& memory) {
  while (!group.empty() && group.back() == '/') group.remove_suffix(1);
  for (;;) {
    take_limit(root, kind, group, buffer, memory);
    if (group.empty()) return;
    std::size_t slash = group.rfind('/');
    group = group.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
}

// Calls take(kind, group) for each line "id:controllers:/group" that governs memory.
template <class Take>
void each_memory_group(std::string_view text, Take take) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::size_t first = line.find(':');
    std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string_view group = line.substr(second + 1);
    if (controllers.empty()) {
      take(kV2, group);
      continue;
    }
    for (std::string_view rest = controllers; !rest.empty();) {
      std::string_view name = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      if (name == "memory") take(kV1, group);
    }
  }
}

}  // namespace

HostMemory read_host_memory(const char* root) {
  HostMemory memory;
  FileText buffer;
  char path[kNameBytes];
  std::snprintf(path, sizeof path, "%s/proc/meminfo", root);
  if (buffer.read(path)) {
    std::uint64_t kib = 0;
    if (find_number(buffer.text(), "MemTotal:", kib)) memory.total_bytes = kib * kKiB;
    if (find_number(buffer.text(), "MemAvailable:", kib)) memory.available_bytes = kib * kKiB;
  }
  FileText groups;
  std::snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  if (groups.read(path)) {
    each_memory_group(groups.text(), [&](const Hierarchy& kind, std::string_view group) {
      if (group.size() < kNameBytes) take_groups(root, kind, group, buffer, memory);
    });
  }
  return memory;
}

}  // namespace offload
