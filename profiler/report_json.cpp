// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "profiler/base/json.h"
#include "profiler/base/paths.h"
#include "profiler/report.h"

namespace offload {
namespace {

constexpr int kSecondsDecimals = 6;
constexpr int kRateDecimals = 3;

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

// GB/s: bytes per nanosecond. Measured rates win.
double rate(double measured_bytes_per_s, std::uint64_t bytes, std::uint64_t ns) {
  if (measured_bytes_per_s > 0) return measured_bytes_per_s / 1e9;
  return ns == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(ns);
}

void write_waits(const Snapshot& snapshot, JsonWriter& json) {
  json.begin_object("host_waits");
  for (std::size_t i = 0; i < kHostWaits; ++i) {
    json.begin_object(name_of(static_cast<HostWait>(i)));
    json.member("count", snapshot.waits[i].count);
    json.member("seconds", seconds(snapshot.waits[i].ns), kSecondsDecimals);
    json.end_object();
  }
  json.end_object();
}

void write_top(const Snapshot& snapshot, JsonWriter& json) {
  json.begin_array("top_buffers");
  for (std::size_t i = 0; i < snapshot.top_count; ++i) {
    const TopBuffers::Entry& entry = snapshot.top[i];
    json.begin_object();
    json.member("bytes", entry.buffer_bytes);
    json.member("copies_out", entry.copies_out);
    json.member("copies_in", entry.copies_in);
    json.member("moved_bytes", entry.moved_bytes);
    json.member("error_bytes", entry.error_bytes);
    json.end_object();
  }
  json.end_array();
}

void write_devices(const ReportFacts& facts, JsonWriter& json) {
  json.begin_array("devices");
  for (const DeviceFacts& device : facts.devices) {
    const Snapshot& counts = *device.counts;
    json.begin_object();
    json.member("device", std::uint64_t{device.ordinal});
    json.member("name", device.name);
    json.member("total_bytes", device.total_bytes);
    json.member("gpu_limit_bytes", device.limit_bytes);
    json.member("peak_bytes_without", counts.live_bytes.peak);
    json.member("peak_bytes_with", counts.mapped_bytes.peak);
    json.member("host_peak_bytes", counts.host_bytes.peak);
    json.member("pinned_peak_bytes", counts.pinned_bytes.peak);
    json.member("bytes_out", counts.bytes_out);
    json.member("bytes_in", counts.bytes_in);
    json.member("copies_out", counts.copies_out);
    json.member("copies_in", counts.copies_in);
    json.member("exposed_seconds", seconds(counts.exposed_ns), kSecondsDecimals);
    json.end_object();
  }
  json.end_array();
}

void write_reason(const Snapshot& snapshot, const ReportFacts& facts, JsonWriter& json) {
  json.key("reason");
  bool stands = (snapshot.copies_out == 0 && facts.incomplete.empty()) || snapshot.reason_given;
  stands ? json.value(name_of(snapshot.reason)) : json.null();
  json.key("reason_text");
  stands ? json.value(sentence_of(snapshot.reason)) : json.null();
}

}  // namespace

void write_json_report(const Snapshot& snapshot, const ReportFacts& facts, Sink out) {
  JsonWriter json(out);
  json.begin_object();
  json.member("format", kReportFormat);
  json.member("version", facts.version);
  json.member("program", facts.program);
  json.member("process", static_cast<std::uint64_t>(getpid()));
  json.member("rank", process_rank());
  json.member("device", facts.device);
  json.member("mode", word(facts.mode));
  json.member("policy", word(facts.policy));
  json.member("evicted", word(facts.evicted));
  json.member("elapsed_seconds", seconds(snapshot.elapsed_ns), kSecondsDecimals);
  json.member("device_total_bytes", facts.device_total_bytes);
  json.member("gpu_limit_bytes", facts.gpu_limit_bytes);
  json.member("host_limit_bytes", facts.host_limit_bytes);

  json.member("peak_bytes_without", snapshot.live_bytes.peak);
  json.member("peak_operation", snapshot.peak.operation);
  json.member("peak_seconds", seconds(snapshot.peak.time_ns), kSecondsDecimals);
  json.member("peak_bytes_with", snapshot.mapped_bytes.peak);
  json.member("host_peak_bytes", snapshot.host_bytes.peak);
  json.member("pinned_peak_bytes", snapshot.pinned_bytes.peak);
  json.member("own_memory_bytes", facts.own_memory_bytes);
  json.member("rounding_waste_bytes", snapshot.peak.rounding_waste_bytes);
  json.member("spare_bytes", snapshot.peak.spare_bytes);

  json.member("exposed_seconds", seconds(snapshot.exposed_ns), kSecondsDecimals);
  json.member("copy_out_seconds", seconds(snapshot.copy_out_ns), kSecondsDecimals);
  json.member("copy_in_seconds", seconds(snapshot.copy_in_ns), kSecondsDecimals);
  json.member("d2h_gb_per_s", rate(facts.d2h_bytes_per_s, snapshot.bytes_out, snapshot.copy_out_ns),
              kRateDecimals);
  json.member("h2d_gb_per_s", rate(facts.h2d_bytes_per_s, snapshot.bytes_in, snapshot.copy_in_ns),
              kRateDecimals);
  json.member("remap_seconds", seconds(snapshot.remap_ns), kSecondsDecimals);
  // The plain counts under their own names; times stand above, in seconds.
#define COUNTER(name, sentence) \
  if (!std::string_view(#name).ends_with("_ns")) json.member(#name, snapshot.name);
#include "profiler/statistics.def"

  write_waits(snapshot, json);
  json.begin_object("pass_through");
  for (std::size_t i = 0; i < kPassThroughs; ++i) {
    json.member(name_of(static_cast<PassThrough>(i)), snapshot.passes[i]);
  }
  json.end_object();
  write_top(snapshot, json);
  write_devices(facts, json);
  write_reason(snapshot, facts, json);
  json.key("incomplete");
  facts.incomplete.empty() ? json.null() : json.value(facts.incomplete);
  json.end_object();
}

}  // namespace offload
