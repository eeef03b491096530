// SPDX-License-Identifier: Apache-2.0
// The whole model's gradients against differences of its loss, on whatever GPU the process sees.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/workloads/backward_thread.h"
#include "tests/workloads/model.h"
#include "tests/workloads/random.h"

namespace gpt {
namespace {

using Floats = std::vector<float>;

Options tiny_options(int checkpoint_every) {
  Options options;
  options.layers = 2;
  options.width = 16;
  options.heads = 2;
  options.sequence = 24;
  options.batch = 2;
  options.checkpoint_every = checkpoint_every;
  return options;
}

class Gradient : public testing::TestWithParam<int> {
 protected:
  Gradient()
      : options_(tiny_options(GetParam())),
        queue_(device_, "compute"),
        text_("", options_.sequence),
        shape_{options_.batch, options_.sequence, options_.width},
        loader_(text_, 1, shape_),
        model_(options_, queue_),
        staging_(int64_t{kVocabulary} * options_.width) {}

  Variable loss_of(const Batch& batch, bool recording) {
    return model_.loss({queue_, recording}, batch, [](int) {});
  }
  double read_loss(const Tensor& loss) {
    queue_.copy_out(staging_.data(), loss, sizeof(float));
    queue_.synchronize();
    return double(staging_[0]);
  }
  Floats read(const Tensor& tensor) {
    queue_.copy_out(staging_.data(), tensor, tensor->bytes);
    queue_.synchronize();
    return Floats(staging_.data(), staging_.data() + tensor->bytes / int64_t{sizeof(float)});
  }
  void write(const Tensor& tensor, const Floats& values) {
    std::copy(values.begin(), values.end(), staging_.data());
    queue_.copy_in(tensor, staging_.data(), tensor->bytes);
    queue_.synchronize();
  }
  void backward(const Batch& batch, float weight) {
    Variable loss = loss_of(batch, true);
    Tensor gradient = filled(queue_, weight, 1, Role::kTemporary, "gradient of the loss");
    thread_.run(queue_, std::move(loss.node), std::move(gradient));
  }

  Device device_;
  Options options_;
  Queue queue_;
  BackwardThread thread_{0};
  Text text_;
  Shape shape_;
  Loader loader_;
  Model model_;
  PinnedArray<float> staging_;
};
INSTANTIATE_TEST_SUITE_P(Checkpointing, Gradient, testing::Values(0, 1, 2));

// Two micro-batches of unequal weight, whose gradients are added.
TEST_P(Gradient, of_every_parameter_agrees_with_differences) {
  const Batch first = loader_.train(queue_, shape_);
  const Batch second = loader_.train(queue_, shape_);
  backward(first, 0.75f);
  backward(second, 0.25f);
  constexpr float kStep = 1.0f / 256;
  uint64_t seed = 1;
  for (Parameter& parameter : model_.parameters()) {
    const Floats gradient = read(parameter.gradient);
    const Floats origin = read(parameter.data);
    double length = 0.0;
    for (const float g : gradient) length += double(g) * double(g);
    length = std::sqrt(length);
    ASSERT_GT(length, 0.0) << parameter.name << " of layer " << parameter.layer;

    // Along the gradient itself, where the slope is largest, mixed with chance, which notices what
    // is added to it.
    Random random(seed++);
    Floats direction(gradient.size());
    double claimed = 0.0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      direction[i] =
          gradient[i] / float(length) + 0.5f * random.normal() / std::sqrt(float(gradient.size()));
      claimed += double(gradient[i]) * double(direction[i]);
    }
    const auto shifted = [&](float by) {
      Floats values = origin;
      for (size_t i = 0; i < values.size(); ++i) values[i] += by * direction[i];
      write(parameter.data, values);
      return 0.75 * read_loss(loss_of(first, false).data) +
             0.25 * read_loss(loss_of(second, false).data);
    };
    const double measured =
        (double(shifted(kStep)) - double(shifted(-kStep))) / (2.0 * double(kStep));
    write(parameter.data, origin);
    EXPECT_NEAR(measured, claimed, 5e-3 * length + 1e-4)
        << parameter.name << " of layer " << parameter.layer;
  }
}

// (u + v) + u: the gradient that u has already got is the one that is on its way to v.
TEST(Tape, adds_to_a_copy_while_somebody_else_holds_the_gradient) {
  Device device;
  Queue queue(device, "compute");
  constexpr int64_t kCount = 16;
  Tensor got[2];
  Variable leaf[2];
  for (int i = 0; i < 2; ++i) {
    leaf[i] = {filled(queue, 1.0f, kCount, Role::kInput, "leaf"),
               make_leaf([&got, i](Queue&, Tensor gradient) { got[i] = std::move(gradient); })};
  }
  const Context context{queue};
  const Variable inner = add(context, leaf[0], leaf[1], kCount, "inner");
  const Variable outer = add(context, inner, leaf[0], kCount, "outer");
  run_backward(queue, outer.node, filled(queue, 0.5f, kCount, Role::kTemporary, "gradient"));
  const PinnedArray<float> values(2 * kCount);
  for (int i = 0; i < 2; ++i) queue.copy_out(&values[i * kCount], got[i], got[i]->bytes);
  queue.synchronize();
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[kCount], 0.5f);
}

}  // namespace
}  // namespace gpt
