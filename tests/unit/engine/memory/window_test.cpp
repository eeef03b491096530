// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/window.h"

#include <gtest/gtest.h>

#include "interpose/engine/buffer.h"
#include "interpose/memory/slabs.h"
#include "tests/unit/engine/memory/fixture.h"

namespace offload::model {
namespace {

constexpr uint64_t kPage = kGranularity;

struct WindowTest : testing::Test {
  WindowTest() : parts(eager) {
    EXPECT_EQ(window.reserve(parts.port, 64 * kPage, kPage), Status::kOk);
  }
  Eager eager;
  Parts parts;
  Window window;
};

TEST_F(WindowTest, ABufferIsNamedByItsPagesAndTheGapsBesideThem) {
  Buffer buffer;
  const Address at = window.take(3);
  ASSERT_NE(at, 0u);
  EXPECT_EQ(window.lookup(at), nullptr);
  window.show_buffer(at, 3, &buffer);
  EXPECT_EQ(window.lookup(at - kPage), &buffer);
  EXPECT_EQ(window.lookup(at - 1), &buffer);
  EXPECT_EQ(window.lookup(at), &buffer);
  EXPECT_EQ(window.lookup(at + 4 * kPage - 1), &buffer);
  EXPECT_EQ(window.lookup(at + 4 * kPage), nullptr);
  // But only its own pages belong to it.
  EXPECT_EQ(window.buffer_at(at - 1), nullptr);
  EXPECT_EQ(window.buffer_at(at + 3 * kPage - 1), &buffer);
  EXPECT_EQ(window.buffer_at(at + 3 * kPage), nullptr);
  window.hide(at, 3);
  EXPECT_EQ(window.lookup(at), nullptr);
  EXPECT_EQ(window.lookup(at - kPage), nullptr);
  EXPECT_EQ(window.buffer_at(at), nullptr);
}

TEST_F(WindowTest, NeighboursHaveGapsOfTheirOwn) {
  Buffer first;
  Buffer second;
  const Address a = window.take(2);
  const Address b = window.take(2);
  window.show_buffer(a, 2, &first);
  window.show_buffer(b, 2, &second);
  EXPECT_EQ(b - a, 4 * kPage);
  EXPECT_EQ(window.lookup(a + 3 * kPage - 1), &first);
  EXPECT_EQ(window.lookup(a + 3 * kPage), &second);
  window.hide(a, 2);
  EXPECT_EQ(window.lookup(b - 1), &second);
}

TEST_F(WindowTest, ForeignAddressesNameNothing) {
  for (const Address foreign :
       {Address{0}, Address{1}, window.base() - 1, window.base() + window.bytes(), ~Address{0}}) {
    EXPECT_EQ(window.lookup(foreign), nullptr);
    EXPECT_FALSE(window.contains(foreign));
    EXPECT_EQ(window.buffer_at(foreign), nullptr);
    EXPECT_EQ(window.slab_at(foreign), nullptr);
  }
}

TEST_F(WindowTest, SlabsNameNothingButTheirTables) {
  Slab slab;
  const Address at = window.take(4);
  window.show_slab(at, 4, &slab);
  EXPECT_EQ(window.lookup(at), nullptr);
  EXPECT_EQ(window.slab_at(at + 4 * kPage - 1), &slab);
  EXPECT_EQ(window.buffer_at(at), nullptr);
  window.mark_tables(at + kPage + 8, kPage);  // across a border
  EXPECT_EQ(window.lookup(at), nullptr);
  EXPECT_EQ(window.lookup(at + kPage), Window::tables());
  EXPECT_EQ(window.lookup(at + 3 * kPage - 1), Window::tables());
  EXPECT_EQ(window.lookup(at + 3 * kPage), nullptr);
  window.hide(at, 4);
  EXPECT_EQ(window.lookup(at + kPage), nullptr);
  EXPECT_EQ(window.slab_at(at), nullptr);
}

TEST_F(WindowTest, WhatIsGivenBackIsGivenOutAgain) {
  const Address a = window.take(62);
  ASSERT_NE(a, 0u);
  EXPECT_EQ(window.take(1), 0u);
  window.give_back(a, 62);
  EXPECT_EQ(window.take(62), a);
}

}  // namespace
}  // namespace offload::model
