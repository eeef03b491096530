// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/kernel.h"

#include <cstdio>
#include <cstdlib>

#include "tests/simgpu/module/ptx/interpreter.h"

namespace simgpu::ptx {
namespace {

constexpr uint64_t kDefaultLimit = 1'000'000'000;  // some ten seconds

uint64_t instruction_limit() {
  static const uint64_t limit = [] {
    const char* text = std::getenv("SIMGPU_PTX_LIMIT");
    if (text == nullptr) return kDefaultLimit;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (end != text && *end == '\0' && value > 0) return uint64_t{value};
    std::fprintf(stderr, "simgpu: SIMGPU_PTX_LIMIT=%s is no number above 0; %llu stands\n", text,
                 static_cast<unsigned long long>(kDefaultLimit));
    return kDefaultLimit;
  }();
  return limit;
}

}  // namespace

PtxKernel::PtxKernel(Program program) : program_(std::move(program)) {
  name_ = program_.name;
  parameters_ = program_.parameters;
}

bool PtxKernel::run(const SimgpuLaunch& launch, void* const* arguments, AccessSink& sink) const {
  return interpret(program_, launch, arguments, sink, instruction_limit());
}

}  // namespace simgpu::ptx
