// SPDX-License-Identifier: Apache-2.0
#include "interpose/cli/library.h"

#include <filesystem>

namespace offload::cli {

std::string find_library() {
  std::error_code failure;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return "";
  std::filesystem::path folder = self.parent_path();
  for (const char* place : {"", "../lib", "../lib64"}) {
    std::filesystem::path path = (folder / place / kLibraryName).lexically_normal();
    if (std::filesystem::exists(path, failure)) return path;
  }
  return "";
}

bool is_preloadable_path(const std::string& path) {
  return path.find_first_of(" :") == std::string::npos;
}

std::string prepend_preload(const std::string& library, const std::string& before) {
  std::string value = library;
  std::size_t at = 0;
  while (at < before.size()) {
    std::size_t end = before.find_first_of(" :", at);
    if (end == std::string::npos) end = before.size();
    std::string name = before.substr(at, end - at);
    if (!name.empty() && name != library) value += ":" + name;
    at = end + 1;
  }
  return value;
}

}  // namespace offload::cli
