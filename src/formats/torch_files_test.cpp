// Torch files and pickles as whole files: the containers, their faults, and public hostile ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "formats/pickle/test_pickles.h"
#include "formats/pickle/torch_file.h"

namespace tensordiff {
namespace {

using namespace test_pickles;
using namespace std::string_literals;
using test_files::data_path;
using test_files::read_file;

const std::string kMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
const std::string kVersion = "\x80\x02M\xe9\x03.";
const std::string kMachine = "\x80\x02}.";

std::string legacy_id(const std::string& view) {
  return tuple({text("storage"), global("torch", "FloatStorage"), text("7"), text("cpu"), number(2),
                view}) +
         "Q";
}
std::string legacy(const std::string& root, const std::string& keys, const std::string& data) {
  return kMagic + kVersion + kMachine + kProto2 + root + "." + kProto2 + keys + "." + data;
}
const std::string kKeys = "]" + text("7") + "a";
const std::string kData = u64(2) + f32(5) + f32(6);
const std::string kTensor = tensor({legacy_id("N"), 0, {2}, {1}});

TEST(TorchLegacy, ReadsStoragesBehindThePickles) {
  EXPECT_EQ(told(formats::torch_legacy, legacy(kTensor, kKeys, kData)), " f32 [2] 5 6");
  const std::string view = tuple({text("8"), number(1), number(1)});
  EXPECT_EQ(
      told(formats::torch_legacy, legacy(tensor({legacy_id(view), 0, {1}, {1}}), kKeys, kData)),
      " f32 [1] 6");
}

TEST(TorchLegacy, SaysWhatIsWrong) {
  const auto error = [](const std::string& file) { return told(formats::torch_legacy, file); };
  EXPECT_EQ(error(kProto2 + "N."), "! the magic number of a legacy torch file is missing");
  EXPECT_EQ(error(kMagic + kProto2 + "K\x01."),
            "! a legacy torch file of another version than 1001");
  EXPECT_EQ(error(legacy(kTensor, "N", kData)), "! the storage keys are not a list");
  EXPECT_EQ(error(legacy(kTensor, "]Na", kData)), "! a storage key that is not a string");
  EXPECT_EQ(error(legacy("N", kKeys, kData)), "! storage '7': its element type is not recorded");
  EXPECT_EQ(error(legacy(kTensor, kKeys, "")), "! storage '7': the file ends before it");
  EXPECT_EQ(error(legacy(kTensor, kKeys, u64(3) + f32(5))),
            "! storage '7': 3 elements stored, 2 expected");
  EXPECT_EQ(error(legacy(kTensor, kKeys, u64(2) + f32(5))),
            "! storage '7': 2 elements do not fit in the 4 bytes left in the file");
  EXPECT_EQ(error(legacy(kTensor, "]", "")), ": storage '7' is not in the file");
  EXPECT_EQ(error(legacy(kTensor, kKeys, kData + "x")),
            " f32 [2] 5 6 | 1 bytes after the last storage");
  const std::string view = tuple({text("8"), number(1), number(2)});
  EXPECT_EQ(error(legacy(tensor({legacy_id(view), 0, {1}, {1}}), "]", "")),
            ": a storage view that reaches past its storage");
}

TEST(TorchLegacy, IsRecognisedByItsNumberInAnyProtocol) {
  const auto recognised = [](const std::string& bytes) {
    return formats::torch_legacy.recognises(bytes_of(bytes));
  };
  EXPECT_TRUE(recognised(kMagic));
  EXPECT_TRUE(recognised("L119547037146038801333356L\n."));
  EXPECT_TRUE(recognised("\x80\x04\x95\x0d\x00\x00\x00\x00\x00\x00\x00"s + kMagic.substr(2)));
  EXPECT_FALSE(recognised(kProto2 + "K\x01."));
  // A call that would compute the number is not the number.
  EXPECT_FALSE(recognised(
      kProto2 + call(global("__builtin__", "eval"), {text("0x1950a86a20f9469cfc6c")}) + "."));
}

// pickle.dump of a tensor: the storage is a whole legacy file inside a bytes object.
TEST(Pickle, ReadsATorchFileInsideIt) {
  const std::string inside = legacy(legacy_id("N"), kKeys, kData);
  const std::string stored = call(global("torch.storage", "_load_from_bytes"), {blob(inside)});
  EXPECT_EQ(told_pickle("\x80\x03" + tensor({stored, 1, {1}, {1}}) + "."), " f32 [1] 6");
  EXPECT_EQ(told_pickle("\x80\x03" + dict({{"s", stored}}) + "."), "s f32 [2] 5 6");
  const std::string junk = call(global("torch.storage", "_load_from_bytes"), {blob("junk")});
  EXPECT_EQ(told_pickle("\x80\x03" + tensor({junk, 0, {1}, {1}}) + "."),
            ": torch file in a pickle: neither a zip nor a legacy torch file");
}

TEST(Pickle, StopsAtTorchFilesNestedWithoutEnd) {
  std::string inside = legacy(kTensor, kKeys, kData);
  for (int i = 0; i < 3; ++i)
    inside = legacy(call(global("torch.storage", "_load_from_bytes"), {blob(inside)}), "]", "");
  EXPECT_EQ(told(formats::torch_legacy, inside),
            ": torch file in a pickle: torch files nested in each other too deep");
}

TEST(Pickle, HasNoStorages) {
  EXPECT_EQ(told_pickle(kProto2 + tensor({storage("FloatStorage", "0", 4), 0, {2}, {1}}) + "."),
            ": the file has no storages");
}

TEST(TorchZip, IsAZipWithOnePickleInAFolder) {
  const auto recognised = [](const std::vector<std::string>& names) {
    std::vector<test_files::ZipFile> files;
    for (const std::string& name : names) {
      files.emplace_back();
      files.back().name = name;
      files.back().data = "N.";
    }
    return formats::torch_zip.recognises(bytes_of(test_files::zip(files)));
  };
  EXPECT_TRUE(recognised({"m/data.pkl", "m/data/0"}));
  EXPECT_FALSE(recognised({"data.pkl"}));
  EXPECT_FALSE(recognised({"a/data.pkl", "b/data.pkl"}));
  EXPECT_FALSE(recognised({"a/b/data.pkl"}));
}

TEST(TorchZip, SaysWhereThePickleIsBroken) {
  EXPECT_EQ(told_zip("(", {}), "! data.pkl: byte 3: STOP: nothing on the stack");
}

TEST(TorchZip, NamesWhatItDidNotRun) {
  const Result<Catalog> catalog =
      formats::torch_zip.open(input(read_file(data_path("malicious_reduce.pt"))));
  ASSERT_TRUE(catalog.ok());
  ASSERT_EQ(catalog.value().tensors.size(), 1U);
  EXPECT_EQ(catalog.value().tensors[0].name, "w");
  ASSERT_EQ(catalog.value().problems.size(), 1U);
  EXPECT_EQ(catalog.value().problems[0].where, "data.pkl");
  EXPECT_EQ(catalog.value().problems[0].message,
            "holds a reference to 'posix.system', which was not run");
  EXPECT_FALSE(std::filesystem::exists("pwned-by-pickle"));
}

TEST(TorchZip, KeepsNamesThatFlattenAlikeApart) {
  const Result<Catalog> catalog =
      formats::torch_zip.open(input(read_file(data_path("unicode_names.pth"))));
  ASSERT_TRUE(catalog.ok());
  std::vector<std::string> names;
  for (const Tensor& tensor : catalog.value().tensors) names.push_back(tensor.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"слой.0.weight", "層/1", "with space", "", "'a.b'", "a.b"}));
}

TEST(TorchZip, DequantizesWhatTorchWrote) {
  const Result<Catalog> catalog =
      formats::torch_zip.open(input(read_file(data_path("quantized.pth"))));
  ASSERT_TRUE(catalog.ok());
  EXPECT_EQ(catalog.value().tensors[0].view.dtype, DType::f32);
  EXPECT_EQ(Reader::open(catalog.value().tensors[0].view).value().value(0), -0.05F);
}

// Public collections of hostile and odd files, where this machine has them beside the sources.
TEST(Corpus, PicklesAreReadOrRefusedAndRunNothing) {
  const std::filesystem::path corpus =
      std::filesystem::path(TENSORDIFF_SOURCE_DIR) / "../shared/corpus";
  if (!std::filesystem::exists(corpus)) GTEST_SKIP() << "no corpus beside the sources";
  std::size_t files = 0;
  for (const char* owner :
       {"mmaitre314__picklescan", "promptfoo__modelaudit", "protectai__modelscan",
        "tracel-ai__burn", "huggingface__candle", "LaurentMazare__tch-rs", "kako-jun__diffai"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus / owner)) {
      if (!entry.is_regular_file()) continue;
      const Result<Catalog> catalog = open_model(entry.path().string());
      if (catalog.ok()) {
        test_files::read_all(catalog.value());
      } else {
        EXPECT_FALSE(catalog.error().message().empty()) << entry.path();
      }
      ++files;
    }
  }
  EXPECT_GT(files, 200U);
}

TEST(Corpus, AMagicNumberMadeByEvalIsRefused) {
  const std::filesystem::path file =
      std::filesystem::path(TENSORDIFF_SOURCE_DIR) /
      "../shared/corpus/mmaitre314__picklescan/tests/data/pytorch_magic_bypass.pt";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no corpus beside the sources";
  EXPECT_FALSE(open_model(file.string()).ok());
}

}  // namespace
}  // namespace tensordiff
