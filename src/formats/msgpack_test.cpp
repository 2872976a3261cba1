// Flax checkpoints: every value against what flax wrote, and what is said of broken ones.
// tests/data/flax/make.py made the files.

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"
#include "formats/test_truth.h"

namespace tensordiff {
namespace {

using namespace test_files;
using test_pickles::told;

TEST(Msgpack, IsReadValueByValue) {
  for (const std::string file : {"state.msgpack", "chunked.msgpack"})
    test_truth::expect_all(data_path("../flax"), file);
}

std::string key(const std::string& text) { return char(0xa0 + text.size()) + text; }
std::string map_of(const std::string& name, const std::string& value) {
  return "\x81" + key(name) + value;
}
std::string extension(char type, const std::string& body) {
  return "\xc7" + std::string(1, static_cast<char>(body.size())) + type + body;
}
std::string array(const std::string& shape, const std::string& dtype, const std::string& data) {
  return "\x93" + shape + key(dtype) + "\xc4" + std::string(1, static_cast<char>(data.size())) +
         data;
}
const std::string kShape = "\x91\x02", kData = f32(1) + f32(2);

TEST(Msgpack, SaysWhatIsWrong) {
  const auto told_file = [](const std::string& file) { return told(formats::msgpack, file); };
  EXPECT_EQ(told_file(map_of("w", extension(1, array(kShape, "float32", kData)))), "w f32 [2] 1 2");
  EXPECT_EQ(told_file(map_of("w", extension(1, array("\x91\x03", "float32", kData)))),
            "w: 8 bytes stored, but its shape [3] of f32 needs others");
  EXPECT_EQ(told_file(map_of("w", extension(1, array(kShape, "object", kData)))),
            "w: element type 'object' is not supported");
  EXPECT_EQ(told_file(map_of("w", extension(9, "\xc0"))), "w: extension type 9 is not known");
  EXPECT_EQ(told_file(map_of("w", extension(1, "\xc0"))), "w: not a shape, a type and bytes");
  EXPECT_EQ(told_file("\x01"), "! not a map of tensors");
  EXPECT_EQ(told_file(map_of("w", "\x01") + "x"),
            "! byte 4: the map ends here, but 1 bytes follow it");
  EXPECT_EQ(told_file("\x81" + key("w")), "! byte 3: the file ends where a value belongs");
  EXPECT_EQ(told_file(map_of("w", "\xc1")), "! byte 4: byte 0xc1 begins no value");
  EXPECT_EQ(told_file(map_of("w", "\xdb\xff\xff\xff\xff")),
            "! byte 8: a length of 4294967295, but only 0 bytes are left");
  EXPECT_EQ(told_file("\xdf\xff\xff\xff\xff"),
            "! a length of 4294967295, but only 0 bytes are left");
  std::string deep = "\x01";
  for (int i = 0; i < 200; ++i) deep = map_of("a", deep);
  EXPECT_TRUE(
      told_file(deep).ends_with("nested deeper than 100, the limit; --limit depth=N raises it"));
}

TEST(Msgpack, PutsChunksTogether) {
  const std::string chunk = extension(1, array("\x91\x01", "float32", f32(1)));
  const auto chunked = [&](const std::string& size, const std::string& chunks) {
    return told(formats::msgpack,
                map_of("w", "\x83\xb9__msgpack_chunked_array__\xc3" + key("shape") +
                                map_of("0", size) + key("chunks") + chunks));
  };
  EXPECT_EQ(chunked("\x01", map_of("0", chunk)), "w f32 [1] 1");
  EXPECT_TRUE(chunked("\x02", map_of("0", chunk)).ends_with("its chunks hold 1 of 2 elements"));
  EXPECT_TRUE(chunked(std::string(1, '\0'), map_of("0", chunk))
                  .ends_with("more elements than its shape has"));
  EXPECT_TRUE(chunked("\x01", map_of("1", chunk)).ends_with("the chunks are not in order"));
}

}  // namespace
}  // namespace tensordiff
