// SPDX-License-Identifier: Apache-2.0
#include "interpose/naming/layouts.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

namespace offload {
namespace {

std::map<const void*, std::vector<ParameterInfo>> kernels;
std::atomic<int> questions{0};

LayoutAnswer ask(const void* function, size_t index, ParameterInfo* out) {
  ++questions;
  const auto it = kernels.find(function);
  if (it == kernels.end()) return LayoutAnswer::kRefused;
  if (index >= it->second.size()) return LayoutAnswer::kEnd;
  *out = it->second[index];
  return LayoutAnswer::kParameter;
}

const void* handle(uintptr_t value) {
  return reinterpret_cast<const void*>(value);
}

std::string runs_of(const Layout& layout) {
  std::string text;
  for (uint32_t i = 0; i < layout.runs; ++i) {
    text += std::to_string(layout.run[i].parameter) + ":" + std::to_string(layout.run[i].first) +
            "+" + std::to_string(layout.run[i].words) + " ";
  }
  return text;
}

TEST(Layouts, RunsAreTheAlignedWordsOfEachParameter) {
  Layouts layouts(&ask);
  // A pointer; an int; a pointer behind it; a struct of 20 bytes at 28, whose first aligned word is
  // at 32; 12 bytes at 48, one word; 7 bytes, none.
  kernels[handle(1)] = {{0, 8}, {8, 4}, {16, 8}, {28, 20}, {48, 12}, {64, 7}};
  EXPECT_EQ(runs_of(*layouts.learn(handle(1))), "0:0+1 2:0+1 3:4+2 4:0+1 ");
  kernels[handle(2)] = {{0, 32760}};
  EXPECT_EQ(runs_of(*layouts.learn(handle(2))), "0:0+4095 ");
  kernels[handle(3)] = {};
  const Layout& none = *layouts.learn(handle(3));
  EXPECT_TRUE(none.known);
  EXPECT_EQ(none.runs, 0u);
  EXPECT_FALSE(layouts.learn(handle(4))->known);
}

TEST(Layouts, AsksOncePerFunction) {
  Layouts layouts(&ask);
  kernels[handle(16)] = {{0, 8}, {8, 8}};
  EXPECT_EQ(layouts.find(handle(16)), nullptr);
  const Layout* learned = layouts.learn(handle(16));
  questions = 0;
  EXPECT_EQ(layouts.find(handle(16)), learned);
  EXPECT_EQ(questions, 0);
  EXPECT_EQ(layouts.known_functions(), 1u);
}

TEST(Layouts, HandleThatComesBackIsAnotherFunction) {
  Layouts layouts(&ask);
  kernels[handle(32)] = {{0, 8}};
  const Layout* first = layouts.learn(handle(32));
  layouts.forget_all();
  EXPECT_EQ(layouts.find(handle(32)), nullptr);
  kernels[handle(32)] = {{0, 4}, {8, 8}};
  const Layout* second = layouts.learn(handle(32));
  EXPECT_EQ(runs_of(*second), "1:0+1 ");
  EXPECT_EQ(layouts.find(handle(32)), second);
  // And the first again: its layout is used again, so that loading and unloading for ever does not
  // take memory for ever.
  layouts.forget_all();
  kernels[handle(32)] = {{0, 8}};
  EXPECT_EQ(layouts.learn(handle(32)), first);
  EXPECT_EQ(layouts.find(handle(32)), first);
  EXPECT_EQ(layouts.known_functions(), 1u);
}

TEST(Layouts, FindsAllOfManyWhileOthersLearn) {
  Layouts layouts(&ask);
  constexpr uintptr_t kFirst = 4096;
  constexpr uintptr_t kCount = 5000;
  for (uintptr_t i = 0; i < kCount; ++i) kernels[handle(kFirst + 16 * i)] = {{0, 8 * (i % 7)}};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 3; ++seed) {
    threads.emplace_back([&, seed] {
      for (uintptr_t round = 0; round < 2; ++round) {
        for (uintptr_t i = 0; i < kCount; ++i) {
          const uintptr_t at = (i * 31 + seed * 977) % kCount;
          const void* function = handle(kFirst + 16 * at);
          const Layout* layout = layouts.find(function);
          if (layout == nullptr) layout = layouts.learn(function);
          if (layout->function != function || layout->runs != (at % 7 == 0 ? 0 : 1)) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(layouts.known_functions(), kCount);
}

}  // namespace
}  // namespace offload
