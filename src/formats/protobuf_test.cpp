#include "formats/protobuf.h"

#include <gtest/gtest.h>

#include "formats/proto_elements.h"
#include "formats/test_proto.h"

namespace tensordiff {
namespace {

using namespace test_files;

std::string fault(const std::string& message) {
  ProtoReader reader(as_bytes(message));
  while (reader.next()) {
  }
  const Result<void> end = reader.finish();
  return end.ok() ? "" : end.error().message();
}

TEST(ProtoReader, GivesFieldsOfEveryForm) {
  const std::string message = proto(1, 300) + proto(2, "text") + proto_f32(3, 1) + proto_key(4, 1) +
                              u64(7) + proto_key(9, 3) + proto(1, 5) + proto_key(9, 3) +
                              proto_key(9, 4) + proto_key(9, 4) + proto(5, 1);
  ProtoReader reader(as_bytes(message));
  EXPECT_EQ(reader.next()->value, 300U);
  EXPECT_EQ(reader.next()->text(), "text");
  EXPECT_EQ(reader.next()->value, 0x3f800000U);
  EXPECT_EQ(reader.next()->value, 7U);
  EXPECT_EQ(reader.next()->number, 5U);  // The group was passed over.
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.finish().ok());
}

TEST(ProtoReader, NamesFaults) {
  EXPECT_EQ(fault("\x80"), "malformed protobuf at byte 1: a number that is cut short or too long");
  EXPECT_EQ(fault(std::string(11, '\xff')),
            "malformed protobuf at byte 10: a number that is cut short or too long");
  EXPECT_EQ(fault(proto_key(0, 0) + varint(1)),
            "malformed protobuf at byte 1: a field without a number");
  EXPECT_EQ(fault(proto_key(1, 6)), "malformed protobuf at byte 1: a field of no known form");
  EXPECT_EQ(fault(proto_key(1, 2) + varint(9) + "short"),
            "malformed protobuf at byte 2: a field is longer than its message");
  EXPECT_EQ(fault(proto_key(1, 2) + varint(UINT64_MAX)),
            "malformed protobuf at byte 11: a field is longer than its message");
  EXPECT_EQ(fault(proto_key(1, 3) + proto_key(2, 4)),
            "malformed protobuf at byte 2: a group that ends another");
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += proto_key(1, 3);
  EXPECT_EQ(fault(deep), "malformed protobuf at byte 101: groups nested too deeply");
}

TEST(ProtoNumbers, AreTheSamePackedAndOneByOne) {
  const std::string packed = proto(4, varints({1, 300, -1}));
  const std::string single = proto(4, 1) + proto(4, 300) + proto(4, UINT64_MAX);
  const std::string mixed = proto(4, 1) + proto(4, varints({300, -1}));
  for (const std::string& message : {packed, single, mixed}) {
    ProtoNumbers numbers;
    ProtoReader reader(as_bytes(message));
    while (const auto field = reader.next()) numbers.add(*field);
    EXPECT_EQ(numbers.varints(3).value(), (std::vector<uint64_t>{1, 300, UINT64_MAX}));
    EXPECT_EQ(numbers.varints(2).error().message(), "more than 2 numbers");
    const Bytes file = bytes_of(message);
    const ProtoList list{numbers, ByteSource(file), file};
    EXPECT_EQ(list.count_varints().value(), 3U);
    const Bytes made = list.varints(3, 2).value().open().value();
    EXPECT_EQ(as_text(made.view), u16(1) + u16(300) + u16(0xffff));
  }
}

}  // namespace
}  // namespace tensordiff
