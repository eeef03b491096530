// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/kernels.h"

#include "tests/simgpu/module/mix.h"

namespace simgpu {
namespace {

struct Declaration {
  AccessSink& sink;
  bool allowed;
};

void declare(void* context, const void* address, size_t bytes, int write) {
  auto& declaration = *static_cast<Declaration*>(context);
  if (!declaration.allowed || bytes == 0) return;
  declaration.allowed =
      declaration.sink.access(reinterpret_cast<uintptr_t>(address), bytes, write != 0);
}

}  // namespace

TwinKernel::TwinKernel(const SimgpuTwin& twin) : twin_(twin) {
  name_ = twin.name;
  for (int i = 0; i < twin.parameter_count; ++i) {
    parameters_.push_back({twin.parameter_offset[i], twin.parameter_size[i]});
  }
}

bool TwinKernel::run(const SimgpuLaunch& launch, void* const* arguments, AccessSink& sink) const {
  if (twin_.access != nullptr) {
    Declaration declaration{sink, true};
    twin_.access(&launch, arguments, declare, &declaration);
    if (!declaration.allowed) return false;
  }
  twin_.run(&launch, arguments);
  return true;
}

double TwinKernel::flops(const SimgpuLaunch& launch, void* const* arguments) const {
  return twin_.flops == nullptr ? 0 : twin_.flops(&launch, arguments);
}

UnknownKernel::UnknownKernel(std::string name, std::vector<KernelParameter> parameters) {
  name_ = std::move(name);
  parameters_ = std::move(parameters);
}

bool UnknownKernel::run(const SimgpuLaunch& launch, void* const* arguments,
                        AccessSink& sink) const {
  mix(name_, parameters_, launch, arguments, sink);
  return true;
}

double UnknownKernel::flops(const SimgpuLaunch&, void* const*) const {
  return 0;
}

}  // namespace simgpu
