#include "formats/pickle/machine.h"

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"

namespace tensordiff {
namespace {

using namespace test_pickles;
using namespace std::string_literals;

struct Case {
  std::string name;
  std::string pickle;
  std::string told;
};

class Opcodes : public testing::TestWithParam<Case> {};

TEST_P(Opcodes, MeanWhatPythonSays) { EXPECT_EQ(told_pickle(GetParam().pickle), GetParam().told); }

INSTANTIATE_TEST_SUITE_P(
    Numbers, Opcodes,
    testing::Values(Case{"Int", "I-12\n.", " i64 [] -12"}, Case{"IntTrue", "I01\n.", " bool [] 1"},
                    Case{"IntFalse", "I00\n.", " bool [] 0"},
                    Case{"IntBeyond64Bits", "I99999999999999999999\n.", ""},
                    Case{"BinInt", "J\xfe\xff\xff\xff.", " i64 [] -2"},
                    Case{"BinInt1", "K\xff.", " i64 [] 255"},
                    Case{"BinInt2", "M\xff\xff.", " i64 [] 65535"},
                    Case{"Long", "L-7L\n.", " i64 [] -7"},
                    Case{"Long1", "\x80\x02\x8a\x02\x00\xff."s, " i64 [] -256"},
                    Case{"Long1Empty", "\x80\x02\x8a\x00."s, " i64 [] 0"},
                    Case{"Long4", "\x80\x02\x8b\x01\x00\x00\x00\x05."s, " i64 [] 5"},
                    Case{"LongBeyond64Bits",
                         "\x80\x02\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01."s, ""},
                    Case{"Float", "F-2.5\n.", " f64 [] -2.5"},
                    Case{"BinFloat", "G\x40\x04\x00\x00\x00\x00\x00\x00."s, " f64 [] 2.5"},
                    Case{"None", "N.", ""}, Case{"NewTrue", "\x80\x02\x88.", " bool [] 1"},
                    Case{"NewFalse", "\x80\x02\x89.", " bool [] 0"}),
    [](const auto& row) { return row.param.name; });

// Strings are no tensors, so they are shown as keys here.
INSTANTIATE_TEST_SUITE_P(
    Strings, Opcodes,
    testing::Values(
        Case{"String", "(dS'a\\'\\x62\\143'\nI1\ns.", "a'bc i64 [] 1"},
        Case{"StringLatin1", "(dS'\\xe9'\nI1\ns.", "é i64 [] 1"},
        Case{"BinString", "}T\x01\x00\x00\x00kK\x01s."s, "k i64 [] 1"},
        Case{"ShortBinString", "}U\x01kK\x01s.", "k i64 [] 1"},
        Case{"Unicode", "(dV\\u00e9\\U0001f600\xe9\nI1\ns.", "é😀é i64 [] 1"},
        Case{"UnicodeEscapedBackslash", "(dV\\\\u0041\nI1\ns.", "\\\\u0041 i64 [] 1"},
        Case{"BinUnicode", "}X\x02\x00\x00\x00\xc3\xa9K\x01s."s, "é i64 [] 1"},
        Case{"ShortBinUnicode", "\x80\x04}\x8c\x01kK\x01s.", "k i64 [] 1"},
        Case{"BinUnicode8", "\x80\x04}\x8d\x01\x00\x00\x00\x00\x00\x00\x00kK\x01s."s, "k i64 [] 1"},
        Case{"BinBytes", "\x80\x03}B\x01\x00\x00\x00kK\x01s."s, "k i64 [] 1"},
        Case{"ShortBinBytes", "\x80\x03}C\x01kK\x01s.", "k i64 [] 1"},
        Case{"BinBytes8", "\x80\x04}\x8e\x01\x00\x00\x00\x00\x00\x00\x00kK\x01s."s, "k i64 [] 1"},
        Case{"ByteArray8", "\x80\x05}\x96\x01\x00\x00\x00\x00\x00\x00\x00kK\x01s."s, "k i64 [] 1"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Containers, Opcodes,
    testing::Values(
        Case{"Protocol0", "(lp0\nI1\naI2\na.", "0 i64 [] 1; 1 i64 [] 2"},
        Case{"Tuple", "(K\x01K\x02t.", "0 i64 [] 1; 1 i64 [] 2"}, Case{"EmptyTuple", ").", ""},
        Case{"Tuple1", "\x80\x02K\x01\x85.", "0 i64 [] 1"},
        Case{"Tuple2", "\x80\x02K\x01K\x02\x86.", "0 i64 [] 1; 1 i64 [] 2"},
        Case{"Tuple3", "\x80\x02K\x01K\x02K\x03\x87.", "0 i64 [] 1; 1 i64 [] 2; 2 i64 [] 3"},
        Case{"List", "(K\x01l.", "0 i64 [] 1"},
        Case{"Appends",
             "](K\x01K\x02"
             "e.",
             "0 i64 [] 1; 1 i64 [] 2"},
        Case{"Dict",
             "(K\x05K\x01"
             "d.",
             "5 i64 [] 1"},
        Case{"SetItems", "}(K\x05K\x01K\x06K\x02u.", "5 i64 [] 1; 6 i64 [] 2"},
        Case{"SetOfProtocol4", "\x80\x04\x8f(K\x01\x90.", "0 i64 [] 1"},
        Case{"FrozenSet", "\x80\x04(K\x01\x91.", "0 i64 [] 1"},
        Case{"Frame", "\x80\x04\x95\x03\x00\x00\x00\x00\x00\x00\x00K\x01."s, " i64 [] 1"},
        Case{"FrameThatLies", "\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffK\x01.", " i64 [] 1"},
        Case{"Dup",
             "]K\x01"
             "2\x85"
             "0a.",
             "0 i64 [] 1"},
        Case{"Pop",
             "K\x01K\x02"
             "0.",
             " i64 [] 1"},
        Case{"PopMark",
             "K\x01(K\x02K\x03"
             "1.",
             " i64 [] 1"},
        Case{"PopTakesAMark", "K\x01(0.", " i64 [] 1"},
        Case{"PutAndGet", "K\x07p9\n0g9\n.", " i64 [] 7"},
        Case{"BinPutAndGet",
             "K\x07q\x05"
             "0h\x05.",
             " i64 [] 7"},
        Case{"LongBinPutAndGet",
             "K\x07r\x00\x01\x00\x00"
             "0j\x00\x01\x00\x00."s,
             " i64 [] 7"},
        Case{"Memoize",
             "\x80\x04K\x07\x94"
             "0h\x00."s,
             " i64 [] 7"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Calls, Opcodes,
    testing::Values(Case{"Reduce", "cos\nsystem\n(S'id'\ntR.",
                         " | holds a reference to 'os.system', which was not run"},
                    Case{"Inst", "(S'id'\nios\nsystem\n.",
                         " | holds a reference to 'os.system', which was not run"},
                    Case{"Obj", "(cos\nsystem\nS'id'\no.",
                         " | holds a reference to 'os.system', which was not run"},
                    Case{"StackGlobal", "\x80\x04\x8c\x02os\x8c\x06system\x93)R.",
                         " | holds a reference to 'os.system', which was not run"},
                    Case{"NewObjAndBuild",
                         "\x80\x02"
                         "cm\nC\n)\x81}X\x01\x00\x00\x00w]K\x01"
                         "asb."s,
                         "w.0 i64 [] 1 | holds a reference to 'm.C', which was not run"},
                    Case{"NewObjEx",
                         "\x80\x04"
                         "cm\nC\nK\x01\x85}\x92.",
                         "0 i64 [] 1 | holds a reference to 'm.C', which was not run"},
                    Case{"BuildOnAName", "cm\nC\n}b.",
                         " | holds a reference to 'm.C', which was not run"},
                    Case{"Persid", "Pabc\n.", ""}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Faults, Opcodes,
    testing::Values(
        Case{"Empty", "", "! byte 0: the pickle ends without STOP"},
        Case{"NoStop", "K\x01", "! byte 2: the pickle ends without STOP"},
        Case{"CutNumber", "J\x01", "! byte 0: BININT: the pickle is cut short"},
        Case{"CutLine", "I12", "! byte 0: INT: the pickle is cut short"},
        Case{"CutString",
             "X\xff\xff\xff\x7f"
             "a",
             "! byte 0: BINUNICODE: the pickle is cut short"},
        Case{"NegativeLong4", "\x8b\xff\xff\xff\xff.", "! byte 0: LONG4: the pickle is cut short"},
        Case{"UnknownOpcode", "N\xff.", "! byte 1: unknown pickle opcode 0xff"},
        Case{"UnknownProtocol", "\x80\x09N.", "! byte 0: PROTO: protocol 9 is not known"},
        Case{"StopOnNothing", ".", "! byte 0: STOP: nothing on the stack"},
        Case{"PopBelowMark", "N(a.", "! byte 2: APPEND: nothing on the stack"},
        Case{"NoMark", "Nt.", "! byte 1: TUPLE: no mark on the stack"},
        Case{"GetBeforePut", "h\x03.", "! byte 0: BINGET: nothing was put in place 3 of the memo"},
        Case{"MemoTooLarge", "Nr\xff\xff\xff\xff.",
             "! byte 1: LONG_BINPUT: place 4294967295 of the memo, of 16000000, the limit; --limit "
             "values=N raises it"},
        Case{"OddDict", "(Nd.", "! byte 2: DICT: a key without a value"},
        Case{"OddSetItems", "}(Nu.", "! byte 3: SETITEMS: a key without a value"},
        Case{"SetItemOnList", "]NNs.", "! byte 3: SETITEM: the target takes no keys"},
        Case{"AppendToDict", "}Na.", "! byte 2: APPEND: the target takes no items"},
        Case{"BuildOnNumber", "K\x01Nb.", "! byte 3: BUILD: the target takes no state"},
        Case{"GlobalOfNumbers", "\x80\x04K\x01K\x02\x93.",
             "! byte 6: STACK_GLOBAL: module and name are not both strings"},
        Case{"NotANumber", "Ixyz\n.", "! byte 0: INT: 'xyz' is not a number"},
        Case{"NotAFloat", "F1.5x\n.", "! byte 0: FLOAT: '1.5x' is not a number"},
        Case{"StringWithoutQuotes", "Sab\n.", "! byte 0: STRING: a string without quotes"},
        Case{"BadEscape", "S'\\xq'\n.", "! byte 0: STRING: \\x without two hex digits"},
        Case{"BadUnicodeEscape", "V\\uzz\n.", "! byte 0: UNICODE: \\u without a character"},
        Case{"ObjWithoutClass", "(o.", "! byte 1: OBJ: no class between the mark and the top"},
        Case{"Extension", "\x80\x02\x82\x01.",
             "! byte 2: EXT1: refers to a value outside the pickle"},
        Case{"OutOfBand", "\x80\x05\x97.",
             "! byte 2: NEXT_BUFFER: refers to a value outside the pickle"},
        Case{"BytesAfterTheEnd", "N.N.", "! byte 2: the pickle ends here, but 2 bytes follow it"}),
    [](const auto& row) { return row.param.name; });

TEST(Machine, RefusesAPickleLongerThanTheLimit) {
  Input small = input(kProto2 + text(std::string(100, 'a')) + ".");
  small.limits.pickle_bytes_max = 50;
  const Result<Catalog> catalog = formats::pickle.open(small);
  ASSERT_FALSE(catalog.ok());
  EXPECT_EQ(catalog.error().message(),
            "byte 2: BINUNICODE: the pickle is longer than 50 bytes, the limit; "
            "--limit pickle=N raises it");
}

// Bytes objects stay in the file, so that large arrays are no reason to refuse it.
TEST(Machine, DoesNotCountBytesTowardsTheLimit) {
  Input large = input(kProto2 + blob(std::string(100, 'a')) + ".");
  large.limits.pickle_bytes_max = 50;
  EXPECT_TRUE(formats::pickle.open(large).ok());
}

// A million lists in each other: neither reading nor letting go may use the stack for it.
TEST(Machine, SurvivesDeepNesting) {
  constexpr std::size_t kDeep = 1'000'000;
  EXPECT_EQ(
      told_pickle(std::string(kDeep, ']') + std::string(kDeep - 1, 'a') + "."),
      " | '" +
          [] {
            std::string path = "0";
            for (int i = 1; i < 100; ++i) path += ".0";
            return path;
          }() +
          "' is nested deeper than 100 and was not looked at, the limit; --limit depth=N raises "
          "it");
}

TEST(Machine, LooksOnlyLikePicklesWhenTheFirstOpcodesFit) {
  const auto looks = [](std::string bytes) {
    return pickle::looks_like_pickle(bytes_of(std::move(bytes)));
  };
  EXPECT_TRUE(looks(kProto2 + "N."));
  EXPECT_TRUE(looks("(lp0\nI1\na."));
  EXPECT_FALSE(looks("This is some text.\n"));
  EXPECT_FALSE(looks("\x80\x07N."));
  EXPECT_FALSE(looks(""));
}

}  // namespace
}  // namespace tensordiff
