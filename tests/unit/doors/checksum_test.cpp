// SPDX-License-Identifier: Apache-2.0
#include "interpose/driver/checksum.h"

#include <gtest/gtest.h>

#include <vector>

namespace offload {
namespace {

TEST(Checksum, SeesEachByteAndTheirOrder) {
  std::vector<uint8_t> data(1003);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 7);
  const uint64_t sum = checksum(data.data(), data.size(), kChecksumSeed);
  for (const size_t at : {0u, 1u, 500u, 1000u, 1002u}) {
    data[at] ^= 1;
    EXPECT_NE(checksum(data.data(), data.size(), kChecksumSeed), sum) << at;
    data[at] ^= 1;
  }
  std::swap(data[8], data[16]);
  EXPECT_NE(checksum(data.data(), data.size(), kChecksumSeed), sum);
}

TEST(Checksum, PiecesMakeTheWhole) {
  std::vector<uint8_t> data(4096 + 5, 3);
  const uint64_t first = checksum(data.data(), 4096, kChecksumSeed);
  EXPECT_EQ(checksum(data.data() + 4096, 5, first),
            checksum(data.data(), data.size(), kChecksumSeed));
}

}  // namespace
}  // namespace offload
