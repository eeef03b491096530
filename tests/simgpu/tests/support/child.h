// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a piece of a test in a child process: the driver reads its variables once, faults kill, and
// reports change the exit status. Failed expectations in the child are printed and make its
// status 1.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

namespace simgpu::test {

using Environment = std::map<std::string, std::string>;

struct Outcome {
  int status = -1;  // exit status; -1: killed by a signal
  int signal = 0;
  std::string errors;  // its stderr
  bool says(const std::string& text) const { return errors.find(text) != std::string::npos; }
};

// `environment` comes on top of what the tests have. Killed after 60 s.
Outcome in_child(const Environment& environment, const std::function<void()>& body);

// The body ran to its end, its expectations held, and the checker had nothing to say.
void expect_clean(const Outcome& outcome);
// The checker reported, with this text.
void expect_report(const Outcome& outcome, const std::string& text);

}  // namespace simgpu::test

#define EXPECT_CLEAN(outcome) \
  do {                        \
    SCOPED_TRACE("clean");    \
    expect_clean(outcome);    \
  } while (0)
#define EXPECT_REPORT(outcome, text) \
  do {                               \
    SCOPED_TRACE("report");          \
    expect_report(outcome, text);    \
  } while (0)
