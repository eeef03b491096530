// SPDX-License-Identifier: Apache-2.0
#pragma once
// The option table as text for people: help, the README's table, the line at start. Written to a
// sink; nothing allocates.

#include "profiler/base/options.h"
#include "profiler/base/sink.h"

namespace offload {

// "--gpu-limit" for GPU_LIMIT, terminated.
void flag_name(const OptionInfo& info, std::span<char> out);

// One paragraph per option: variable, values, default, sentence.
void write_option_help(Sink out, bool with_test_options);
// A Markdown table of the user's options.
void write_option_markdown(Sink out);
// "GPU_LIMIT=300MiB POLICY=none (environment); MODE=offload ... (default)".
void write_option_values(const Options& options, Sink out);

}  // namespace offload
