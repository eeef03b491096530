// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cli/sandbox.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace offload::cli {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Sandbox::Sandbox() {
  char name[] = "/tmp/offload_cli_XXXXXX";
  folder_ = mkdtemp(name);
  std::filesystem::create_directories(folder_ / "bin");
  std::filesystem::copy_file(OFFLOAD_PROGRAM, program());
}

Sandbox::~Sandbox() {
  std::filesystem::remove_all(folder_);
}

std::string Sandbox::install_library(const std::string& place) {
  std::filesystem::path path = folder_ / place / "liboffload.so";
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::copy_file(FAKE_LIBRARY, path);
  return path;
}

Outcome Sandbox::run(const std::vector<std::string>& arguments,
                     const std::map<std::string, std::string>& variables) {
  std::string out = folder_ / "out";
  std::string err = folder_ / "err";
  pid_t child = fork();
  if (child == 0) {
    clearenv();
    setenv("PATH", "/usr/bin:/bin", 1);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    dup2(open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDERR_FILENO);
    std::string file = program();
    std::vector<char*> words = {file.data()};
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), content(out), content(err)};
}

}  // namespace offload::cli
