// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `offload doctor` found, a line each: "ok", "note" (works, with less), or "problem" with how
// to mend it.

#include <string>
#include <vector>

namespace offload::cli {

enum class Verdict { kOk, kNote, kProblem };

struct Finding {
  Verdict verdict;
  std::string subject;
  std::string text;
  std::string remedy;  // for notes and problems; may be empty
};

class Findings {
 public:
  void ok(const std::string& subject, const std::string& text);
  void note(const std::string& subject, const std::string& text, const std::string& remedy = "");
  void problem(const std::string& subject, const std::string& text, const std::string& remedy);
  bool healthy() const;
  const std::vector<Finding>& all() const { return all_; }

 private:
  std::vector<Finding> all_;
};

void check_library(Findings& findings);  // doctor_host.cpp
void check_options(Findings& findings);
void check_preload(Findings& findings);
void check_host(Findings& findings);
void check_driver(Findings& findings);  // doctor_driver.cpp

// Measures what only a GPU can tell. Prints its own table, returns the exit status. probe.cpp
int run_probe();

}  // namespace offload::cli
