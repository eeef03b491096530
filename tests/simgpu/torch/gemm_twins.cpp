// SPDX-License-Identifier: Apache-2.0
// What the kernels of the stand-in cuBLAS do. SIMGPU_GEMM=mix (default): every element of D is made
// from a hash of all that the product reads, so that one wrong byte changes everything. =compute:
// the product, in single precision, always in the same order.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/simgpu/torch/gemm_problem.h"
#include "tests/simgpu/twin.h"

namespace simgpu::torch {
namespace {

constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ULL;

const GemmProblem& problem_of(void* const* arguments) {
  return *static_cast<const GemmProblem*>(arguments[0]);
}

// One operand: `columns` runs of `rows` elements, `ld` apart; batches `stride` apart.
struct Operand {
  const void* data;
  GemmType type;
  int64_t rows, columns, ld, stride;
};

Operand operand_a(const GemmProblem& p) {
  const bool t = p.transposed_a != 0;
  return {p.a, p.type_ab, t ? p.k : p.m, t ? p.m : p.k, p.lda, p.stride_a};
}
Operand operand_b(const GemmProblem& p) {
  const bool t = p.transposed_b != 0;
  return {p.b, p.type_ab, t ? p.n : p.k, t ? p.k : p.n, p.ldb, p.stride_b};
}
Operand operand_c(const GemmProblem& p) {
  return {p.c, p.type_d, p.m, p.n, p.ldc, p.stride_c};
}
Operand operand_d(const GemmProblem& p) {
  return {p.d, p.type_d, p.m, p.n, p.ldd, p.stride_d};
}

// Calls visit(address, bytes) for each contiguous run, in order.
template <class Visit>
void each_run(const Operand& operand, int32_t batch, Visit visit) {
  if (operand.data == nullptr || operand.rows == 0) return;
  const int64_t size = element_bytes(operand.type);
  const bool whole = operand.ld == operand.rows || operand.columns == 1;
  const int64_t runs = whole ? 1 : operand.columns;
  const int64_t length = whole ? operand.rows * operand.columns : operand.rows;
  for (int64_t i = 0; i < batch; ++i) {
    const auto* begin = static_cast<const char*>(operand.data) + i * operand.stride * size;
    for (int64_t run = 0; run < runs; ++run) {
      visit(begin + run * operand.ld * size, static_cast<size_t>(length * size));
    }
    if (operand.stride == 0) break;  // one matrix for all
  }
}

// A workspace is written anew by each product, its first words at least.
size_t used_workspace(const GemmProblem& p) {
  constexpr int64_t kUsed = 4096;
  return p.workspace == nullptr ? 0 : static_cast<size_t>(std::min(p.workspace_bytes, kUsed));
}

void write_workspace(const SimgpuLaunch* launch, const GemmProblem& p, uint64_t hash) {
  auto* to = static_cast<unsigned char*>(simgpu_pointer(launch, p.workspace));
  std::memset(to, static_cast<int>(hash & 0x7fU), used_workspace(p));
}

void access(const SimgpuLaunch*, void* const* arguments, SimgpuAccessSink sink, void* context) {
  const GemmProblem& p = problem_of(arguments);
  const auto tell = [&](int write) {
    return [=](const char* address, size_t bytes) { sink(context, address, bytes, write); };
  };
  each_run(operand_a(p), p.batch, tell(0));
  each_run(operand_b(p), p.batch, tell(0));
  each_run(operand_c(p), p.batch, tell(0));
  if (p.bias != nullptr) {
    sink(context, p.bias, static_cast<size_t>(p.m * element_bytes(p.type_d)), 0);
  }
  each_run(operand_d(p), p.batch, tell(1));
  if (used_workspace(p) > 0) sink(context, p.workspace, used_workspace(p), 1);
}

double flops(const SimgpuLaunch*, void* const* arguments) {
  const GemmProblem& p = problem_of(arguments);
  return 2.0 * p.m * p.n * p.k * p.batch;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fU;
  const uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  const uint32_t bits =
      exponent == 31 ? 0x7f800000U | mantissa << 13 : (exponent + 112) << 23 | mantissa << 13;
  return std::bit_cast<float>(sign | bits);
}

uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return sign | 0x7e00U;
  if (magnitude >= 0x47800000U) return sign | 0x7c00U;
  if (magnitude < 0x38800000U) {  // too small for a normal half
    const float scaled = std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24));
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(scaled));
  }
  const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U) - (112U << 23);
  return static_cast<uint16_t>(sign | rounded >> 13);
}

float load(const void* data, GemmType type, int64_t index) {
  const char* at = static_cast<const char*>(data) + index * element_bytes(type);
  if (type == GemmType::kFloat || type == GemmType::kDouble) {
    if (type == GemmType::kFloat) {
      float value = 0;
      std::memcpy(&value, at, sizeof value);
      return value;
    }
    double value = 0;
    std::memcpy(&value, at, sizeof value);
    return static_cast<float>(value);
  }
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return type == GemmType::kHalf ? half_to_float(bits) : std::bit_cast<float>(uint32_t{bits} << 16);
}

void store(void* data, GemmType type, int64_t index, float value) {
  char* at = static_cast<char*>(data) + index * element_bytes(type);
  if (type == GemmType::kFloat) {
    std::memcpy(at, &value, sizeof value);
  } else if (type == GemmType::kDouble) {
    const double wide = value;
    std::memcpy(at, &wide, sizeof wide);
  } else if (type == GemmType::kHalf) {
    const uint16_t bits = float_to_half(value);
    std::memcpy(at, &bits, sizeof bits);
  } else {
    const auto bits = std::bit_cast<uint32_t>(value);
    const auto rounded = static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
    std::memcpy(at, &rounded, sizeof rounded);
  }
}

uint64_t stir(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kMultiplier;
  return hash ^ (hash >> 29);
}

uint64_t hash_run(uint64_t hash, const char* at, size_t bytes) {
  uint64_t word = 0;
  for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
    std::memcpy(&word, at, sizeof word);
    hash = stir(hash, word);
  }
  word = 0;
  std::memcpy(&word, at, bytes);
  return stir(hash, word ^ bytes << 56);
}

void mix(const SimgpuLaunch* launch, const GemmProblem& p) {
  uint64_t hash = kMultiplier;
  for (const int32_t size : {p.m, p.n, p.k, p.batch}) {
    hash = stir(hash, static_cast<uint64_t>(size));
  }
  const auto read = [&](const char* address, size_t bytes) {
    hash = hash_run(hash, static_cast<const char*>(simgpu_pointer(launch, address)), bytes);
  };
  each_run(operand_a(p), p.batch, read);
  each_run(operand_b(p), p.batch, read);
  each_run(operand_c(p), p.batch, read);
  if (p.bias != nullptr) {
    read(static_cast<const char*>(p.bias), static_cast<size_t>(p.m * element_bytes(p.type_d)));
  }
  if (used_workspace(p) > 0) write_workspace(launch, p, hash);
  void* d = simgpu_pointer(launch, p.d);
  for (int64_t i = 0; i < p.batch; ++i) {
    for (int64_t column = 0; column < p.n; ++column) {
      for (int64_t row = 0; row < p.m; ++row) {
        hash += kMultiplier;
        const auto small = static_cast<int32_t>((hash ^ hash >> 31) * kMultiplier >> 48) - 32768;
        store(d, p.type_d, i * p.stride_d + column * p.ldd + row,
              static_cast<float>(small) * 0x1p-15F);
      }
    }
  }
}

float gelu(float x) {
  return 0.5F * x * (1 + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x)));
}

void compute(const SimgpuLaunch* launch, const GemmProblem& p) {
  const void* a = simgpu_pointer(launch, p.a);
  const void* b = simgpu_pointer(launch, p.b);
  const void* c = simgpu_pointer(launch, p.c);
  const void* bias = simgpu_pointer(launch, p.bias);
  void* d = simgpu_pointer(launch, p.d);
  const auto m = static_cast<size_t>(p.m);
  const auto k = static_cast<size_t>(p.k);
  std::vector<float> left(m * k);  // op(A), column by column
  std::vector<float> sum(m);
  for (int64_t i = 0; i < p.batch; ++i) {
    for (int64_t q = 0; q < p.k; ++q) {
      for (int64_t row = 0; row < p.m; ++row) {
        const int64_t at = p.transposed_a != 0 ? row * p.lda + q : q * p.lda + row;
        left[static_cast<size_t>(q * p.m + row)] = load(a, p.type_ab, i * p.stride_a + at);
      }
    }
    for (int64_t column = 0; column < p.n; ++column) {
      std::fill(sum.begin(), sum.end(), 0.0F);
      for (size_t q = 0; q < k; ++q) {
        const auto q64 = static_cast<int64_t>(q);
        const int64_t at = p.transposed_b != 0 ? q64 * p.ldb + column : column * p.ldb + q64;
        const float factor = load(b, p.type_ab, i * p.stride_b + at);
        const float* from = left.data() + q * m;
        for (size_t row = 0; row < m; ++row) sum[row] += from[row] * factor;
      }
      for (int64_t row = 0; row < p.m; ++row) {
        float value = static_cast<float>(p.alpha) * sum[static_cast<size_t>(row)];
        if (p.c != nullptr) {
          value +=
              static_cast<float>(p.beta) * load(c, p.type_d, i * p.stride_c + column * p.ldc + row);
        }
        if (p.bias != nullptr) value += load(bias, p.type_d, row);
        if ((p.epilogue & kEpilogueRelu) != 0) value = std::max(value, 0.0F);
        if ((p.epilogue & kEpilogueGelu) != 0) value = gelu(value);
        store(d, p.type_d, i * p.stride_d + column * p.ldd + row, value);
      }
    }
  }
}

void run(const SimgpuLaunch* launch, void* const* arguments) {
  static const bool computes = [] {
    const char* how = std::getenv("SIMGPU_GEMM");
    return how != nullptr && std::strcmp(how, "compute") == 0;
  }();
  // Allocates while it computes: what it touches was reported by access(), so no fault abandons it.
  computes ? compute(launch, problem_of(arguments)) : mix(launch, problem_of(arguments));
}

struct Table {
  std::array<std::string, 16> names;
  std::array<SimgpuTwin, 16> twins{};
  SimgpuTwinTable table{};

  Table() {
    static const size_t offset = 0;
    static const size_t size = sizeof(GemmProblem);
    for (unsigned i = 0; i < names.size(); ++i) {
      names[i] = std::string("simgpu_gemm_") + kGemmTypeNames[i / 4] +
                 ((i & 2U) != 0 ? "_t" : "_n") + ((i & 1U) != 0 ? "t" : "n");
      twins[i] = {names[i].c_str(), 1, &offset, &size, run, access, flops};
    }
    table = {SIMGPU_TWIN_VERSION, static_cast<int>(twins.size()), twins.data()};
  }
};

}  // namespace
}  // namespace simgpu::torch

extern "C" __attribute__((visibility("default"))) const SimgpuTwinTable* simgpu_twins() {
  static const auto* const all = new simgpu::torch::Table;
  return &all->table;
}
