// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/train.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <thread>

#include "tests/workloads/backward_thread.h"
#include "tests/workloads/loader.h"
#include "tests/workloads/model.h"
#include "tests/workloads/optimizer.h"
#include "tests/workloads/random.h"
#include "tests/workloads/text.h"

namespace gpt {
namespace {

void print_loss(std::FILE* out, const char* what, int64_t step, float loss) {
  std::fprintf(out, "%s %" PRId64 " loss %.6f %a\n", what, step, double(loss), double(loss));
  std::fflush(out);
}

// FNV-1a, 64 bit.
class Hash {
 public:
  void add(const void* data, int64_t bytes) {
    const auto* byte = static_cast<const unsigned char*>(data);
    for (int64_t i = 0; i < bytes; ++i) value_ = (value_ ^ byte[i]) * 0x100000001b3u;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

uint64_t hash_weights(Model& model, Queue& queue) {
  int64_t largest = 0;
  for (const Parameter& parameter : model.parameters()) {
    largest = std::max(largest, parameter.count());
  }
  const PinnedArray<float> staging(largest);
  Hash hash;
  for (const Parameter& parameter : model.parameters()) {
    queue.copy_out(staging.data(), parameter.data, parameter.data->bytes);
    queue.synchronize();
    hash.add(staging.data(), parameter.data->bytes);
  }
  return hash.value();
}

std::string describe(const Options& options) {
  const auto member = [](const char* name, int64_t value) {
    return "\"" + std::string(name) + "\":" + std::to_string(value);
  };
  return member("layers", options.layers) + "," + member("width", options.width) + "," +
         member("heads", options.heads) + "," + member("sequence", options.sequence) + "," +
         member("batch", options.batch) + "," + member("steps", options.steps) + "," +
         member("accumulate", options.accumulate) + "," + member("eval_every", options.eval_every) +
         "," + member("checkpoint_every", options.checkpoint_every) + "," +
         member("optimizer_stream", options.optimizer_stream) + "," +
         member("async_allocator", options.async_allocator) + "," +
         member("vary_sequence", options.vary_sequence);
}

class Run {
 public:
  Run(const Options& options, int ordinal, std::FILE* out)
      : options_(options),
        ordinal_(ordinal),
        out_(out),
        text_(options.text, options.sequence),
        truth_(options.truth.empty() ? nullptr
                                     : std::make_unique<Truth>(options.truth, describe(options))) {
    device_.async_allocator = options.async_allocator;
    device_.truth = truth_.get();
  }

  void operator()() {
    CHECK_CUDA(cudaSetDevice, ordinal_);
    Queue compute(device_, "compute");
    const auto own_queue =
        options_.optimizer_stream ? std::make_unique<Queue>(device_, "optimizer") : nullptr;
    Queue& update = own_queue != nullptr ? *own_queue : compute;
    BackwardThread backward(ordinal_);
    Loader loader(text_, uint64_t(options_.seed), shape(options_.sequence));
    const PinnedArray<float> losses(options_.accumulate);
    Model model(options_, compute);
    Optimizer optimizer(model, update, compute, options_.learning_rate);

    for (int step = 0; step < options_.steps; ++step) {
      device_.step = step + 1;
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < options_.accumulate; ++i) {
        accumulate(loader.train(compute, step_shape(step)), model, optimizer, backward, compute,
                   &losses[i]);
      }
      optimizer.step();
      compute.synchronize();
      float mean = 0.0f;
      for (int i = 0; i < options_.accumulate; ++i) mean += losses[i];
      print_loss(out_, "step", step + 1, mean / float(options_.accumulate));
      report(step + 1, begin);
      if (options_.eval_every > 0 && (step + 1) % options_.eval_every == 0) {
        evaluate(loader, model, optimizer, compute, step + 1);
      }
    }
    update.synchronize();
    compute.synchronize();
    const uint64_t hash = hash_weights(model, compute);
    std::fprintf(out_, "peak %" PRId64 "\nweights %016" PRIx64 "\n", device_.peak_bytes, hash);
    std::fflush(out_);
  }

 private:
  Shape shape(int sequence) const { return {options_.batch, sequence, options_.width}; }

  Shape step_shape(int step) const {
    if (!options_.vary_sequence) return shape(options_.sequence);
    // Between half and whole, each step's unlike the one before.
    const int lengths = options_.sequence / 2 + 1;
    const int64_t first = Random(uint64_t(options_.seed), 3, 0).below(lengths);
    const int64_t stride = 1 + lengths / 3;
    return shape(options_.sequence - int((first + step * stride) % lengths));
  }

  // One micro-batch forward and back. The loss arrives at `loss` when compute has passed.
  void accumulate(const Batch& batch, Model& model, Optimizer& optimizer, BackwardThread& backward,
                  Queue& compute, float* loss) {
    Variable result =
        model.loss({compute}, batch, [&](int layer) { optimizer.before_layer(layer); });
    compute.copy_out(loss, result.data, sizeof(float));
    Tensor gradient = filled(compute, 1.0f / float(options_.accumulate), 1, Role::kTemporary,
                             "gradient of the loss");
    backward.run(compute, std::move(result.node), std::move(gradient));
  }

  void evaluate(Loader& loader, Model& model, Optimizer& optimizer, Queue& compute, int step) {
    const PinnedArray<float> loss(1);
    const Batch batch = loader.evaluate(compute, shape(options_.sequence), 0);
    const Variable result =
        model.loss({compute, false}, batch, [&](int layer) { optimizer.before_layer(layer); });
    compute.copy_out(loss.data(), result.data, sizeof(float));
    compute.synchronize();
    print_loss(out_, "eval", step, loss[0]);
  }

  void report(int step, std::chrono::steady_clock::time_point begin) {
    if (options_.quiet) return;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "step %d of %d: %.2f s, peak %.1f MiB\n", step, options_.steps,
                 seconds.count(), double(device_.peak_bytes) / (1 << 20));
  }

  const Options& options_;
  const int ordinal_;
  std::FILE* const out_;
  Text text_;
  std::unique_ptr<Truth> truth_;
  Device device_;
};

// A device's run among others, and what it says.
struct OneOfSeveral {
  OneOfSeveral(const Options& options, int device) : ordinal(device) {
    thread = std::thread([this, &options] {
      std::FILE* const out = open_memstream(&said, &bytes);
      try {
        Run(options, ordinal, out)();
      } catch (...) {
        failure = std::current_exception();
      }
      std::fclose(out);
    });
  }
  ~OneOfSeveral() { std::free(said); }
  OneOfSeveral(const OneOfSeveral&) = delete;
  OneOfSeveral& operator=(const OneOfSeveral&) = delete;

  const int ordinal;
  char* said = nullptr;
  size_t bytes = 0;
  std::exception_ptr failure;
  std::thread thread;
};

}  // namespace

void train(const Options& options) {
  if (options.devices == 1) return Run(options, 0, stdout)();
  std::deque<OneOfSeveral> all;
  for (int i = 0; i < options.devices; ++i) all.emplace_back(options, i);
  for (OneOfSeveral& each : all) each.thread.join();
  for (const OneOfSeveral& each : all) {
    if (each.failure != nullptr) std::rethrow_exception(each.failure);
    std::printf("device %d\n%s", each.ordinal, each.said);
  }
}

}  // namespace gpt
