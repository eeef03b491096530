// SPDX-License-Identifier: Apache-2.0
// The twins of the stand-in cuBLAS's kernels, on plain memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/simgpu/torch/gemm_problem.h"
#include "tests/simgpu/twin.h"

extern "C" const SimgpuTwinTable* simgpu_twins();

namespace simgpu::torch {
namespace {

const SimgpuTwin& twin(const std::string& name) {
  const SimgpuTwinTable* table = simgpu_twins();
  for (int i = 0; i < table->count; ++i) {
    if (name == table->twins[i].name) return table->twins[i];
  }
  throw std::runtime_error("no twin " + name);
}

size_t index(int i) {
  return static_cast<size_t>(i);
}

// D = A B of floats, column-major, with room behind each column.
struct Product {
  static constexpr int kM = 5, kN = 3, kK = 4, kBatch = 2, kLd = 7;
  std::vector<float> a = std::vector<float>(kLd * 8 * kBatch);
  std::vector<float> b = std::vector<float>(kLd * 8 * kBatch);
  std::vector<float> c = std::vector<float>(kLd * 8 * kBatch);
  std::vector<float> bias = std::vector<float>(kM);
  std::vector<float> d = std::vector<float>(kLd * 8 * kBatch, -77.0F);
  GemmProblem problem{};

  Product() {
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(i % 11) - 5;
      b[i] = static_cast<float>(i % 7) - 3;
      c[i] = static_cast<float>(i % 5);
    }
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = (static_cast<float>(i) - 2) * 100;
    problem.a = a.data();
    problem.b = b.data();
    problem.d = d.data();
    problem.lda = problem.ldb = problem.ldc = problem.ldd = kLd;
    problem.stride_a = problem.stride_b = problem.stride_c = problem.stride_d = kLd * 8;
    problem.alpha = 1;
    problem.m = kM;
    problem.n = kN;
    problem.k = kK;
    problem.batch = kBatch;
  }

  float element_a(int batch, int row, int q) const {
    const int at = problem.transposed_a != 0 ? row * kLd + q : q * kLd + row;
    return a[index(batch * kLd * 8 + at)];
  }
  float element_b(int batch, int q, int column) const {
    const int at = problem.transposed_b != 0 ? q * kLd + column : column * kLd + q;
    return b[index(batch * kLd * 8 + at)];
  }
  float sum(int batch, int row, int column) const {
    float total = 0;
    for (int q = 0; q < kK; ++q) total += element_a(batch, row, q) * element_b(batch, q, column);
    return total;
  }
  float at(int batch, int row, int column) const {
    return d[index(batch * kLd * 8 + column * kLd + row)];
  }

  void run(const std::string& orientation) {
    const SimgpuLaunch launch{};
    void* arguments[] = {&problem};
    twin("simgpu_gemm_f32_" + orientation).run(&launch, arguments);
  }
};

// SIMGPU_GEMM is read once in a process; ctest runs each of these in one of its own.
class GemmCompute : public testing::Test {
 protected:
  void SetUp() override { setenv("SIMGPU_GEMM", "compute", 1); }
};
class GemmMix : public testing::Test {
 protected:
  void SetUp() override { unsetenv("SIMGPU_GEMM"); }
};

TEST_F(GemmCompute, IsTheProductInEveryOrientation) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Product product;
      product.problem.transposed_a = ta ? 1 : 0;
      product.problem.transposed_b = tb ? 1 : 0;
      product.run(std::string(ta ? "t" : "n") + (tb ? "t" : "n"));
      for (int batch = 0; batch < Product::kBatch; ++batch) {
        for (int row = 0; row < Product::kM; ++row) {
          for (int column = 0; column < Product::kN; ++column) {
            EXPECT_EQ(product.at(batch, row, column), product.sum(batch, row, column)) << ta << tb;
          }
        }
      }
      EXPECT_EQ(product.d[Product::kM], -77) << "the room behind a column";
    }
  }
}

TEST_F(GemmCompute, AddsWhatItIsTold) {
  Product product;
  product.problem.alpha = 2;
  product.problem.beta = 3;
  product.problem.c = product.c.data();
  product.problem.bias = product.bias.data();
  product.problem.epilogue = kEpilogueBias | kEpilogueRelu;
  product.run("nn");
  bool cut = false;
  for (int row = 0; row < Product::kM; ++row) {
    const float value = 2 * product.sum(1, row, 2) +
                        3 * product.c[index(Product::kLd * 8 + 2 * Product::kLd + row)] +
                        product.bias[index(row)];
    EXPECT_EQ(product.at(1, row, 2), std::max(value, 0.0F));
    cut |= value < 0;
  }
  EXPECT_TRUE(cut);
}

TEST_F(GemmCompute, RoundsHalvesToNearestEven) {
  // 1 x 1 x 1 products with one, so that D is the rounded A.
  const auto round = [](GemmType type, const char* name, float value) {
    uint16_t a = 0;
    uint16_t b = 0;
    uint16_t d = 0;
    if (type == GemmType::kBfloat16) {
      a = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      b = 0x3f80;
    } else {
      a = 0x3c00;
      b = 0x3c00;
    }
    GemmProblem p{};
    p.a = &a;
    p.b = &b;
    p.d = &d;
    p.lda = p.ldb = p.ldd = 1;
    p.alpha = type == GemmType::kHalf ? double{value} : 1.0;
    p.m = p.n = p.k = p.batch = 1;
    p.type_ab = p.type_d = type;
    const SimgpuLaunch launch{};
    void* arguments[] = {&p};
    twin(name).run(&launch, arguments);
    return d;
  };
  EXPECT_EQ(round(GemmType::kBfloat16, "simgpu_gemm_bf16_nn", 1.5F), 0x3fc0);
  EXPECT_EQ(round(GemmType::kHalf, "simgpu_gemm_f16_nn", 1.0F), 0x3c00);
  EXPECT_EQ(round(GemmType::kHalf, "simgpu_gemm_f16_nn", 1.00048828125F), 0x3c00);  // tie: even
  EXPECT_EQ(round(GemmType::kHalf, "simgpu_gemm_f16_nn", 1.0006F), 0x3c01);
  EXPECT_EQ(round(GemmType::kHalf, "simgpu_gemm_f16_nn", 65504.0F), 0x7bff);
  EXPECT_EQ(round(GemmType::kHalf, "simgpu_gemm_f16_nn", 65520.0F), 0x7c00);   // infinity
  EXPECT_EQ(round(GemmType::kHalf, "simgpu_gemm_f16_nn", 0x1p-24F), 0x0001);   // the smallest
  EXPECT_EQ(round(GemmType::kHalf, "simgpu_gemm_f16_nn", -0x1p-15F), 0x8200);  // below normal
}

TEST_F(GemmMix, OneElementChangesAllAndNothingElseIsWritten) {
  Product one;
  Product two;
  two.a[index(Product::kLd * 8 + 3 * Product::kLd + 4)] += 1;  // the last that is read
  one.run("nn");
  two.run("nn");
  for (int column = 0; column < Product::kN; ++column) {
    for (int row = 0; row < Product::kM; ++row) {
      EXPECT_NE(one.at(0, row, column), two.at(0, row, column));
      EXPECT_LE(std::abs(one.at(0, row, column)), 1);
    }
  }
  Product three;
  three.a[Product::kM] += 1;  // in the room behind a column
  three.run("nn");
  EXPECT_EQ(three.d, one.d);
  EXPECT_EQ(one.d[Product::kM], -77);
}

TEST_F(GemmMix, DeclaresExactlyWhatItTouches) {
  Product product;
  product.problem.bias = product.bias.data();
  product.problem.epilogue = kEpilogueBias;
  struct Seen {
    std::map<const void*, size_t> read, written;
  } seen;
  const SimgpuLaunch launch{};
  void* arguments[] = {&product.problem};
  twin("simgpu_gemm_f32_nn")
      .access(
          &launch, arguments,
          [](void* context, const void* address, size_t bytes, int write) {
            auto& all = *static_cast<Seen*>(context);
            (write != 0 ? all.written : all.read)[address] += bytes;
          },
          &seen);
  size_t written = 0;
  for (const auto& [address, bytes] : seen.written) written += bytes;
  EXPECT_EQ(written, size_t{4} * Product::kM * Product::kN * Product::kBatch);
  EXPECT_EQ(seen.written.at(product.d.data() + Product::kLd), size_t{4} * Product::kM);
  EXPECT_EQ(seen.read.at(product.a.data() + 3 * Product::kLd), size_t{4} * Product::kM);
  EXPECT_EQ(seen.read.at(product.bias.data()), size_t{4} * Product::kM);
  EXPECT_FALSE(seen.read.contains(product.d.data()));
}

}  // namespace
}  // namespace simgpu::torch
