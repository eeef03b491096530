// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/pointer_attributes.h"

#include <gtest/gtest.h>

#include <cstring>

namespace offload {
namespace {

class PointerAttributes : public testing::Test {
 protected:
  PointerAttributes() {
    device_.device = 3;
    device_.context = reinterpret_cast<CUcontext>(0x77);
    device_.default_pool = reinterpret_cast<CUmemoryPool>(0x88);
  }
  // Around the answer lie bytes that must stay.
  template <typename T>
  T ask(CUpointer_attribute attribute, bool stream_ordered = false) {
    struct {
      uint64_t before = 0x1111111111111111;
      T value{};
      uint8_t behind[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    } box;
    std::memset(&box.value, 0xAA, sizeof(T));
    EXPECT_EQ(answer_attribute(device_, {kBase, kBytes, 12, stream_ordered}, sizeof(bool),
                               attribute, kBase + 100, &box.value),
              AttributeAnswer::kAnswered);
    EXPECT_EQ(box.before, 0x1111111111111111u);
    for (const uint8_t byte : box.behind) EXPECT_EQ(byte, 9);
    return box.value;
  }
  static constexpr CUdeviceptr kBase = 0x7000'0000'0000;
  static constexpr uint64_t kBytes = 12345;
  Device device_;
};

TEST_F(PointerAttributes, AreThoseOfPlainDeviceMemory) {
  EXPECT_EQ(ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT), device_.context);
  EXPECT_EQ(ask<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(ask<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER), kBase + 100);
  EXPECT_EQ(ask<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL), 3);
  EXPECT_EQ(ask<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR), kBase);
  EXPECT_EQ(ask<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE), kBytes);
  EXPECT_EQ(ask<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID), 12u);
  EXPECT_EQ(ask<bool>(CU_POINTER_ATTRIBUTE_IS_MANAGED), false);
  EXPECT_EQ(ask<bool>(CU_POINTER_ATTRIBUTE_MAPPED), true);
  EXPECT_EQ(ask<bool>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE), false);
  EXPECT_EQ(ask<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS),
            CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
  EXPECT_EQ(ask<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE), nullptr);
  EXPECT_EQ(ask<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, true), device_.default_pool);
}

TEST_F(PointerAttributes, HostPointerDoesNotApplyAndNewOnesAreTheDrivers) {
  void* value = nullptr;
  const AllocationInfo allocation = {kBase, kBytes, 1, false};
  EXPECT_EQ(answer_attribute(device_, allocation, sizeof(bool), CU_POINTER_ATTRIBUTE_HOST_POINTER,
                             kBase, &value),
            AttributeAnswer::kNone);
  EXPECT_EQ(answer_attribute(device_, allocation, sizeof(bool),
                             CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, kBase, &value),
            AttributeAnswer::kAskDriver);
}

TEST_F(PointerAttributes, ABooleanIsAsWideAsTheDrivers) {
  for (const size_t bytes : {1u, 4u, 8u}) {
    for (const auto attribute :
         {CU_POINTER_ATTRIBUTE_MAPPED, CU_POINTER_ATTRIBUTE_IS_MANAGED,
          CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
          CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE}) {
      uint64_t value = ~uint64_t{0};
      EXPECT_EQ(answer_attribute(device_, {kBase, kBytes, 12}, bytes, attribute, kBase, &value),
                AttributeAnswer::kAnswered);
      const uint64_t left = bytes == 8 ? 0 : ~uint64_t{0} << (8 * bytes);
      EXPECT_EQ(value, left | (attribute == CU_POINTER_ATTRIBUTE_MAPPED ? 1u : 0u));
    }
    uint64_t value = ~uint64_t{0};
    clear_attribute(CU_POINTER_ATTRIBUTE_MAPPED, bytes, &value);
    EXPECT_EQ(value, bytes == 8 ? 0 : ~uint64_t{0} << (8 * bytes));
  }
}

TEST_F(PointerAttributes, WhatWasMadeSynchronousIs) {
  const auto is_synchronous = [&](uint64_t id) {
    bool value = false;
    answer_attribute(device_, {kBase, kBytes, id}, sizeof(bool), CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                     kBase, &value);
    return value;
  };
  EXPECT_FALSE(is_synchronous(70));
  set_synchronous(device_, {kBase, kBytes, 70}, true);
  set_synchronous(device_, {kBase, kBytes, 71}, true);
  set_synchronous(device_, {kBase, kBytes, 71}, true);
  EXPECT_TRUE(is_synchronous(70));
  EXPECT_TRUE(is_synchronous(71));
  EXPECT_FALSE(is_synchronous(72));  // the next at the same address
  set_synchronous(device_, {kBase, kBytes, 71}, false);
  EXPECT_FALSE(is_synchronous(71));
  EXPECT_TRUE(is_synchronous(70));
  device_.device = 2;
  EXPECT_FALSE(is_synchronous(70));
}

TEST_F(PointerAttributes, NothingToTellIsNullOfTheRightSize) {
  int ordinal[2] = {5, 5};
  clear_attribute(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, sizeof(bool), ordinal);
  EXPECT_EQ(ordinal[0], CU_DEVICE_INVALID);
  EXPECT_EQ(ordinal[1], 5);
  unsigned type[2] = {5, 5};
  clear_attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, sizeof(bool), type);
  EXPECT_EQ(type[0], 0u);
  EXPECT_EQ(type[1], 5u);
  bool managed[2] = {true, true};
  clear_attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, sizeof(bool), managed);
  EXPECT_FALSE(managed[0]);
  EXPECT_TRUE(managed[1]);
}

}  // namespace
}  // namespace offload
