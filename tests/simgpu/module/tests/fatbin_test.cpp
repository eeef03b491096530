// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/fatbin.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/simgpu/module/unpack.h"

namespace simgpu {
namespace {

std::string lz4(const std::vector<uint8_t>& block, size_t bytes) {
  std::string out;
  std::string error;
  return unpack_lz4(block.data(), block.size(), bytes, &out, &error) ? out : "error: " + error;
}

TEST(Unpack, Lz4CopiesOverlappingMatches) {
  // "ab", then 8 bytes from distance 2, then the literal "!".
  EXPECT_EQ(lz4({0x24, 'a', 'b', 2, 0, 0x10, '!'}, 11), "ababababab!");
}

TEST(Unpack, Lz4ExtendsLengths) {
  std::vector<uint8_t> block{0xf0, 5};
  block.insert(block.end(), 20, 'x');
  EXPECT_EQ(lz4(block, 20), std::string(20, 'x'));
}

TEST(Unpack, Lz4RefusesDamage) {
  const std::string damaged = "error: compressed code is damaged (LZ4)";
  EXPECT_EQ(lz4({0x20, 'a', 'b', 3, 0}, 6), damaged);  // from before the beginning
  EXPECT_EQ(lz4({0x50, 'a'}, 5), damaged);             // literals cut off
  EXPECT_EQ(lz4({0x10, 'a'}, 2), damaged);             // too short
}

TEST(Unpack, ZstdRefusesDamage) {
  const uint8_t garbage[16] = {1, 2, 3};
  std::string out;
  std::string error;
  EXPECT_FALSE(unpack_zstd(garbage, sizeof(garbage), 100, &out, &error));
  EXPECT_NE(error.find("zstd"), std::string::npos) << error;
}

TEST(Fatbin, RefusesAnEntryThatIsTooLarge) {
  std::vector<unsigned char> bytes(16 + 0x40 + 8);
  const auto put = [&](size_t offset, auto value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
  };
  put(0, kFatbinMagic);
  put(4, uint16_t{1});   // version
  put(6, uint16_t{16});  // bytes of the header
  put(8, uint64_t{0x40 + 8});
  put(16, uint16_t{1});         // PTX
  put(16 + 4, uint32_t{0x40});  // bytes of the entry's header
  put(16 + 8, uint64_t{8});     // and of its payload
  std::vector<FatbinEntry> list;
  std::string error;
  EXPECT_TRUE(read_fatbin(bytes.data(), &list, &error)) << error;
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].kind, CodeKind::kPtx);
  EXPECT_EQ(list[0].bytes, 8U);
  EXPECT_EQ(fatbin_bytes(bytes.data()), bytes.size());
  put(16 + 8, uint64_t{16});
  EXPECT_FALSE(read_fatbin(bytes.data(), &list, &error));
}

}  // namespace
}  // namespace simgpu
