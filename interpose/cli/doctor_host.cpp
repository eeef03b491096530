// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "interpose/cli/doctor.h"
#include "interpose/cli/library.h"
#include "profiler/base/host_memory.h"
#include "profiler/base/options_environment.h"
#include "profiler/base/units.h"

namespace offload::cli {
namespace {

constexpr std::uint64_t kLittleHostMemory = kGiB;
constexpr std::uint64_t kUsualMapCount = 65530;

std::string size(std::uint64_t bytes) {
  return format_size(bytes).c_str();
}

struct ChildResult {
  bool exited_well;
  std::string said;  // on stderr
};

// Runs this very program as a child with the library preloaded: what the loader thinks of it shows
// there.
ChildResult run_preloaded(const std::string& library) {
  int ends[2];
  if (pipe(ends) != 0) return {false, "no pipe"};
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv("LD_PRELOAD", library.c_str(), 1);
    execl("/proc/self/exe", "offload", "--version", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  std::string said;
  char buffer[512];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    said.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return {false, said};
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, said};
}

}  // namespace

void check_library(Findings& findings) {
  std::string library = find_library();
  if (library.empty()) {
    findings.problem("library", "liboffload.so is neither beside this program nor in ../lib",
                     "build it with make, or install it again");
    return;
  }
  if (!is_preloadable_path(library)) {
    findings.problem("library",
                     library + " has a space or colon in its path, which LD_PRELOAD cannot carry",
                     "move it elsewhere");
    return;
  }
  // With options that speak up, so that warnings about them are not taken for the loader's.
  ChildResult child = run_preloaded(library);
  bool refused = child.said.find("cannot be preloaded") != std::string::npos;
  if (!child.exited_well || refused) {
    findings.problem("library", library + " does not load: " + child.said,
                     "build it on this machine, or for its C library");
  } else {
    findings.ok("library", library + " loads");
  }
}

void check_options(Findings& findings) {
  Options options{};
  OptionProblems problems{};
  bool usable = read_options(environ, options, problems);
  for (std::size_t i = 0; i < problems.kept(); ++i) {
    findings.problem("options", problems.messages[i], "\"offload options\" lists them all");
  }
  if (!usable) {
    findings.problem("options", "with OFFLOAD_STRICT=1 liboffload stays inactive",
                     "correct the values above");
  } else if (options.disable) {
    findings.note("options", "OFFLOAD_DISABLE is set: liboffload does nothing",
                  "unset OFFLOAD_DISABLE");
  } else if (problems.count == 0) {
    std::size_t set = 0;
    for (OptionSource source : options.source) set += source == OptionSource::kEnvironment;
    findings.ok("options", std::to_string(set) + " set in the environment, all good");
  }
}

void check_preload(Findings& findings) {
  const char* value = std::getenv("LD_PRELOAD");
  if (value == nullptr || *value == '\0') {
    findings.ok("preload", "LD_PRELOAD is empty; \"offload run\" sets it");
    return;
  }
  std::string all = value;
  bool first = true;
  std::size_t at = 0;
  while (at < all.size()) {
    std::size_t end = std::min(all.find_first_of(" :", at), all.size());
    std::string name = all.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    if (name.find('/') != std::string::npos && !std::filesystem::exists(name)) {
      findings.problem("preload", name + " in LD_PRELOAD does not exist; the loader ignores it",
                       "remove it from LD_PRELOAD");
    }
    if (std::filesystem::path(name).filename() == kLibraryName && !first) {
      findings.problem("preload",
                       "liboffload.so is not the first in LD_PRELOAD; what stands before it may "
                       "answer in its place",
                       "put it first, as \"offload run\" does");
    }
    first = false;
  }
  findings.ok("preload", "LD_PRELOAD=" + all);
}

void check_host(Findings& findings) {
  HostMemory memory = read_host_memory();
  std::uint64_t headroom = memory.headroom_bytes();
  std::string text = size(headroom) + " of host memory may be taken (" +
                     size(memory.available_bytes) + " available";
  if (memory.cgroup_limit_bytes != HostMemory::kUnknown) {
    text += ", cgroup limit " + size(memory.cgroup_limit_bytes) + " with " +
            size(memory.cgroup_headroom_bytes) + " left";
  }
  text += ")";
  if (headroom < kLittleHostMemory) {
    findings.problem("host memory", text,
                     "little can be moved out: free memory, or raise the container's limit");
  } else {
    findings.ok("host memory", text);
  }
  std::uint64_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  std::string mappings = "vm.max_map_count is " + std::to_string(most);
  if (most < kUsualMapCount) {
    findings.problem("mappings",
                     mappings + ", less than the kernel's usual " + std::to_string(kUsualMapCount),
                     "sysctl vm.max_map_count=" + std::to_string(kUsualMapCount));
  } else {
    findings.ok("mappings", mappings);
  }
}

}  // namespace offload::cli
