// torch.export and torch 0.1: what is said of files that are wrong. Good files are in
// torch_family_test.cpp.

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"

namespace tensordiff {
namespace {

using namespace test_pickles;
using test_files::stored;
using test_files::tar;
using test_files::zip;

std::string meta(std::string_view entry) {
  return fmt::format(R"({{"config":{{"w":{}}}}})", entry);
}
std::string exported(std::string_view entry, std::string_view order = "little") {
  return zip({stored("m/archive_format", "pt2"), stored("m/byteorder", std::string(order)),
              stored("m/data/weights/m_weights_config.json", meta(entry)),
              stored("m/data/weights/weight_0", f32(1) + f32(2))});
}
std::string entry(std::string_view dtype, std::string_view size, std::string_view stride) {
  return fmt::format(R"({{"path_name":"weight_0","use_pickle":false,"tensor_meta":{{"dtype":{},)"
                     R"("sizes":[{{"as_int":{}}}],"strides":[{{"as_int":{}}}],)"
                     R"("storage_offset":{{"as_int":0}}}}}})",
                     dtype, size, stride);
}

TEST(TorchExport, SaysWhatIsWrong) {
  const auto told_export = [](const std::string& file) {
    return told(formats::torch_export, file);
  };
  EXPECT_EQ(told_export(exported(entry("7", "2", "1"))), "w f32 [2] 1 2");
  EXPECT_EQ(told_export(exported(entry("99", "2", "1"))),
            "w: element type 99 of torch.export is not supported");
  EXPECT_EQ(told_export(exported(entry("7", "3", "1"))),
            "w: shape [3] at offset 0 reaches past the 2 elements stored");
  EXPECT_EQ(told_export(exported(entry("7", "-1", "1"))), "w: a size that is not a number");
  EXPECT_EQ(told_export(exported(R"({"path_name":"../x"})")), "w: '../x' is not in the file");
  EXPECT_EQ(told_export(exported(R"({"path_name":"weight_0","use_pickle":true})")),
            "w: neither a zip nor a legacy torch file");
  EXPECT_EQ(told_export(exported(entry("7", "2", "1"), "big")),
            "! byteorder: only little-endian programs are read");
  EXPECT_EQ(told_export(zip({stored("m/archive_format", "other")})),
            "! a zip without an archive_format of 'pt2'");
  EXPECT_TRUE(told_export(zip({stored("m/archive_format", "pt2"),
                               stored("m/data/weights/m_weights_config.json", "{}")}))
                  .ends_with("no 'config' in it"));
}

std::string count(int32_t n) { return kProto2 + number(n) + "."; }
std::string record(const std::string& a, const std::string& b, const std::string& c) {
  return kProto2 + tuple({a, b, c}) + ".";
}
const std::string kStorage =
    record(number(1), text("cpu"), global("torch", "FloatStorage")) + u64(2) + f32(5) + f32(6);
const std::string kNoViews = kProto2 + "].";
std::string one_tensor(uint32_t rank, const std::string& rest) {
  return count(1) + record(number(2), number(1), "N") + u32(rank) + u32(0) + rest;
}
const std::string kVector = one_tensor(1, u64(2) + u64(1) + u64(0));

std::string told_old(const std::string& storages, const std::string& tensors,
                     const std::string& root = text("2") + "Q") {
  return told(formats::torch_tar, tar({{"storages", storages},
                                       {"tensors", tensors},
                                       {"pickle", kProto2 + dict({{"w", root}}) + "."}}));
}

// Without `tensors` and views, and with a storage that is a plain tuple, as others write them.
TEST(TorchTar, MayHaveItsStridesInTheObject) {
  const auto told_plain = [](std::string_view key) {
    const std::string id = tuple(
        {text("storage"), global("torch", "FloatStorage"), text(key), text("cpu"), number(2)});
    const std::string root = dict({{"w", tensor({id, 0, {2}, {1}})}});
    return told(formats::torch_tar,
                tar({{"storages", count(1) + kStorage}, {"pickle", kProto2 + root + "."}}));
  };
  EXPECT_EQ(told_plain("1"), "w f32 [2] 5 6");
  EXPECT_EQ(told_plain("9"), "w: storage '9' is not in the file");
}

TEST(TorchTar, SaysWhatIsWrong) {
  const std::string storages = count(1) + kStorage + kNoViews;
  EXPECT_EQ(told_old(storages, kVector), "w f32 [2] 5 6");
  EXPECT_EQ(told_old(storages, kVector, text("1") + "Q"), "w f32 [2] 5 6");
  EXPECT_EQ(told_old(storages, kVector, text("9") + "Q"), "w: '9' is not in the file");
  EXPECT_EQ(told_old(count(-1), kVector),
            "! storages: its count is not a number, or above 1000000");
  EXPECT_EQ(told_old(count(1) + record(number(1), "N", global("os", "system")), kVector),
            "! storages: storage 1 of 1: storage type 'os.system' is not supported");
  EXPECT_EQ(told_old(count(1) + kStorage.substr(0, kStorage.size() - 4), kVector),
            "! storages: storage 1 of 1: 2 elements do not fit in the 4 bytes left");
  EXPECT_EQ(told_old(storages, one_tensor(99, "")),
            "! tensors: tensor 1 of 1: 99 axes, at most 64 are read");
  EXPECT_EQ(told_old(storages, one_tensor(1, u64(3) + u64(1) + u64(0))),
            "! tensors: tensor 1 of 1: shape [3] at offset 0 reaches past the 2 elements stored");
  EXPECT_EQ(told_old(storages, one_tensor(1, u64(2))),
            "! tensors: tensor 1 of 1: the member ends before it");
  EXPECT_EQ(told_old(storages, count(1) + record(number(2), number(7), "N")),
            "! tensors: tensor 1 of 1: its storage is not in the file");
  const std::string view = tuple({number(3), number(1), number(1), number(2)});
  EXPECT_EQ(told_old(count(1) + kStorage + kProto2 + "](" + view + "e.", kVector),
            "! storages: a storage view that reaches past its storage");
  EXPECT_EQ(told(formats::torch_tar, tar({{"pickle", "N."}})),
            "! no member 'storages', which torch 0.1 wrote");
}

}  // namespace
}  // namespace tensordiff
