// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>

#include "profiler/base/log.h"
#include "profiler/base/own_file.h"
#include "profiler/base/paths.h"
#include "profiler/report.h"

namespace offload {
namespace {

constexpr std::string_view kDefaultJsonFile = "offload-report.%r.%p.json";
constexpr std::size_t kReportBytes = 16384;

}  // namespace

void write_report(const Options& options, const ReportFacts& facts, const Snapshot& snapshot) {
  if (options.report == Report::kOff) return;
  bool json = options.report == Report::kJson;
  // Made whole first: one write, so that the summaries of several processes do not mix on a
  // terminal.
  char text[kReportBytes];
  BufferSink buffer{std::span<char>(text)};
  json ? write_json_report(snapshot, facts, buffer.sink())
       : write_text_report(snapshot, facts, buffer.sink());
  std::string_view pattern = options.report_file.c_str();
  if (pattern.empty() && json) pattern = kDefaultJsonFile;
  if (pattern.empty()) {
    write_to_stderr(buffer.text());
    return;
  }
  char path[kPathBytes];
  int descriptor = create_from_pattern(pattern, std::span<char>(path));
  if (descriptor >= 0 && write_fully(descriptor, buffer.text())) {
    log_info("the summary is in %s", path);
  } else {
    log_warn("the summary cannot be written to %s (%s); %s; choose another OFFLOAD_REPORT_FILE",
             descriptor >= 0 ? path : pattern.data(), file_error_text(errno),
             json ? "it is lost" : "here it is");
    if (!json) write_to_stderr(buffer.text());
  }
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace offload
