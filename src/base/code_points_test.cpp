#include "base/code_points.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"

namespace tensordiff {
namespace {

TEST(CodePoints, AreReadOneByOne) {
  std::size_t length = 0;
  EXPECT_EQ(decode_utf8("a", 0, length), U'a');
  EXPECT_EQ(decode_utf8("x\xe5\xb1\x82", 1, length), 0x5c42U);
  EXPECT_EQ(length, 3U);
  EXPECT_EQ(decode_utf8("\xf0\x9f\x98\x80", 0, length), 0x1f600U);
  // Cut short, too long for what it says, and a surrogate.
  for (const std::string_view broken : {"\xe5\xb1", "\xc0\xaf", "\xed\xa0\x80", "\xff"}) {
    EXPECT_EQ(decode_utf8(broken, 0, length), kBrokenUtf8);
    EXPECT_EQ(length, 1U);
  }
}

TEST(CodePoints, AreHarmfulWhereAnOutputWouldStumble) {
  for (const uint32_t point :
       {0x00U, 0x1bU, 0x7fU, 0x85U, 0x9bU, 0xadU, 0x61cU, 0x200bU, 0x2028U, 0x202eU, 0x2066U,
        0xfdd0U, 0xfeffU, 0xfffeU, 0xffffU, 0x1fffeU, 0xe0041U, 0x10ffffU})
    EXPECT_TRUE(is_harmful(point)) << point;
  for (const uint32_t point : {0x20U, 0x7eU, 0xa0U, 0xe9U, 0x5c42U, 0xfffdU, 0x1f600U})
    EXPECT_FALSE(is_harmful(point)) << point;
}

TEST(CodePoints, OfHarmAreEscapedWithoutLoss) {
  const std::string name =
      "\xc2\x9b"
      "31m\xef\xbf\xbe\xf3\xa0\x81\x81";
  EXPECT_EQ(printable(name), "\\x9b31m\\ufffe\\U000e0041");
  const std::string json = JsonWriter().value(name).take();
  EXPECT_EQ(json, "\"\\u009b31m\\ufffe\\udb40\\udc41\"");
  EXPECT_EQ(Json::parse(json).value().string(), name);
}

}  // namespace
}  // namespace tensordiff
