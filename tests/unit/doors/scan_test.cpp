// SPDX-License-Identifier: Apache-2.0
// What a launch's arguments name, over the shipped engine with some buffers in it.

#include "interpose/naming/scan.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "interpose/driver/cuda_api.h"
#include "policies/registry.h"
#include "tests/unit/doors/idle_port.h"

#ifdef __SANITIZE_ADDRESS__
// Pins and layouts are never given back: a launch on another thread may still read them.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}
#endif

namespace offload {
namespace {

std::vector<ParameterInfo> parameters;

LayoutAnswer ask(const void*, size_t index, ParameterInfo* out) {
  if (index >= parameters.size()) return LayoutAnswer::kEnd;
  *out = parameters[index];
  return LayoutAnswer::kParameter;
}

class Scan : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = 8 << 20;

  Scan() {
    EngineConfig config;
    config.limit_bytes = 256ull << 20;
    engine_ = std::make_unique<Engine>(port_, config, make_policy(PolicyName::kNone, {}, storage_),
                                       statistics_);
    EXPECT_EQ(engine_->initialise(), Status::kOk);
    pins_ = engine_->pin_registry().acquire();
    for (Address& buffer : buffer_)
      EXPECT_EQ(engine_->allocate(kBytes, pins_, &buffer), Status::kOk);
  }

  // Which of the buffers are named, as a text.
  std::string named() {
    std::set<Address> bases;
    for (uint32_t i = 0; i < pins_->collected; ++i) bases.insert(pins_->at(i)->address);
    pins_->clear();
    std::string text;
    for (size_t i = 0; i < std::size(buffer_); ++i) {
      if (bases.count(buffer_[i]) != 0) text += std::to_string(i);
    }
    return text;
  }

  // As a kernel with these parameters would be launched.
  std::string launch(const std::vector<ParameterInfo>& layout, std::vector<void*> arguments) {
    parameters = layout;
    Layouts layouts(&ask);
    name_parameters(*layouts.learn(this), arguments.data(),
                    [this](Address word) { engine_->name(*pins_, word); });
    return named();
  }

  IdlePort port_;
  PolicyStorage storage_;
  Statistics statistics_;
  std::unique_ptr<Engine> engine_;
  ThreadPins* pins_ = nullptr;
  Address buffer_[4] = {};
};

TEST_F(Scan, NamesPointersAndWhatTheyPointInto) {
  Address first = buffer_[0];
  Address inside = buffer_[2] + kBytes - 1;
  Address elsewhere = 0x1234;
  EXPECT_EQ(launch({{0, 8}, {8, 8}, {16, 8}}, {&first, &inside, &elsewhere}), "02");
}

TEST_F(Scan, NamesABufferByAPointerALittleBesideIt) {
  Address before = buffer_[1] - 4096;
  Address behind = buffer_[3] + kBytes + 4096;
  EXPECT_EQ(launch({{0, 8}}, {&before}), "1");
  EXPECT_EQ(launch({{0, 8}}, {&behind}), "3");
}

TEST_F(Scan, ReadsStructsWordByWordWhereTheyAreAligned) {
  struct {
    int count;
    int unused;
    Address a;
    float scale;
    Address b;
  } aligned = {1, 2, buffer_[1], 3, buffer_[2]};
  EXPECT_EQ(launch({{0, sizeof(aligned)}}, {&aligned}), "12");

  // At offset 4 of the block the struct's own offset 4 is the aligned one.
  struct __attribute__((packed)) {
    int count;
    Address a;
  } shifted = {1, buffer_[3]};
  EXPECT_EQ(launch({{0, 4}, {4, sizeof(shifted)}}, {&aligned.count, &shifted}), "3");
}

TEST_F(Scan, ReadsAllOfALargeStruct) {
  std::vector<Address> table(4095, 0);
  table[0] = buffer_[0];
  table[4094] = buffer_[3];
  EXPECT_EQ(launch({{0, 32760}}, {table.data()}), "03");
}

TEST_F(Scan, ReadsNothingPastAParameter) {
  Address pair[2] = {buffer_[0], buffer_[1]};
  EXPECT_EQ(launch({{0, 8}}, {pair}), "0");
  EXPECT_EQ(launch({{0, 15}}, {pair}), "0");
  EXPECT_EQ(launch({{0, 4}}, {pair}), "");
}

TEST_F(Scan, ReadsABlockOfArguments) {
  Address words[3] = {buffer_[2], 7, buffer_[0]};
  size_t bytes = sizeof(words);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_BUFFER_POINTER, words,
                   CU_LAUNCH_PARAM_END};
  const void* block = nullptr;
  size_t found = 0;
  ASSERT_TRUE(find_argument_block(extra, &block, &found));
  EXPECT_EQ(block, words);
  EXPECT_EQ(found, sizeof(words));
  engine_->name_words(*pins_, block, found);
  EXPECT_EQ(named(), "02");

  void* nothing[] = {CU_LAUNCH_PARAM_END};
  EXPECT_FALSE(find_argument_block(nothing, &block, &found));
  void* unknown[] = {reinterpret_cast<void*>(77), words, CU_LAUNCH_PARAM_END};
  EXPECT_FALSE(find_argument_block(unknown, &block, &found));
}

}  // namespace
}  // namespace offload
