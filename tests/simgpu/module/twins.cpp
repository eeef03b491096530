// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/twins.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

namespace simgpu {
namespace {

using Twins = std::unordered_map<std::string, const SimgpuTwin*>;

void open_library(const std::string& path, Twins* twins) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fprintf(stderr, "simgpu: twins: %s\n", dlerror());
    return;
  }
  const auto table =
      reinterpret_cast<const SimgpuTwinTable* (*)(void)>(dlsym(handle, "simgpu_twins"));
  if (table == nullptr) {
    std::fprintf(stderr, "simgpu: twins: %s exports no simgpu_twins()\n", path.c_str());
    return;
  }
  const SimgpuTwinTable* found = table();
  if (found == nullptr || found->version != SIMGPU_TWIN_VERSION) {
    std::fprintf(stderr, "simgpu: twins: %s was built for another version of twin.h (%d, not %d)\n",
                 path.c_str(), found == nullptr ? 0 : found->version, SIMGPU_TWIN_VERSION);
    return;
  }
  for (int i = 0; i < found->count; ++i) twins->emplace(found->twins[i].name, &found->twins[i]);
}

Twins* open_all() {
  auto* twins = new Twins;
  if (const char* list = std::getenv("SIMGPU_TWINS")) {
    const std::string paths(list);
    for (size_t begin = 0; begin <= paths.size();) {
      const size_t end = std::min(paths.find(':', begin), paths.size());
      if (end > begin) open_library(paths.substr(begin, end - begin), twins);
      begin = end + 1;
    }
  }
  char executable[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", executable, sizeof(executable) - 1);
  if (length > 0) {
    const std::string path = std::string(executable, static_cast<size_t>(length)) + ".twins.so";
    if (access(path.c_str(), R_OK) == 0) open_library(path, twins);
  }
  return twins;
}

}  // namespace

const SimgpuTwin* find_twin(const std::string& name) {
  // Never freed: kernels may still run while the process exits.
  static const Twins* const twins = open_all();
  const auto found = twins->find(name);
  return found == twins->end() ? nullptr : found->second;
}

}  // namespace simgpu
