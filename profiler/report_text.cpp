// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "profiler/base/paths.h"
#include "profiler/base/units.h"
#include "profiler/report.h"

namespace offload {
namespace {

using Number = unsigned long long;

// One line: a label in a column of its own, then what the format makes.
__attribute__((format(printf, 3, 4))) void line(Sink out, const char* label, const char* format,
                                                ...) {
  char text[512];
  int head = std::snprintf(text, sizeof text, "  %-16s ", label);
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text + head, sizeof text - static_cast<std::size_t>(head), format, arguments);
  va_end(arguments);
  out(text);
  out("\n");
}

void write_head(const ReportFacts& facts, Sink out) {
  char text[256];
  char program[64];  // its name may hold anything, and a terminal would obey it
  const std::size_t length = facts.program.copy(program, sizeof program);
  std::replace_if(
      program, program + length,
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  std::string_view rank = process_rank();
  std::snprintf(text, sizeof text, "liboffload %.*s: %.*s, process %d%s%.*s\n",
                static_cast<int>(facts.version.size()), facts.version.data(),
                static_cast<int>(length), program, static_cast<int>(getpid()),
                rank.empty() ? "" : ", rank ", static_cast<int>(rank.size()), rank.data());
  out(text);
  std::string_view policy = word(facts.policy);
  line(out, "policy", "%.*s%s", static_cast<int>(policy.size()), policy.data(),
       facts.mode == Mode::kObserve ? " (observing: nothing is moved)" : "");
  if (facts.device_total_bytes != 0 && facts.devices.size() < 2) {
    line(out, "device", "%.*s, %s; limit %s", static_cast<int>(facts.device.size()),
         facts.device.data(), format_size(facts.device_total_bytes).c_str(),
         format_size(facts.gpu_limit_bytes).c_str());
  }
}

// A line or two for each of several: what it is, and what became of it.
void write_devices(const ReportFacts& facts, Sink out) {
  if (facts.devices.size() < 2) return;
  for (const DeviceFacts& device : facts.devices) {
    char label[24];
    std::snprintf(label, sizeof label, "device %u", device.ordinal);
    const Snapshot& counts = *device.counts;
    line(out, label, "%.*s, %s; limit %s; peak %s without us, %s with us",
         static_cast<int>(device.name.size()), device.name.data(),
         format_size(device.total_bytes).c_str(), format_size(device.limit_bytes).c_str(),
         format_size(counts.live_bytes.peak).c_str(),
         format_size(counts.mapped_bytes.peak).c_str());
    if (counts.copies_out == 0) continue;
    line(out, "", "moved out %s, moved in %s", format_size(counts.bytes_out).c_str(),
         format_size(counts.bytes_in).c_str());
  }
}

void write_peaks(const Snapshot& s, const ReportFacts& facts, Sink out) {
  line(out, "peak without us", "%s of live buffers, at operation %llu (%s)",
       format_size(s.live_bytes.peak).c_str(), Number{s.peak.operation},
       format_seconds(s.peak.time_ns).c_str());
  char difference[128] = "";
  if (s.live_bytes.peak > s.mapped_bytes.peak) {
    double part =
        1 - static_cast<double>(s.mapped_bytes.peak) / static_cast<double>(s.live_bytes.peak);
    std::snprintf(difference, sizeof difference, ", %s less", format_percent(part).c_str());
  } else if (s.live_bytes.peak < s.mapped_bytes.peak) {
    // Without the reason it reads as if liboffload cost memory that was needed.
    std::snprintf(difference, sizeof difference,
                  ", %s more: whole pages, and what is kept for the next request",
                  format_size(s.mapped_bytes.peak - s.live_bytes.peak).c_str());
  }
  line(out, "peak with us", "%s of device memory mapped%s",
       format_size(s.mapped_bytes.peak).c_str(), difference);
  line(out, "rounding waste", "%s at the peak; %s more were kept for later",
       format_size(s.peak.rounding_waste_bytes).c_str(), format_size(s.peak.spare_bytes).c_str());
  line(out, "host memory", "%s at most, of %s allowed", format_size(s.host_bytes.peak).c_str(),
       format_size(facts.host_limit_bytes).c_str());
  if (s.given_way_bytes > 0) {
    line(out, "given back", "%s, which the driver needed for itself",
         format_size(s.given_way_bytes).c_str());
  }
}

// OFFLOAD_MODE=observe.
void write_rehearsal(const Snapshot& s, const ReportFacts& facts, Sink out) {
  line(out, "would have held", "%s on the device%s, %s in host memory",
       format_size(s.rehearsed_device_bytes.peak).c_str(),
       s.rehearsed_shortages > 0 ? " (more than the limit, see below)" : "",
       format_size(s.rehearsed_host_bytes.peak).c_str());
  line(out, "would have moved", "%s out in %llu buffers, %s back in %llu",
       format_size(s.rehearsed_bytes_out).c_str(), Number{s.rehearsed_copies_out},
       format_size(s.rehearsed_bytes_in).c_str(), Number{s.rehearsed_copies_in});
  if (s.rehearsed_shortages > 0) {
    line(out, "would not fit", "%llu times more was in use at once than the limit of %s",
         Number{s.rehearsed_shortages}, format_size(facts.gpu_limit_bytes).c_str());
  }
}

void write_traffic(const Snapshot& s, Sink out) {
  line(out, "moved out", "%s in %llu buffers, %s", format_size(s.bytes_out).c_str(),
       Number{s.copies_out}, format_rate(s.bytes_out, s.copy_out_ns).c_str());
  line(out, "moved in", "%s in %llu buffers, %s", format_size(s.bytes_in).c_str(),
       Number{s.copies_in}, format_rate(s.bytes_in, s.copy_in_ns).c_str());
  line(out, "demand misses", "%llu", Number{s.demand_misses});
  line(out, "exposed time", "%s that the device stood waiting for copies",
       format_seconds(s.exposed_ns).c_str());
  if (s.in_place_operations > 0) {
    line(out, "in place", "%llu operations used %s in host memory: they name more than fits",
         Number{s.in_place_operations}, format_size(s.in_place_bytes).c_str());
  }
  line(out, "remapping", "%s of host time in %llu calls", format_seconds(s.remap_ns).c_str(),
       Number{s.remaps});
}

void write_waits(const Snapshot& s, Sink out) {
  const char* label = "host waits";
  for (std::size_t i = 0; i < kHostWaits; ++i) {
    if (s.waits[i].count == 0) continue;
    std::string_view cause = sentence_of(static_cast<HostWait>(i));
    line(out, label, "%llu times, %s: %.*s", Number{s.waits[i].count},
         format_seconds(s.waits[i].ns).c_str(), static_cast<int>(cause.size()), cause.data());
    label = "";
  }
  if (*label != '\0') line(out, label, "none");
}

void write_passes(const Snapshot& s, Sink out) {
  const char* label = "passed through";
  for (std::size_t i = 0; i < kPassThroughs; ++i) {
    if (s.passes[i] == 0) continue;
    std::string_view cause = sentence_of(static_cast<PassThrough>(i));
    line(out, label, "%llu calls: %.*s", Number{s.passes[i]}, static_cast<int>(cause.size()),
         cause.data());
    label = "";
  }
}

void write_top(const Snapshot& s, Sink out) {
  const char* label = "moved most";
  for (std::size_t i = 0; i < s.top_count; ++i) {
    const TopBuffers::Entry& entry = s.top[i];
    line(out, label, "buffers of %s: %s, out %llu times, in %llu times",
         format_size(entry.buffer_bytes).c_str(), format_size(entry.moved_bytes).c_str(),
         Number{entry.copies_out}, Number{entry.copies_in});
    label = "";
  }
}

}  // namespace

void write_text_report(const Snapshot& snapshot, const ReportFacts& facts, Sink out) {
  write_head(facts, out);
  // Where nothing was looked at, there is nothing to tell.
  const bool measured = !snapshot.reason_given || (snapshot.reason != Reason::disabled &&
                                                   snapshot.reason != Reason::bad_options);
  write_devices(facts, out);
  if (measured) write_peaks(snapshot, facts, out);
  if (facts.mode == Mode::kObserve) write_rehearsal(snapshot, facts, out);
  if (snapshot.copies_out > 0 || snapshot.copies_in > 0) {
    write_traffic(snapshot, out);
    write_top(snapshot, out);
  }
  if (measured) write_waits(snapshot, out);
  write_passes(snapshot, out);
  if (snapshot.verified > 0) {
    line(out, "verified", "%llu round trips, %llu of them wrong", Number{snapshot.verified},
         Number{snapshot.verify_failures});
  }
  if (!facts.incomplete.empty()) {
    out("  The numbers are not final: ");
    out(facts.incomplete);
    out(".\n");
  }
  bool still = snapshot.copies_out == 0;
  if ((still && facts.incomplete.empty()) || snapshot.reason_given) {
    std::string_view reason = sentence_of(snapshot.reason);
    const bool at_times = snapshot.reason == Reason::host_memory_exhausted ||
                          snapshot.reason == Reason::pinning_could_wait;
    out(still ? "  Nothing was moved: "
              : (at_times ? "  Less could leave at times: " : "  Moving stopped: "));
    out(reason);
    out(".\n");
  }
}

}  // namespace offload
