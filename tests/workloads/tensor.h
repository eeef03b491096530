// SPDX-License-Identifier: Apache-2.0
#pragma once
// One device allocation with its role in training. A Tensor is shared by whoever needs it, on
// either host thread, and its memory is freed by the last one, as PyTorch frees storages.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gpt {

class Queue;

enum class Role {
  kParameter,
  kGradient,  // of a parameter
  kOptimizerState,
  kActivation,  // made by the forward pass and saved for the backward pass
  kTemporary,   // anything else that dies within the step, gradients of activations included
  kInput,
  kLogits,
  kWorkspace,  // inside one operation
};

inline const char* role_name(Role role) {
  constexpr const char* kNames[] = {"parameter", "gradient", "optimizer state", "activation",
                                    "temporary", "input",    "logits",          "workspace"};
  return kNames[int(role)];
}

// One operation's use of a tensor.
struct Use {
  int64_t op;
  bool reads;
  bool writes;
};

struct Buffer {
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();  // frees the memory, in device.cpp

  Queue* queue = nullptr;  // where it is freed, if stream-ordered
  void* address = nullptr;
  int64_t bytes = 0;
  Role role = Role::kTemporary;
  const char* name = "";
  int layer = -1;      // -1: belongs to no layer
  bool saved = false;  // the tape has held it
  // For the account of lives (truth.h).
  int64_t number = 0;
  int64_t born_step = 0;
  int64_t born_op = 0;
  int64_t born_clock = 0;
  std::vector<Use> uses;
};

using Tensor = std::shared_ptr<Buffer>;

// How an operation uses a tensor that it is given. A null tensor is passed as a null pointer.
struct Operand {
  const Tensor& tensor;
  bool is_read;
  bool is_written;
};
inline Operand reads(const Tensor& tensor) {
  return {tensor, true, false};
}
inline Operand writes(const Tensor& tensor) {
  return {tensor, false, true};
}
inline Operand updates(const Tensor& tensor) {
  return {tensor, true, true};
}

}  // namespace gpt
