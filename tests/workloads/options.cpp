// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/options.h"

#include <cerrno>
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <string_view>
#include <variant>
#include <vector>

#include "tests/workloads/errors.h"

namespace gpt {
namespace {

struct AllocatorChoice {
  bool Options::*async;
};

struct Option {
  const char* name;
  const char* value;  // what the help calls it; null: a switch
  std::variant<int Options::*, int64_t Options::*, double Options::*, std::string Options::*,
               bool Options::*, AllocatorChoice>
      target;
  int64_t least;
  const char* help;
};

const std::vector<Option>& table() {
  static const std::vector<Option> rows = {
      {"layers", "N", &Options::layers, 1, "transformer blocks"},
      {"width", "N", &Options::width, 16, "hidden size, a multiple of 16"},
      {"heads", "N", &Options::heads, 1, "attention heads; width / heads must be 8, 16, 32 or 64"},
      {"sequence", "N", &Options::sequence, 2, "tokens per sequence"},
      {"batch", "N", &Options::batch, 1, "sequences per micro-batch"},
      {"steps", "N", &Options::steps, 1, "optimizer steps"},
      {"seed", "N", &Options::seed, 0, "of the weights and of the batches"},
      {"learning-rate", "X", &Options::learning_rate, 0, "of AdamW"},
      {"text", "FILE", &Options::text, 0, "what to learn (default: the licence)"},
      {"accumulate", "N", &Options::accumulate, 1, "micro-batches per step"},
      {"eval-every", "N", &Options::eval_every, 0, "evaluate after every N-th step; 0: never"},
      {"checkpoint-every", "K", &Options::checkpoint_every, 0,
       "keep one activation per K layers, recompute the rest; 0: off"},
      {"devices", "N", &Options::devices, 1, "train the same on N devices, at the same time"},
      {"optimizer-stream", nullptr, &Options::optimizer_stream, 0,
       "run the optimizer on a stream of its own"},
      {"allocator", "sync|async", AllocatorChoice{&Options::async_allocator}, 0,
       "cudaMalloc and cudaFree, or cudaMallocAsync and cudaFreeAsync (default sync)"},
      {"vary-sequence", nullptr, &Options::vary_sequence, 0, "another length every step"},
      {"truth", "FILE", &Options::truth, 0, "write every tensor's role and life there"},
      {"quiet", nullptr, &Options::quiet, 0, "no progress on stderr"},
      {"help", nullptr, &Options::help, 0, "this text"},
  };
  return rows;
}

// A model of 4 to 256 KiB per tensor that trains four steps in an instant.
void make_tiny(Options& options) {
  options.layers = 2;
  options.width = 32;
  options.heads = 2;
  options.sequence = 32;
  options.batch = 4;
  options.steps = 4;
}

int64_t parse_integer(const Option& option, const std::string& text) {
  errno = 0;
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  const bool fits = option.target.index() != 0 || value <= 1 << 30;
  if (errno != 0 || end == text.c_str() || *end != '\0' || value < option.least || !fits) {
    throw BadOption("--" + std::string(option.name) + " " + text +
                    ": must be a whole number of at least " + std::to_string(option.least));
  }
  return value;
}

void assign(Options& options, const Option& option, const std::string& text) {
  const std::string shown = "--" + std::string(option.name) + " " + text;
  if (const auto* target = std::get_if<int Options::*>(&option.target)) {
    options.** target = int(parse_integer(option, text));
  } else if (const auto* wide = std::get_if<int64_t Options::*>(&option.target)) {
    options.** wide = parse_integer(option, text);
  } else if (const auto* real = std::get_if<double Options::*>(&option.target)) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0' || !(value >= 0.0 && value <= 1e3)) {
      throw BadOption(shown + ": must be a number from 0 to 1000");
    }
    options.** real = value;
  } else if (const auto* name = std::get_if<std::string Options::*>(&option.target)) {
    if (text.empty()) throw BadOption(shown + ": must not be empty");
    options.** name = text;
  } else if (const auto* choice = std::get_if<AllocatorChoice>(&option.target)) {
    if (text != "sync" && text != "async") throw BadOption(shown + ": must be sync or async");
    options.*choice->async = text == "async";
  }
}

void check_together(const Options& options) {
  if (options.width % 16 != 0) {
    throw BadOption("--width " + std::to_string(options.width) + ": must be a multiple of 16");
  }
  const int head_width = options.width / options.heads;
  if (head_width * options.heads != options.width ||
      (head_width != 8 && head_width != 16 && head_width != 32 && head_width != 64)) {
    throw BadOption("--width " + std::to_string(options.width) + " --heads " +
                    std::to_string(options.heads) + ": width / heads must be 8, 16, 32 or 64");
  }
  // Element counts and grid extents of one tensor are kept in 32 bits.
  const int64_t largest = std::max<int64_t>(int64_t{4} * options.width, 256);
  if (options.sequence * int64_t{options.batch} * largest > int64_t{1} << 30 ||
      options.batch > 65535 || options.width > 65535) {
    throw BadOption("--sequence " + std::to_string(options.sequence) + " --batch " +
                    std::to_string(options.batch) + " --width " + std::to_string(options.width) +
                    ": one tensor would pass 4 GiB");
  }
}

}  // namespace

Options parse_options(int count, const char* const* arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    if (std::string_view(arguments[i]) == "--tiny") make_tiny(options);
  }
  for (int i = 1; i < count; ++i) {
    std::string name = arguments[i];
    if (name == "--tiny") continue;
    std::string value;
    bool has_value = false;
    if (const size_t equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
      has_value = true;
    }
    const Option* found = nullptr;
    for (const Option& option : table()) {
      if (name == "--" + std::string(option.name)) found = &option;
    }
    if (found == nullptr) throw BadOption("unknown option " + name + "; --help lists them");
    if (found->value == nullptr) {
      if (has_value) throw BadOption(name + " takes no value");
      options.*std::get<bool Options::*>(found->target) = true;
      continue;
    }
    if (!has_value) {
      if (i + 1 == count) throw BadOption(name + " needs a value: " + name + " " + found->value);
      value = arguments[++i];
    }
    assign(options, *found, value);
  }
  check_together(options);
  return options;
}

std::string help_text() {
  const Options defaults;
  std::ostringstream out;
  out << "usage: train_gpt [options]\n"
         "Trains a small GPT on text and prints each step's loss, the peak of its live tensors'\n"
         "bytes, and a hash of the final weights.\n\n";
  for (const Option& option : table()) {
    std::string left = "  --" + std::string(option.name);
    if (option.value != nullptr) left += std::string(" ") + option.value;
    out << std::left << std::setw(28) << left << option.help;
    if (const auto* number = std::get_if<int Options::*>(&option.target)) {
      out << " (default " << defaults.**number << ")";
    } else if (const auto* wide = std::get_if<int64_t Options::*>(&option.target)) {
      out << " (default " << defaults.**wide << ")";
    } else if (const auto* real = std::get_if<double Options::*>(&option.target)) {
      out << " (default " << defaults.**real << ")";
    }
    out << "\n";
  }
  out << "  --tiny                    a model of 4 to 256 KiB per tensor, 4 steps; other options "
         "change it further\n\n"
         "Exit status: 0 trained, 2 bad option, 3 out of memory, 4 another CUDA error.\n";
  return out.str();
}

}  // namespace gpt
