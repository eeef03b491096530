// SPDX-License-Identifier: Apache-2.0
#pragma once
// A folder with a copy of `offload` in it, and what became of running it there.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace offload::cli {

struct Outcome {
  int status;  // exit status, or minus the signal
  std::string out;
  std::string err;
};

class Sandbox {
 public:
  Sandbox();
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::string program() const { return folder_ / "bin" / "offload"; }
  // Puts the library that does nothing there, below the folder.
  std::string install_library(const std::string& place);
  // Runs the copy with these variables on top of an environment that holds PATH only.
  Outcome run(const std::vector<std::string>& arguments,
              const std::map<std::string, std::string>& variables = {});

 private:
  std::filesystem::path folder_;
};

}  // namespace offload::cli
