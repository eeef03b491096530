// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/tests/support/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace simgpu::test {

namespace {

int failed_parts() {
  const auto* result = testing::UnitTest::GetInstance()->current_test_info()->result();
  int failed = 0;
  for (int i = 0; i < result->total_part_count(); ++i) {
    if (result->GetTestPartResult(i).failed()) ++failed;
  }
  return failed;
}

[[noreturn]] void be_child(const Environment& environment, const std::function<void()>& body,
                           int errors) {
  dup2(errors, STDERR_FILENO);
  alarm(60);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  const int before = failed_parts();
  body();
  std::exit(failed_parts() > before ? 1 : 0);
}

}  // namespace

Outcome in_child(const Environment& environment, const std::function<void()>& body) {
  std::fflush(nullptr);
  std::FILE* errors = std::tmpfile();
  const pid_t child = fork();
  if (child == 0) be_child(environment, body, fileno(errors));
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome;
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  std::rewind(errors);
  char buffer[4096];
  while (size_t count = std::fread(buffer, 1, sizeof buffer, errors))
    outcome.errors.append(buffer, count);
  std::fclose(errors);
  return outcome;
}

void expect_clean(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.errors, "");
}

void expect_report(const Outcome& outcome, const std::string& text) {
  EXPECT_EQ(outcome.status, 97) << outcome.errors;
  EXPECT_TRUE(outcome.says(text)) << outcome.errors;
}

}  // namespace simgpu::test
