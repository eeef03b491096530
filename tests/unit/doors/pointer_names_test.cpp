// SPDX-License-Identifier: Apache-2.0
// Which entry did the driver hand out? Over drivers made of names: every entry is the address of
// its own name.

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "interpose/doors/substitute.h"

namespace offload {
namespace {

// What a name or a question is answered with.
std::map<std::string, void*> by_symbol_answers;
std::map<std::string, void*> by_base_answers;

void* pointer_of(const std::string& what) {
  static std::deque<std::string> all;
  static std::map<std::string, void*> known;
  void*& pointer = known[what];
  if (pointer == nullptr) pointer = &all.emplace_back(what);
  return pointer;
}
std::string question(const std::string& base, int version, bool per_thread) {
  return base + "/" + std::to_string(version) + (per_thread ? "/t" : "");
}
void* by_symbol(const char* symbol) {
  const auto it = by_symbol_answers.find(symbol);
  return it == by_symbol_answers.end() ? nullptr : it->second;
}
void* by_base(const char* base, int version, bool per_thread) {
  const auto it = by_base_answers.find(question(base, version, per_thread));
  return it == by_base_answers.end() ? nullptr : it->second;
}

class PointerNamesTest : public testing::Test {
 protected:
  PointerNamesTest() {
    by_symbol_answers.clear();
    by_base_answers.clear();
  }
  void exports(const std::string& symbol) { by_symbol_answers[symbol] = pointer_of(symbol); }
  std::string judge(const std::string& base, int version, bool per_thread, void* found) {
    const Verdict verdict = names_.judge(base.c_str(), version, per_thread, found);
    if (verdict.kind == Verdict::Kind::kTrap) return "trap";
    if (verdict.kind == Verdict::Kind::kAsItIs) return "as it is";
    return std::string(info(verdict.entry).symbol);
  }
  std::unique_ptr<PointerNames> owned_ =
      std::make_unique<PointerNames>(DriverLookups{&by_symbol, &by_base});
  PointerNames& names_ = *owned_;
};

TEST_F(PointerNamesTest, NamesTheVariantByItsPointer) {
  for (const char* symbol : {"cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds"}) exports(symbol);
  // The flag says one thing, the driver answered another: what it answered counts.
  EXPECT_EQ(judge("cuMemcpyHtoD", 13000, true, pointer_of("cuMemcpyHtoD_v2")), "cuMemcpyHtoD_v2");
  EXPECT_EQ(judge("cuMemcpyHtoD", 13000, true, pointer_of("cuMemcpyHtoD_v2_ptds")),
            "cuMemcpyHtoD_v2_ptds");
}

TEST_F(PointerNamesTest, KindOfStreamDecidesWhereOneFunctionServesBoth) {
  by_symbol_answers["cuLaunchKernel"] = pointer_of("both");
  by_symbol_answers["cuLaunchKernel_ptsz"] = pointer_of("both");
  EXPECT_EQ(judge("cuLaunchKernel", 13000, false, pointer_of("both")), "cuLaunchKernel");
  EXPECT_EQ(judge("cuLaunchKernel", 13000, true, pointer_of("both")), "cuLaunchKernel_ptsz");
}

TEST_F(PointerNamesTest, NamesWhatOnlyAQuestionFinds) {
  exports("cuMemcpyBatchAsync");  // and by question something that has no exported name
  by_base_answers[question("cuMemcpyBatchAsync", 13000, false)] = pointer_of("hidden");
  EXPECT_EQ(judge("cuMemcpyBatchAsync", 13000, false, pointer_of("hidden")),
            "cuMemcpyBatchAsync_v2");
  EXPECT_EQ(judge("cuMemcpyBatchAsync", 12080, false, pointer_of("cuMemcpyBatchAsync")),
            "cuMemcpyBatchAsync");
}

TEST_F(PointerNamesTest, SelfLookUpGivesTheWrapperOfThatVersion) {
  exports("cuGetProcAddress");
  exports("cuGetProcAddress_v2");
  EXPECT_EQ(judge("cuGetProcAddress", 12000, false, pointer_of("cuGetProcAddress_v2")),
            "cuGetProcAddress_v2");
  EXPECT_EQ(judge("cuGetProcAddress", 11030, false, pointer_of("cuGetProcAddress")),
            "cuGetProcAddress");
}

TEST_F(PointerNamesTest, VersionDecidesWithoutPointersToCompare) {
  EXPECT_EQ(judge("cuStreamWaitValue32", 11060, false, pointer_of("x")), "cuStreamWaitValue32");
  EXPECT_EQ(judge("cuStreamWaitValue32", 11070, false, pointer_of("x")), "cuStreamWaitValue32_v2");
  EXPECT_EQ(judge("cuStreamWaitValue32", 13000, true, pointer_of("x")),
            "cuStreamWaitValue32_v2_ptsz");
  EXPECT_EQ(judge("cuMemAlloc", 3020, true, pointer_of("x")),
            "cuMemAlloc_v2");                                            // there is no other kind
  EXPECT_EQ(judge("cuMemAlloc", 2000, false, pointer_of("x")), "trap");  // older than any row
  EXPECT_EQ(judge("cuMemAlloc", 13010, false, pointer_of("x")),
            "trap");  // newer than our knowledge
}

TEST_F(PointerNamesTest, NewVariantOfAHookedEntryIsTrapped) {
  exports("cuMemAlloc_v2");
  EXPECT_EQ(judge("cuMemAlloc", 13010, false, pointer_of("cuMemAlloc_v3")), "trap");
  // The same question from a program of today's can only mean today's entry, and so can today's
  // pointer for tomorrow's program.
  EXPECT_EQ(judge("cuMemAlloc", 13000, false, pointer_of("another stub")), "cuMemAlloc_v2");
  EXPECT_EQ(judge("cuMemAlloc", 13010, false, pointer_of("cuMemAlloc_v2")), "cuMemAlloc_v2");
}

TEST_F(PointerNamesTest, OtherNames) {
  EXPECT_EQ(judge("cuEventQuery", 13000, false, pointer_of("x")), "as it is");
  EXPECT_EQ(judge("cuDeviceGetUuid", 13000, false, pointer_of("x")), "as it is");
  EXPECT_EQ(judge("cuCheckpointProcessLock", 13000, false, pointer_of("x")), "trap");
  EXPECT_EQ(judge("cuFromTheFuture", 13000, false, pointer_of("x")), "trap");
  EXPECT_EQ(judge("", 13000, false, pointer_of("x")), "as it is");
}

}  // namespace
}  // namespace offload
