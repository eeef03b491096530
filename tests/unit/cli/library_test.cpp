// SPDX-License-Identifier: Apache-2.0
#include "interpose/cli/library.h"

#include <gtest/gtest.h>

namespace offload::cli {
namespace {

TEST(Library, GoesInFrontOfWhatIsPreloaded) {
  EXPECT_EQ(prepend_preload("/a/liboffload.so", ""), "/a/liboffload.so");
  EXPECT_EQ(prepend_preload("/a/liboffload.so", "/b.so"), "/a/liboffload.so:/b.so");
  EXPECT_EQ(prepend_preload("/a/liboffload.so", "/b.so /c.so:d.so"),
            "/a/liboffload.so:/b.so:/c.so:d.so");
}

TEST(Library, IsThereOnce) {
  EXPECT_EQ(prepend_preload("/a/liboffload.so", "/b.so:/a/liboffload.so"),
            "/a/liboffload.so:/b.so");
  EXPECT_EQ(prepend_preload("/a/liboffload.so", "/a/liboffload.so"), "/a/liboffload.so");
  EXPECT_EQ(prepend_preload("/a/liboffload.so", "::"), "/a/liboffload.so");
}

TEST(Library, PathsThatThePreloadCannotCarry) {
  EXPECT_TRUE(is_preloadable_path("/usr/lib/liboffload.so"));
  EXPECT_FALSE(is_preloadable_path("/my files/liboffload.so"));
  EXPECT_FALSE(is_preloadable_path("/a:b/liboffload.so"));
}

}  // namespace
}  // namespace offload::cli
