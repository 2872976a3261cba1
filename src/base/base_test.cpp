// Results, checked arithmetic, cursors, text and JSON.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/byte_cursor.h"
#include "base/byte_source.h"
#include "base/checked_math.h"
#include "base/json.h"
#include "base/text.h"

namespace tensordiff {
namespace {

Result<int> half(int number) {
  if (number % 2) return Error("{} is odd", number);
  return number / 2;
}

Result<int> quarter(int number) { return half(TRY(half(number).in("first half"))); }

TEST(Result, PassesErrorsOnWithTheirPlace) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(7).error().message(), "first half: 7 is odd");
  EXPECT_EQ(quarter(6).error().message(), "3 is odd");
}

TEST(CheckedMath, SaysWhenThereIsNoResult) {
  EXPECT_EQ(checked_add<uint64_t>(UINT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_mul<uint64_t>(1ULL << 32, 1ULL << 32), std::nullopt);
  EXPECT_EQ(checked_mul<uint64_t>(6, 7), 42U);
  EXPECT_TRUE(range_fits(3, 4, 7));
  EXPECT_FALSE(range_fits(4, 4, 7));
  EXPECT_FALSE(range_fits(UINT64_MAX, 2, 7));
}

TEST(ByteCursor, ReadsBothOrdersAndFailsForGood) {
  const ByteView bytes = as_bytes(std::string_view("\x01\x00\x00\x02", 4));
  ByteCursor little(bytes);
  EXPECT_EQ(little.u16(), 1);
  ByteCursor big(bytes, std::endian::big);
  EXPECT_EQ(big.u32(), 0x01000002U);
  EXPECT_TRUE(big.at_end());
  EXPECT_EQ(big.u8(), 0);
  EXPECT_FALSE(big.ok());
  ByteCursor over(bytes);
  over.skip(5);
  EXPECT_FALSE(over.ok());
  EXPECT_EQ(over.u16(), 0) << "nothing is read after a failure";
}

TEST(Printable, MakesNamesHarmless) {
  EXPECT_EQ(printable("layer.0.größe"), "layer.0.größe");
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable("a\u202eb"), "a\\u202eb");
  EXPECT_EQ(printable("bad\xff"), "bad\\xff");
  EXPECT_EQ(printable(std::string(1000, 'x'), 10), "xxxxxxxxxx…");
}

TEST(Text, NumbersForPeople) {
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(40ULL << 30), "40 GiB");
  EXPECT_EQ(human_count(1234567), "1,234,567");
  EXPECT_EQ(human_count(123), "123");
  EXPECT_EQ(shape_text({2, 3}), "[2, 3]");
  EXPECT_EQ(shape_text({}), "[]");
}

TEST(Json, ReadsWhatTheStandardSays) {
  const Json json =
      Json::parse(R"( {"a": [1, -2, 3.5e1, true, null], "b": "x\u00e9\ud83d\ude00\n"} )").value();
  EXPECT_EQ(json["a"][0].u64(), 1U);
  EXPECT_EQ(json["a"][1].i64(), -2);
  EXPECT_EQ(json["a"][1].u64(), std::nullopt);
  EXPECT_EQ(json["a"][2].number(), 35);
  EXPECT_EQ(json["a"][2].u64(), std::nullopt) << "35.0 is not an integer here";
  EXPECT_EQ(json["b"].string(), "xé😀\n");
  EXPECT_TRUE(json["none"]["deeper"][7].is_null());
  EXPECT_EQ(Json::parse("18446744073709551615").value().u64(), UINT64_MAX);
}

TEST(Json, RefusesWhatIsNotJson) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"a":1,"a":2})", "key 'a' twice in the object that ends at byte 13 of the JSON"},
      {"{\"a\":1}x", "text after the end at byte 7 of the JSON"},
      {"[1,]", "a value expected at byte 3 of the JSON"},
      {"01", "leading zero at byte 2 of the JSON"},
      {"NaN", "a value expected at byte 0 of the JSON"},
      {"\"\\ud800\"", "lone surrogate at byte 7 of the JSON"},
      {"\"\xff\"", "string that is not UTF-8 at byte 3 of the JSON"},
      {"\"abc", "string without end at byte 4 of the JSON"},
      {"", "a value expected at byte 0 of the JSON"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_EQ(Json::parse(text).error().message(), message) << text;
  EXPECT_EQ(Json::parse(std::string(200, '[')).error().message(),
            "nested too deep at byte 101 of the JSON");
}

TEST(JsonWriter, KeepsOrderAndSpellsOutWhatIsNotFinite) {
  JsonWriter json;
  json.begin_object().member("z", 1).member("nan", std::numeric_limits<double>::quiet_NaN());
  json.member("list", std::vector<uint64_t>{2, 3}).member("none", std::optional<double>());
  json.member("text", "a\"\\\n\x1b").end_object();
  EXPECT_EQ(json.text(), R"({"z":1,"nan":"nan","list":[2,3],"none":null,"text":"a\"\\\n\u001b"})");
}

TEST(NumberText, ReadsBackTheSame) {
  for (const double number : {0.1, 1e-300, 123456789.0, 1.0 / 3, -0.0, 1e22})
    EXPECT_EQ(std::stod(number_text(number)), number);
}

TEST(ByteSource, MakesBytesOnDemandAndKeepsFew) {
  int made = 0;
  const ByteSource source(4, [&]() -> Result<Bytes> {
    ++made;
    return bytes_of("abcd");
  });
  EXPECT_FALSE(source.ready());
  {
    const Bytes first = source.open().value();
    const Bytes part = source.slice(1, 2).open().value();
    EXPECT_EQ(as_text(part.view), "bc");
    EXPECT_EQ(made, 1) << "shared while somebody holds them";
  }
  EXPECT_EQ(as_text(source.open().value().view), "abcd");
  EXPECT_EQ(made, 1) << "so few are kept";
  const ByteSource liar(5, [] { return Result<Bytes>(bytes_of("abcd")); });
  EXPECT_EQ(liar.open().error().message(), "5 bytes expected, 4 found");
}

TEST(ByteSource, LetsGoOfWhatIsTooMuchToKeep) {
  constexpr uint64_t kMany = (128U << 20) + 1;
  int made = 0;
  const ByteSource source(kMany, [&]() -> Result<Bytes> {
    ++made;
    return bytes_of(std::string(kMany, 'x'));
  });
  for (int time = 1; time <= 2; ++time) {
    EXPECT_EQ(source.open().value().size(), kMany);
    EXPECT_EQ(made, time) << "made again after they were let go";
  }
}

TEST(MapFile, SaysWhyItCannot) {
  EXPECT_EQ(map_file("/nonexistent/file").error().message(),
            "cannot open it: No such file or directory");
  EXPECT_EQ(map_file("/dev/null").error().message(), "not a regular file");
}

// A file that is cut short while it is mapped would kill an unguarded reader with SIGBUS.
TEST(MapFile, NoticesAFileThatIsCutShort) {
  std::string path = testing::TempDir() + "tensordiff-test-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 1 << 20), 0);
  const Bytes bytes = map_file(path).value();
  ASSERT_EQ(ftruncate(file, 4096), 0);
  EXPECT_TRUE(bytes.intact());
  EXPECT_EQ(bytes.view[1 << 19], std::byte{0});
  EXPECT_FALSE(bytes.intact());
  close(file);
  unlink(path.c_str());
}

// Touches a mapping that is not ours, of a file that was cut short. In a process of its own, in
// which nobody has mapped a file yet.
void fault_of_the_host(void (*handler)(int)) {
  std::signal(SIGBUS, handler);
  std::string path = testing::TempDir() + "tensordiff-test-XXXXXX";
  const int file = mkstemp(path.data());
  unlink(path.c_str());
  SpillFile ours = SpillFile::create().value();
  if (ftruncate(file, 1 << 20) != 0 || !ours.append(as_bytes("ours")).ok()) _exit(1);
  const Bytes guarded = std::move(ours).map().value();
  auto* theirs =
      static_cast<volatile char*>(mmap(nullptr, 1 << 20, PROT_READ, MAP_SHARED, file, 0));
  if (ftruncate(file, 4096) != 0) _exit(1);
  _exit(theirs[1 << 19]);
}

TEST(MapFileDeathTest, LeavesFaultsOfOthersToTheHandlerThatWasThere) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(fault_of_the_host([](int) { _exit(7); }), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(fault_of_the_host(SIG_DFL), testing::KilledBySignal(SIGBUS), "");
}

TEST(SpillFile, GivesBackWhatWasWritten) {
  SpillFile spill = SpillFile::create().value();
  ASSERT_TRUE(spill.append(as_bytes("hello ")).ok());
  ASSERT_TRUE(spill.append(as_bytes("world")).ok());
  EXPECT_EQ(as_text(std::move(spill).map().value().view), "hello world");
}

}  // namespace
}  // namespace tensordiff
