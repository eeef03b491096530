// SPDX-License-Identifier: Apache-2.0
// hooks.def against CUDA's own headers: types and names at compile time, completeness and
// consistency at run time.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>

#include "interpose/doors/entries.h"
#include "interpose/driver/cuda_api.h"

namespace offload {
namespace {

// The symbol is exported by the driver, and base, version and suffix name its type.
#define HOOK(symbol, base, version, suffix, ...) \
  static_assert(std::is_same_v<decltype(&::symbol), PFN_##base##_v##version##suffix>, #symbol);
#define NEEDED(symbol, base, version, suffix) HOOK(symbol, base, version, suffix, )
#define TRAP(symbol, base) static_assert(sizeof(&::symbol) != 0, #symbol);
#include "interpose/hooks.def"

constexpr Entry kAllHooks[] = {
#define HOOK(symbol, ...) Entry::symbol,
#include "interpose/hooks.def"
};

TEST(HooksTable, NoEntryIsListedTwice) {
  std::set<std::string_view> symbols;
  std::set<std::string> meanings;
  for (const Entry entry : kAllHooks) {
    const EntryInfo& row = info(entry);
    EXPECT_TRUE(symbols.insert(row.symbol).second) << row.symbol;
    std::string meaning =
        std::string(row.base) + "/" + std::to_string(row.version) + (row.per_thread ? "t" : "");
    EXPECT_TRUE(meanings.insert(meaning).second) << meaning;
  }
  for (const TrapInfo& trap : trap_table())
    EXPECT_TRUE(symbols.insert(trap.symbol).second) << trap.symbol;
}

TEST(HooksTable, BaseIsTheSymbolWithoutVersionAndSuffix) {
  for (const Entry entry : kAllHooks) EXPECT_EQ(base_of(info(entry).symbol), info(entry).base);
  for (const TrapInfo& trap : trap_table()) EXPECT_EQ(base_of(trap.symbol), trap.base);
  EXPECT_EQ(base_of("cuMemcpyHtoD_v2_ptds"), "cuMemcpyHtoD");
  EXPECT_EQ(base_of("cuStreamGetCaptureInfo_v3_ptsz"), "cuStreamGetCaptureInfo");
  EXPECT_EQ(base_of("cuMemsetD2D32"), "cuMemsetD2D32");
  EXPECT_EQ(base_of("cuMemsetD16_v2"), "cuMemsetD16");
}

TEST(HooksTable, OnlyExactNamesAreFound) {
  EXPECT_EQ(find_symbol("cuMemAlloc_v2").knowledge, Knowledge::kHooked);
  EXPECT_EQ(info(static_cast<Entry>(find_symbol("cuMemAlloc_v2").row)).symbol, "cuMemAlloc_v2");
  EXPECT_EQ(find_symbol("cuMemAlloc").knowledge,
            Knowledge::kUnknown);  // 32-bit pointers, another age
  EXPECT_EQ(find_symbol("cuMemAlloc_v3").knowledge, Knowledge::kUnknown);
  EXPECT_EQ(find_symbol("cuMemAlloc_v2x").knowledge, Knowledge::kUnknown);
  EXPECT_EQ(find_symbol("cuCheckpointProcessLock").knowledge, Knowledge::kTrapped);
  EXPECT_EQ(trap_table()[find_symbol("cuCheckpointProcessLock").row].symbol,
            "cuCheckpointProcessLock");
  EXPECT_EQ(find_symbol("cuEventRecord_ptsz").knowledge, Knowledge::kHarmless);
  EXPECT_EQ(find_symbol("cuDeviceGetCount").knowledge, Knowledge::kHarmless);
  EXPECT_EQ(find_symbol("cuFromTheFuture").knowledge, Knowledge::kUnknown);
  for (const char* name :
       {"cudnnCreate", "cublasCreate_v2", "cudaMalloc", "curl_easy_init", "cu", "cuda", "cub"}) {
    EXPECT_EQ(find_symbol(name).knowledge, Knowledge::kNotDriver) << name;
  }
}

TEST(HooksTable, EveryNeededEntryIsHookedOrHarmless) {
  for (size_t i = kHookCount; i < kEntryCount; ++i) {
    const Knowledge knowledge = find_base(info(static_cast<Entry>(i)).base).knowledge;
    EXPECT_TRUE(knowledge == Knowledge::kHooked || knowledge == Knowledge::kHarmless)
        << info(static_cast<Entry>(i)).base;
  }
}

TEST(HooksTable, ABaseHasOneMeaning) {
  for (const Entry entry : kAllHooks) {
    const BaseInfo base = find_base(info(entry).base);
    EXPECT_EQ(base.knowledge, Knowledge::kHooked);
    bool found = false;
    for (const Entry row : base.rows) {
      EXPECT_EQ(info(row).base, info(entry).base);
      found |= row == entry;
    }
    EXPECT_TRUE(found) << info(entry).symbol;
  }
  for (const TrapInfo& trap : trap_table())
    EXPECT_EQ(find_base(trap.base).knowledge, Knowledge::kTrapped) << trap.base;
}

struct Declared {
  std::string base;
  int version;
  bool per_thread;
};

std::vector<Declared> declared_entries() {
  std::ifstream file(CUDA_TYPEDEFS);
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::regex pattern("\\*PFN_(cu[A-Z][A-Za-z0-9]*)_v([0-9]+)(_pt[ds][sz])?\\)");
  std::vector<Declared> entries;
  for (std::sregex_iterator it(all.begin(), all.end(), pattern), end; it != end; ++it) {
    entries.push_back({(*it)[1], std::stoi((*it)[2]), (*it)[3].length() != 0});
  }
  return entries;
}

// Every entry that CUDA declares is in hooks.def one way or the other, and every variant of a
// hooked one is a row of its own, but for those with 32-bit addresses, which no 64-bit program has.
TEST(HooksTable, KnowsAllThatCudaDeclares) {
  const std::vector<Declared> declared = declared_entries();
  ASSERT_GT(declared.size(), 600u);
  std::map<std::string, int> newest;
  for (const Declared& it : declared) newest[it.base] = std::max(newest[it.base], it.version);
  for (const Declared& it : declared) {
    const BaseInfo base = find_base(it.base);
    EXPECT_NE(base.knowledge, Knowledge::kUnknown) << it.base;
    const bool of_32_bit = it.version < 3020 && newest[it.base] >= 3020;
    if (base.knowledge != Knowledge::kHooked || of_32_bit || it.base == "cuTexRefSetAddress2D")
      continue;
    bool has_row = false;
    for (const Entry row : base.rows) {
      has_row |= info(row).version == it.version && info(row).per_thread == it.per_thread;
    }
    EXPECT_TRUE(has_row) << it.base << " " << it.version << (it.per_thread ? " per thread" : "");
  }
}

}  // namespace
}  // namespace offload
