// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

namespace offload {
namespace {

std::string written(const std::function<void(JsonWriter&)>& write) {
  std::string text;
  {
    JsonWriter json(Sink{
        [](void* target, std::string_view piece) { *static_cast<std::string*>(target) += piece; },
        &text});
    write(json);
  }
  return text;
}

TEST(Json, NestsObjectsAndArrays) {
  EXPECT_EQ(written([](JsonWriter& json) {
              json.begin_object();
              json.member("a", std::uint64_t{18446744073709551615u});
              json.begin_array("list");
              json.value(1.5, 2);
              json.begin_object();
              json.member("yes", true);
              json.end_object();
              json.value("x");
              json.end_array();
              json.begin_object("empty");
              json.end_object();
              json.key("nothing");
              json.null();
              json.end_object();
            }),
            "{\n"
            "  \"a\": 18446744073709551615,\n"
            "  \"list\": [\n"
            "    1.50,\n"
            "    {\n"
            "      \"yes\": true\n"
            "    },\n"
            "    \"x\"\n"
            "  ],\n"
            "  \"empty\": {},\n"
            "  \"nothing\": null\n"
            "}\n");
}

TEST(Json, EscapesText) {
  EXPECT_EQ(written([](JsonWriter& json) { json.value("a\"b\\c\n\x01"); }),
            "\"a\\\"b\\\\c\\u000a\\u0001\"");
  EXPECT_EQ(written([](JsonWriter& json) { json.value("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"); }),
            "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"");
}

TEST(Json, ReplacesWhatIsNoUtf8) {
  for (const char* bad : {"\xff", "\xc0", "\x80", "\xe2\x82", "\xed\xa0", "\xf5"}) {
    std::string text = written([&](JsonWriter& json) { json.value(bad); });
    EXPECT_EQ(text.substr(0, 7), "\"\\ufffd") << text;
    for (char c : text) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  }
  // Overlong forms, surrogates, and what lies beyond the last character.
  for (const char* bad : {"\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_EQ(written([&](JsonWriter& json) { json.value(bad); }).substr(0, 7), "\"\\ufffd");
  }
}

TEST(Json, WhatIsNotFiniteIsNull) {
  EXPECT_EQ(written([](JsonWriter& json) { json.value(std::nan(""), 2); }), "null");
  EXPECT_EQ(written([](JsonWriter& json) { json.value(HUGE_VAL, 2); }), "null");
}

TEST(Json, LongTextsPassWhole) {
  std::string text(5000, 'x');
  EXPECT_EQ(written([&](JsonWriter& json) { json.value(text); }), "\"" + text + "\"");
}

}  // namespace
}  // namespace offload
