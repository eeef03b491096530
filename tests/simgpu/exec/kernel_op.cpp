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
                   const SimgpuLaunch& launch, std::vector<std::byte> buffer, Names names)
    : image_(std::move(image)),
      kernel_(kernel),
      launch_(launch),
      buffer_(std::move(buffer)),
      names_(std::move(names)) {
  launch_.window_begin = window().begin;
  launch_.window_end = window().end;
  launch_.pointer_delta = window().delta;
  arguments_.reserve(kernel_->parameters().size());
  for (const KernelParameter& parameter : kernel_->parameters()) {
    arguments_.push_back(buffer_.data() + parameter.offset);
  }
}

void KernelOp::submitted() {
  if (names_.told) name_log().launch(stream->id, kernel_->name(), launch_, names_);
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
  if (names_.told) {
    for (const Name& name : names_.list) count(name.address, name.bytes());
    return;
  }
  each_address(*kernel_, buffer_, [this](uintptr_t address) {
    const Mapping* mapping = address_space().find(address);
    if (mapping != nullptr && mapping->live) count(mapping->begin, mapping->bytes);
  });
}

// Tells an unknown kernel how far what it names reaches.
class KernelOp::Named : public AccessRecorder {
 public:
  Named(const KernelOp& op, bool record) : AccessRecorder(op.stream->device, record), op_(op) {}

  size_t extent(uintptr_t address) override {
    if (!op_.names_.told) return AccessRecorder::extent(address);
    for (const Name& name : op_.names_.list) {
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
  for (const Name& name : names_.list) first_use(*name.allotment, stream->device);
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
