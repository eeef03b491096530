// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/kernel_op.h"

#include <algorithm>
#include <cstring>

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/statistics.h"
#include "tests/simgpu/exec/access_recorder.h"
#include "tests/simgpu/exec/device_fault.h"
#include "tests/simgpu/exec/fault.h"
#include "tests/simgpu/exec/stream.h"
#include "tests/simgpu/memory/window.h"

namespace simgpu {

namespace {

constexpr double kLaunchSeconds = 3e-6;

struct Body {
  const Kernel* kernel;
  const SimgpuLaunch* launch;
  void* const* arguments;
  AccessSink* sink;
  bool succeeded;
};

void run_body(void* pointer) {
  Body& body = *static_cast<Body*>(pointer);
  body.succeeded = body.kernel->run(*body.launch, body.arguments, *body.sink);
}

}  // namespace

KernelOp::KernelOp(std::shared_ptr<const Image> image, const Kernel* kernel,
                   const SimgpuLaunch& launch, std::vector<std::byte> buffer)
    : image_(std::move(image)),
      kernel_(kernel),
      launch_(launch),
      buffer_(std::move(buffer)),
      told_(allotments().told()) {
  launch_.window_begin = window().begin;
  launch_.window_end = window().end;
  launch_.pointer_delta = window().delta;
  arguments_.reserve(kernel_->parameters().size());
  for (const KernelParameter& parameter : kernel_->parameters()) {
    arguments_.push_back(buffer_.data() + parameter.offset);
  }
  if (told_) look_up_names();
}

template <class Visit>
void KernelOp::each_word(Visit visit) const {
  for (const KernelParameter& parameter : kernel_->parameters()) {
    for (size_t at = (parameter.offset + 7) & ~size_t{7};
         at + 8 <= parameter.offset + parameter.size; at += 8) {
      uintptr_t address = 0;
      std::memcpy(&address, buffer_.data() + at, sizeof address);
      if (window().contains(address)) visit(address);
    }
  }
}

void KernelOp::look_up_names() {
  size_t dead = 0;
  each_word([&](uintptr_t address) {
    if (AllotmentRef allotment = allotments().find(address)) {
      names_.push_back({address, std::move(allotment)});
    } else if (allotments().is_dead(address)) {
      ++dead;  // others are no addresses: a pair of integers may look like one
    }
  });
  name_log().launch(kernel_->name(), names_, dead);
}

void KernelOp::count(uintptr_t address, size_t bytes) {
  std::vector<Segment> segments;
  uintptr_t fault = 0;
  address_space().translate(stream->device, address, bytes, true, &segments, &fault);
  for (const Segment& segment : segments) {
    checker().write(segment);
    bytes_ += 2.0 * static_cast<double>(segment.bytes);
  }
}

void KernelOp::count_named_memory() {
  if (told_) {
    for (const Name& name : names_) count(name.address, name.bytes());
    return;
  }
  each_word([this](uintptr_t address) {
    const Mapping* mapping = address_space().find(address);
    if (mapping != nullptr && mapping->live) count(mapping->begin, mapping->bytes);
  });
}

// Tells an unknown kernel how far what it names reaches.
class KernelOp::Named : public AccessRecorder {
 public:
  Named(const KernelOp& op, bool record) : AccessRecorder(op.stream->device, record), op_(op) {}

  size_t extent(uintptr_t address) override {
    if (!op_.told_) return AccessRecorder::extent(address);
    for (const Name& name : op_.names_) {
      if (name.address == address) return name.bytes();
    }
    return 0;
  }

 private:
  const KernelOp& op_;
};

void KernelOp::run(Lock& lock) {
  ++statistics().kernels;
  checker().begin(*stream, OpClass::kKernel, kernel_->name());
  const bool unknown = kernel_->access_unknown();
  if (unknown) count_named_memory();
  for (const Name& name : names_) first_use(*name.allotment, stream->device);
  Named recorder(*this, checker().on() && !unknown);
  Body body{kernel_, &launch_, arguments_.data(), &recorder, false};
  uintptr_t address = 0;
  lock.unlock();
  install_fault_handler();
  const bool finished = run_guarded(run_body, &body, &address);
  const double flops = kernel_->flops(launch_, arguments_.data());
  lock.lock();
  recorder.tell(lock);
  const double bytes = bytes_ + recorder.bytes();
  seconds_ = std::max(
      {kLaunchSeconds, flops / (options().flops * 1e9), bytes / (options().bandwidth * 1e9)});
  if (!finished || recorder.refused()) {
    device_fault(*stream->context, describe(), finished ? recorder.refused_address() : address);
  } else if (!body.succeeded) {
    launch_failure(*stream->context, describe());
  }
}

}  // namespace simgpu
