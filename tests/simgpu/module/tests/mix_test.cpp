// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/mix.h"

#include <gtest/gtest.h>

#include "tests/simgpu/module/tests/device.h"

namespace simgpu::test {
namespace {

// Buffers of 256 bytes at 0, 256, 512, 768; the kernel names the first and the third.
struct Arguments {
  uint32_t number;
  uint32_t gap;
  uintptr_t first;
  uintptr_t third;
};

std::vector<unsigned char> mixed(const std::string& name, uint32_t number,
                                 unsigned changed_byte = 0, unsigned grid = 1) {
  Device device(1024);
  device.buffer_bytes = 256;
  for (unsigned i = 0; i < 1024; ++i)
    device.set<unsigned char>(i, static_cast<unsigned char>(i * 7));
  device.set<unsigned char>(changed_byte, 99);
  Arguments arguments{number, 0, device.address(0), device.address(512)};
  void* pointers[] = {&arguments};
  mix(name, {{0, sizeof(arguments)}}, device.launch(grid, 32), pointers, device);
  return device.bytes();
}

TEST(Mix, WritesSmallWordsOverAllThatIsNamed) {
  const auto bytes = mixed("k", 1);
  bool varied = false;
  for (size_t i = 0; i < 1024; ++i) {
    const bool named = i < 256 || (i >= 512 && i < 768);
    if (!named) {
      EXPECT_EQ(bytes[i], static_cast<unsigned char>(i * 7)) << i;
    } else if (i % 8 != 0) {
      EXPECT_EQ(bytes[i], 0) << i;
    } else {
      EXPECT_LT(bytes[i], 0x80) << i;
      varied |= bytes[i] != bytes[0];
    }
  }
  EXPECT_TRUE(varied);
}

TEST(Mix, DependsOnContentsNameAndGridOnly) {
  const auto base = mixed("k", 1);
  EXPECT_EQ(mixed("k", 1), base);
  EXPECT_EQ(mixed("k", 2), base);  // argument values are none of its business
  EXPECT_NE(mixed("l", 1), base);
  EXPECT_NE(mixed("k", 1, 0, 2), base);
}

TEST(Mix, OneByteOfOneBufferChangesAllOfThem) {
  const auto base = mixed("k", 1, 300);
  const auto other = mixed("k", 1, 767);  // the last byte of the third buffer
  EXPECT_FALSE(std::equal(base.begin(), base.begin() + 256, other.begin()));
  EXPECT_FALSE(std::equal(base.begin() + 512, base.begin() + 768, other.begin() + 512));
}

TEST(Mix, LeavesAloneWhatHoldsNoBuffer) {
  class Blind : public Device {
   public:
    using Device::Device;
    size_t extent(uintptr_t) override { return 0; }
  };
  Blind device(256);
  uintptr_t argument = device.address(0);
  void* pointers[] = {&argument};
  mix("k", {{0, 8}}, device.launch(1, 1), pointers, device);
  EXPECT_EQ(device.bytes(), std::vector<unsigned char>(256));
}

// A buffer of 13 bytes, named from byte `offset` on.
std::vector<unsigned char> mixed_tail(const std::string& name, size_t bytes, size_t offset) {
  Device device(16);
  for (size_t i = 0; i < 16; ++i) device.set<unsigned char>(i, 0xee);
  device.buffer_bytes = bytes;
  uintptr_t argument = device.address(offset);
  void* pointers[] = {&argument};
  mix(name, {{0, 8}}, device.launch(1, 1), pointers, device);
  return device.bytes();
}

TEST(Mix, WritesPartsOfWordsToo) {
  const auto bytes = mixed_tail("k", 13, 4);
  for (size_t i = 0; i < 16; ++i) {
    const bool named = i >= 4 && i < 13;
    EXPECT_EQ(bytes[i] != 0xee, named) << i;
  }
  EXPECT_EQ(mixed_tail("k", 2, 0)[2], 0xee);
}

TEST(Mix, KeepsTheFlagOfInfiniteGradientsDown) {
  const std::string scan = "_ZN2at6native41_amp_foreach_non_finite_check_and_unscale_cuda_E";
  EXPECT_EQ(mixed_tail(scan, 4, 0),
            (std::vector<unsigned char>{0, 0, 0, 0, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee,
                                        0xee, 0xee, 0xee, 0xee}));
  EXPECT_NE(mixed_tail(scan, 13, 0)[0] + mixed_tail(scan, 13, 0)[8], 0);  // a gradient
}

TEST(Mix, FindsWordsAlignedWithinTheParameterBuffer) {
  // A struct at offset 4 of the buffer: its pointer stands 4 bytes into it.
  Device device(256);
  unsigned char argument[12] = {};
  const uintptr_t address = device.address(0);
  std::memcpy(argument + 4, &address, 8);
  void* pointers[] = {argument};
  mix("k", {{4, 12}}, device.launch(1, 1), pointers, device);
  EXPECT_NE(device.bytes(), std::vector<unsigned char>(256));
}

}  // namespace
}  // namespace simgpu::test
