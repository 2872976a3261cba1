#include "formats/pickle/rebuild.h"

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"

namespace tensordiff {
namespace {

using namespace test_pickles;
using namespace std::string_literals;

const std::string kFour = f32(1) + f32(2) + f32(3) + f32(4);
const std::string kStorage = storage("FloatStorage", "0", 4);

std::string told_one(const std::string& value) { return told_zip(value, {{"0", kFour}}); }

TEST(RebuildTorch, ReadsViewsWithStridesAndOffsets) {
  EXPECT_EQ(told_one(tensor({kStorage, 0, {2, 2}, {2, 1}})), " f32 [2,2] 1 2 3 4");
  EXPECT_EQ(told_one(tensor({kStorage, 0, {2, 2}, {1, 2}})), " f32 [2,2] 1 3 2 4");
  EXPECT_EQ(told_one(tensor({kStorage, 1, {2}, {2}})), " f32 [2] 2 4");
  EXPECT_EQ(told_one(tensor({kStorage, 3, {3}, {0}})), " f32 [3] 4 4 4");
  EXPECT_EQ(told_one(tensor({kStorage, 2, {}, {}})), " f32 [] 3");
  EXPECT_EQ(told_one(tensor({kStorage, 9, {0, 4}, {4, 1}})), " f32 [0,4]");
}

TEST(RebuildTorch, KeepsAFaultToItsTensor) {
  const std::string good = tensor({kStorage, 0, {1}, {1}});
  const std::string bad = tensor({kStorage, 0, {5}, {1}});
  EXPECT_EQ(told_one(dict({{"bad", bad}, {"good", good}})),
            "bad: shape [5] at offset 0 reaches past the 4 elements stored; good f32 [1] 1");
}

TEST(RebuildTorch, SaysWhatIsWrong) {
  EXPECT_EQ(told_one(tensor({kStorage, 0, {2}, {-1}})), ": negative stride -1");
  EXPECT_EQ(told_one(tensor({kStorage, 0, {-2}, {1}})), ": negative size -2");
  EXPECT_EQ(told_one(tensor({kStorage, -1, {2}, {1}})), ": a storage offset that is not a count");
  EXPECT_EQ(told_one(tensor({kStorage, 0, {2}, {1, 1}})), ": 1 axes but 2 strides");
  EXPECT_EQ(told_one(tensor({kStorage, 0, {65536, 65536, 65536}, {0, 0, 0}})),
            ": shape [65536, 65536, 65536] has more than 2^40 elements");
  EXPECT_EQ(told_one(tensor({"N", 0, {2}, {1}})), ": not a storage");
  EXPECT_EQ(told_one(tensor({storage("FloatStorage", "9", 4), 0, {2}, {1}})),
            ": storage '9' is not in the file");
  EXPECT_EQ(told_one(tensor({storage("FloatStorage", "0", 3), 0, {2}, {1}})),
            ": storage '0' has 16 bytes, but 3 elements of 4 bytes are said to be in it");
  EXPECT_EQ(told_one(tensor({storage("Storage", "0", 3), 0, {2}, {1}})),
            ": storage type 'torch.Storage' is not supported | holds a reference to "
            "'torch.Storage', which was not run");
  EXPECT_EQ(told_one(call(global("torch._utils", "_rebuild_tensor_v2"), {kStorage})),
            ": a tensor with too few arguments");
}

TEST(RebuildTorch, RefusesAStorageDescribedInTwoWays) {
  const std::string other = storage("IntStorage", "0", 4);
  EXPECT_EQ(told_one("](" + tensor({kStorage, 0, {1}, {1}}) + tensor({other, 0, {1}, {1}}) + "e"),
            "0 f32 [1] 1; 1: storage '0' is described in two ways");
}

TEST(RebuildTorch, ReadsStoragesOfOtherDevices) {
  const std::string cuda = tuple({text("storage"), global("torch.cuda", "FloatStorage"), text("0"),
                                  text("cuda:1"), number(4)}) +
                           "Q";
  EXPECT_EQ(told_one(tensor({cuda, 0, {2}, {1}})), " f32 [2] 1 2");
}

TEST(RebuildTorch, ReadsTheTypeOfUntypedStorages) {
  const std::string untyped = tuple({text("storage"), global("torch.storage", "UntypedStorage"),
                                     text("0"), text("cpu"), number(4)}) +
                              "Q";
  const auto typed = [&](std::string_view dtype) {
    return call(
        global("torch._utils", "_rebuild_tensor_v3"),
        {untyped, number(0), numbers({2}), numbers({1}), "\x89", kNoHooks, global("torch", dtype)});
  };
  EXPECT_EQ(told_zip(typed("uint16"), {{"0", "\x01\x02\xff\xff"}}), " u16 [2] 513 65535");
  EXPECT_EQ(told_zip(typed("float8_e4m3fn"), {{"0", "\x38\x40\x00\x00"s}}), " f8_e4m3 [2] 1 2");
  EXPECT_EQ(told_zip(typed("complex32"), {{"0", "\x38\x40\x00\x00"s}}),
            ": element type 'torch.complex32' is not supported");
}

TEST(RebuildTorch, ReadsBigEndianFiles) {
  EXPECT_EQ(
      told(formats::torch_zip, torch_zip(tensor({storage("ShortStorage", "0", 2), 0, {2}, {1}}),
                                         {{"0", "\x01\x02\x00\x03"s}}, "big")),
      " i16 [2] 258 3");
  EXPECT_EQ(told(formats::torch_zip, torch_zip("N", {}, "odd")),
            "! byteorder: 'odd' is neither little nor big");
}

TEST(RebuildTorch, ReadsParametersAndSubclasses) {
  const std::string data = tensor({kStorage, 0, {1}, {1}});
  EXPECT_EQ(told_one(call(global("torch._utils", "_rebuild_parameter"), {data, "\x88", kNoHooks})),
            " f32 [1] 1");
  const std::string args = tuple({kStorage, number(1), numbers({1}), numbers({1})});
  EXPECT_EQ(told_one(call(global("torch._tensor", "_rebuild_from_type_v2"),
                          {global("torch._utils", "_rebuild_tensor_v2"), global("m", "Sub"), args,
                           dict({{"extra", data}, {"size", "K\x01"}})})),
            " f32 [1] 2; extra f32 [1] 1 | holds a reference to 'm.Sub', which was not run");
  EXPECT_EQ(told_one(call(global("torch._tensor", "_rebuild_from_type_v2"),
                          {global("torch._utils", "_rebuild_wrapper_subclass"), global("m", "Sub"),
                           ")", dict({{"_local_tensor", data}})})),
            "_local_tensor f32 [1] 1 | holds a reference to 'm.Sub', which was not run");
}

// The piece of a tensor that one rank holds has the name of the tensor; its offsets are no tensors.
TEST(RebuildTorch, ReadsThePieceOfADistributedTensor) {
  const auto wrapped = [](std::string_view module, std::string_view type, std::string state) {
    return dict({{"w", call(global("torch._tensor", "_rebuild_from_type_v2"),
                            {global("torch._utils", "_rebuild_wrapper_subclass"),
                             global(module, type), ")", std::move(state)})}});
  };
  const std::string data = tensor({kStorage, 0, {1}, {1}});
  EXPECT_EQ(
      told_one(wrapped("torch.distributed.tensor", "DTensor",
                       tuple({"N", dict({{"_local_tensor", data}, {"_spec", numbers({4, 2})}})}))),
      "w f32 [1] 1");
  const std::string shard =
      global("torch.distributed._shard.sharded_tensor.shard", "Shard") + ")\x81" +
      tuple({"N", dict({{"tensor", data}, {"metadata", numbers({0, 1})}})}) + "b";
  const auto sharded = [&](const std::string& shards) {
    return wrapped("torch.distributed._shard.sharded_tensor.api", "ShardedTensor",
                   tuple({"](" + shards + "e", numbers({2})}));
  };
  EXPECT_EQ(told_one(sharded(shard)), "w f32 [1] 1");
  EXPECT_EQ(told_one(sharded(shard + shard)), "w.0 f32 [1] 1; w.1 f32 [1] 1");
  EXPECT_EQ(told_one(sharded("N")), "");
}

TEST(RebuildTorch, ReadsTensorsOfBeforeItHadRebuildFunctions) {
  const std::string state = tuple({kStorage, number(0), numbers({2}), numbers({1})});
  const std::string old = global("torch", "FloatTensor") + ")\x81" + state + "b";
  EXPECT_EQ(told_one(old), " f32 [2] 1 2");
  EXPECT_EQ(told_one(global("torch.autograd.variable", "Variable") + ")\x81" +
                     tuple({old, "N", "N", "\x88", "\x89"}) + "b"),
            " f32 [2] 1 2");
}

TEST(RebuildTorch, ConjugatesAndNegatesWhereAsked) {
  const auto flagged = [](std::string_view type, std::string_view flag) {
    return call(global("torch._utils", "_rebuild_tensor_v2"),
                {storage(type, "0", type == "FloatStorage" ? 4 : 2), number(0), numbers({1}),
                 numbers({1}), "\x89", kNoHooks, dict({{std::string(flag), "\x88"}})});
  };
  EXPECT_EQ(told_one(flagged("ComplexFloatStorage", "conj")), " c64 [1] 1 -2");
  EXPECT_EQ(told_one(flagged("ComplexFloatStorage", "neg")), " c64 [1] -1 -2");
  EXPECT_EQ(told_one(flagged("FloatStorage", "neg")), " f32 [1] -1");
}

TEST(RebuildTorch, StopsAtCallsNestedWithoutEnd) {
  std::string value = tensor({kStorage, 0, {1}, {1}});
  for (int i = 0; i < 20; ++i) value = call(global("torch._utils", "_rebuild_parameter"), {value});
  EXPECT_EQ(told_one(value), ": calls nested in each other too deep");
}

TEST(RebuildTorch, TellsTensorsWithoutValues) {
  EXPECT_EQ(told_one(call(global("torch._utils", "_rebuild_meta_tensor_no_storage"),
                          {global("torch", "float32"), numbers({2}), numbers({1}), "\x89"})),
            ": a tensor on the meta device, which has no values");
}

TEST(RebuildTorch, ListsABareStorageAsOneAxis) {
  EXPECT_EQ(told_one(kStorage), " f32 [4] 1 2 3 4");
}

const std::string kArrayType = "cnumpy\ndtype\n" + text("i2") + "\x89\x88\x87R(K\x03";
const std::string kTypeEnd = "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK"s + '\0' + "tb";

std::string array_type(std::string_view order) { return kArrayType + text(order) + kTypeEnd; }

std::string array(const std::vector<int32_t>& shape, const std::string& type,
                  const std::string& fortran, const std::string& data) {
  return kProto2 + global("numpy._core.multiarray", "_reconstruct") + "cnumpy\nndarray\n" +
         numbers({0}) + blob("b") + "\x87R" +
         tuple({number(1), numbers(shape), type, fortran, data}) + "b.";
}

TEST(RebuildNumpy, ReadsArraysInBothOrdersOfBytesAndAxes) {
  const std::string bytes = "\x01\x00\x02\x00\x03\x00\x04\x00"s;
  EXPECT_EQ(told_pickle(array({2, 2}, array_type("<"), "\x89", blob(bytes))), " i16 [2,2] 1 2 3 4");
  EXPECT_EQ(told_pickle(array({2, 2}, array_type("<"), "\x88", blob(bytes))), " i16 [2,2] 1 3 2 4");
  EXPECT_EQ(told_pickle(array({2, 2}, array_type(">"), "\x89", blob(bytes))),
            " i16 [2,2] 256 512 768 1024");
}

TEST(RebuildNumpy, ReadsBytesThatProtocol2WritesAsText) {
  const auto encoded = [](std::string_view content, std::string_view codec) {
    return call(global("_codecs", "encode"), {text(content), text(codec)});
  };
  EXPECT_EQ(told_pickle(array({1}, array_type("<"), "\x89", encoded("\x01\xc3\xbf", "latin1"))),
            " i16 [1] -255");
  EXPECT_EQ(told_pickle(array({1}, array_type("<"), "\x89", encoded("\xe4\xb8\x80", "latin1"))),
            ": bytes written as text, with a character that is not a byte");
  EXPECT_EQ(told_pickle(array({1}, array_type("<"), "\x89", encoded("ab", "rot13"))),
            ": bytes written as text in 'rot13', not latin1");
}

TEST(RebuildNumpy, ReadsScalarsAndBuffers) {
  EXPECT_EQ(told_pickle(kProto2 +
                        call(global("numpy.core.multiarray", "scalar"),
                             {array_type("<"), blob("\x05\x00"s)}) +
                        "."),
            " i16 [] 5");
  EXPECT_EQ(
      told_pickle("\x80\x05" +
                  call(global("numpy._core.numeric", "_frombuffer"),
                       {blob("\x05\x00\x06\x00"s), array_type("<"), numbers({2}), text("C")}) +
                  "."),
      " i16 [2] 5 6");
}

TEST(RebuildNumpy, SaysWhatIsWrong) {
  EXPECT_EQ(told_pickle(array({3}, array_type("<"), "\x89", blob("ab"))),
            ": array of shape [3] and type i16 with 2 bytes");
  EXPECT_EQ(told_pickle(array({1}, "N", "\x89", blob("ab"))), ": an array without element type");
  EXPECT_EQ(told_pickle(array({1}, "cnumpy\ndtype\n" + text("f16") + "\x85R", "\x89", blob("ab"))),
            ": numpy type 'f16' is not supported");
  EXPECT_EQ(told_pickle(array({1}, array_type("<"), "\x89", "N")),
            ": neither bytes nor a text that encodes them");
}

TEST(RebuildNumpy, LeavesStringsOutAndLooksIntoObjects) {
  EXPECT_EQ(told_pickle(array({1}, "cnumpy\ndtype\n" + text("S2") + "\x85R", "\x89", blob("ab"))),
            "");
  EXPECT_EQ(told_pickle(array({2}, "cnumpy\ndtype\n" + text("O8") + "\x85R", "\x89", "](K\x01Ne")),
            "0 i64 [] 1");
}

}  // namespace
}  // namespace tensordiff
