// SPDX-License-Identifier: Apache-2.0
#include "interpose/cli/doctor.h"

#include <algorithm>
#include <cstdio>

#include "interpose/cli/commands.h"

namespace offload::cli {
namespace {

constexpr const char* kHelp =
    "usage: offload doctor [--probe]\n"
    "Checks what liboffload needs on this machine. Exit status 0: all is well; 1: something is "
    "wrong.\n"
    "--probe measures, on a GPU, what the driver does not tell.";

void print(const Finding& finding) {
  constexpr const char* kWords[] = {"ok", "note", "problem"};
  std::printf("%-8s %-12s %s\n", kWords[static_cast<int>(finding.verdict)], finding.subject.c_str(),
              finding.text.c_str());
  if (!finding.remedy.empty()) std::printf("%-21s -> %s\n", "", finding.remedy.c_str());
}

}  // namespace

void Findings::ok(const std::string& subject, const std::string& text) {
  all_.push_back({Verdict::kOk, subject, text, ""});
}
void Findings::note(const std::string& subject, const std::string& text,
                    const std::string& remedy) {
  all_.push_back({Verdict::kNote, subject, text, remedy});
}
void Findings::problem(const std::string& subject, const std::string& text,
                       const std::string& remedy) {
  all_.push_back({Verdict::kProblem, subject, text, remedy});
}
bool Findings::healthy() const {
  return std::none_of(all_.begin(), all_.end(),
                      [](const Finding& finding) { return finding.verdict == Verdict::kProblem; });
}

int doctor_command(const Arguments& arguments) {
  bool probe = false;
  for (const std::string& argument : arguments) {
    if (argument == "--probe") {
      probe = true;
    } else if (argument == "--help" || argument == "-h") {
      std::puts(kHelp);
      return kExitDone;
    } else {
      return usage_error("offload doctor does not take " + argument);
    }
  }
  Findings findings;
  for (auto check : {check_library, check_options, check_preload, check_host, check_driver}) {
    std::size_t before = findings.all().size();
    check(findings);
    // Each part at once: a driver that hangs must not hide what came before it.
    for (std::size_t i = before; i < findings.all().size(); ++i) print(findings.all()[i]);
    std::fflush(stdout);
  }
  if (!findings.healthy()) return kExitProblem;
  return probe ? run_probe() : kExitDone;
}

}  // namespace offload::cli
