// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/torch/gemm_launch.h"

#include <library_types.h>

#include <map>
#include <mutex>
#include <string>

namespace simgpu::torch {
namespace {

constexpr unsigned kTile = 128;
constexpr unsigned kThreads = 256;

// One kernel per element type and orientation, as the real library has many. What it does is its
// twin's business; without one it stops.
std::string kernel_name(const GemmProblem& problem) {
  std::string name = "simgpu_gemm_";
  name += kGemmTypeNames[static_cast<int>(problem.type_ab)];
  name += problem.transposed_a != 0 ? "_t" : "_n";
  name += problem.transposed_b != 0 ? "t" : "n";
  return name;
}

std::string code_of(const std::string& name) {
  return ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry " + name +
         "(.param .align 8 .b8 " + name + "_param_0[" + std::to_string(sizeof(GemmProblem)) +
         "])\n{\n  trap;\n  ret;\n}\n";
}

CUresult find_kernel(const Driver& api, const std::string& name, CUkernel* kernel) {
  static auto* const lock = new std::mutex;
  static auto* const kernels = new std::map<std::string, CUkernel>;
  const std::lock_guard guard(*lock);
  if (const auto found = kernels->find(name); found != kernels->end()) {
    *kernel = found->second;
    return CUDA_SUCCESS;
  }
  CUlibrary library = nullptr;
  CUresult result = api.library_load_data(&library, code_of(name).c_str(), nullptr, nullptr, 0,
                                          nullptr, nullptr, 0);
  if (result == CUDA_SUCCESS) {
    result = api.library_get_kernel(kernel, library, name.c_str());
  }
  if (result == CUDA_SUCCESS) kernels->emplace(name, *kernel);
  return result;
}

unsigned tiles(int32_t size) {
  return (static_cast<unsigned>(size) + kTile - 1) / kTile;
}

}  // namespace

CUresult launch_gemm(Door door, CUstream stream, const GemmProblem& problem) {
  if (problem.m == 0 || problem.n == 0 || problem.batch == 0) return CUDA_SUCCESS;
  const Driver* api = driver(door);
  if (api == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  CUkernel kernel = nullptr;
  if (const CUresult result = find_kernel(*api, kernel_name(problem), &kernel);
      result != CUDA_SUCCESS) {
    return result;
  }
  GemmProblem copy = problem;
  void* arguments[] = {&copy};
  // A CUkernel may stand for a function wherever one is launched (CUDA driver API, "Library").
  return api->launch_kernel(reinterpret_cast<CUfunction>(kernel), tiles(problem.m),
                            tiles(problem.n), static_cast<unsigned>(problem.batch), kThreads, 1, 1,
                            0, stream, arguments, nullptr);
}

bool to_gemm_type(int cuda_type, GemmType* type) {
  switch (cuda_type) {
    case CUDA_R_32F:
      *type = GemmType::kFloat;
      return true;
    case CUDA_R_16F:
      *type = GemmType::kHalf;
      return true;
    case CUDA_R_16BF:
      *type = GemmType::kBfloat16;
      return true;
    case CUDA_R_64F:
      *type = GemmType::kDouble;
      return true;
    default:
      return false;
  }
}

}  // namespace simgpu::torch
