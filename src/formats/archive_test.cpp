#include "formats/archive.h"

#include <gtest/gtest.h>

#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;

const std::string kArray = npy_f32({1, 2});
const std::string kOne =
    safetensors(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "\1");
const std::string kTwo =
    safetensors(R"({"v":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "\2");

using Files = std::vector<std::pair<std::string, std::string>>;

Result<Catalog> open(const Files& files, const Limits& limits = {}) {
  Archive archive;
  for (const auto& [path, bytes] : files)
    archive.files.push_back({path, ByteSource(bytes_of(bytes))});
  return open_files(std::move(archive), limits, 1);
}

std::string names(const Files& files) {
  const Result<Catalog> catalog = open(files);
  if (!catalog.ok()) return "! " + catalog.error().message();
  std::string text;
  for (const Tensor& tensor : catalog.value().tensors) text += tensor.name + " ";
  return text;
}

std::string problems(const Files& files) {
  const Result<Catalog> catalog = open(files);
  if (!catalog.ok()) return "! " + catalog.error().message();
  std::string text;
  for (const Problem& problem : catalog.value().problems)
    text += problem.where + ": " + problem.message + "\n";
  return text;
}

TEST(Archive, NamesTensorsByTheirFiles) {
  const struct {
    Files files;
    std::string names;
  } cases[] = {
      {{{"0_query.npy", kArray}}, "0_query "},
      {{{"dump/0_query.npy", kArray}, {"dump/0_key.npy", kArray}}, "0_query 0_key "},
      {{{"d/rank_0/0_key.npy", kArray}, {"d/rank_1/0_key.npy", kArray}},
       "rank_0/0_key rank_1/0_key "},
      {{{"a/x.npy", kArray}, {"ab/x.npy", kArray}}, "a/x ab/x "},
      {{{"x.npy.gz", gzip(kArray)}, {"y.npy", kArray}}, "x y "},
      // An ending of no format is an extension when all files have it, and else part of the name.
      {{{"0_query.dump", kArray}, {"0_key.dump", kArray}}, "0_query 0_key "},
      {{{"fc.weight", kArray}, {"fc.bias", kArray}}, "fc.weight fc.bias "},
      // Files that differ only in their extension stay apart.
      {{{"x.npy", kArray}, {"x.bin.npy", kArray}, {"x.safetensors", kOne}},
       "x.npy x.bin x.safetensors.w "},
      // One model: the names as they are.
      {{{"model.safetensors", kOne}}, "w "},
      {{{"m/model.safetensors", kOne}, {"m/config.json", "{}"}}, "w "},
      {{{"m-00001-of-00002.safetensors", kOne}, {"m-00002-of-00002.safetensors", kTwo}}, "w v "},
      // Several models: the stem in front.
      {{{"d/unet.safetensors", kOne}, {"d/vae.safetensors", kOne}}, "unet.w vae.w "},
      {{{"unet-1-of-2.safetensors", kOne},
        {"unet-2-of-2.safetensors", kTwo},
        {"vae.safetensors", kOne}},
       "unet.w unet.v vae.w "},
  };
  for (const auto& [files, expected] : cases) EXPECT_EQ(names(files), expected);
}

TEST(Archive, PassesOverWhatIsNoTensorFile) {
  EXPECT_EQ(problems({{"a.npy", kArray},
                      {"README.md", "hi"},
                      {"config.json", "{}"},
                      {".DS_Store", "x"},
                      {"__MACOSX/._a.npy", "x"},
                      {".git/HEAD", "x"}}),
            "");
}

TEST(Archive, ABadFileIsAProblemNotTheEnd) {
  EXPECT_EQ(names({{"a.npy", kArray}, {"b.npy", kArray.substr(0, 30)}}), "a ");
  EXPECT_EQ(problems({{"a.npy", kArray}, {"b.npy", kArray.substr(0, 30)}}),
            "b.npy: the header is longer than the file\n");
  EXPECT_EQ(problems({{"a.npy", kArray}, {"logo.png", "\x89PNG\r\n"}}),
            "logo.png: it looks like PNG, which is not read\n");
}

TEST(Archive, SaysWhichShardsAreMissing) {
  EXPECT_EQ(
      problems({{"m-00001-of-00003.safetensors", kOne}, {"m-00003-of-00003.safetensors", kTwo}}),
      ": 1 of 3 files of the model is missing: 'm-00002-of-00003.safetensors'\n");
  EXPECT_EQ(problems({{"a/m-00002-of-00007.safetensors", kOne}}),
            ": 6 of 7 files of the model are missing: 'a/m-00001-of-00007.safetensors', "
            "'a/m-00003-of-00007.safetensors', 'a/m-00004-of-00007.safetensors', …\n");
  EXPECT_EQ(problems({{"rank0of2.npy", kArray}}),
            ": 1 of 2 files of the model is missing: 'rank1of2.npy'\n");
  EXPECT_EQ(problems({{"rank_0_of_2/x.npy", kArray}, {"rank_1_of_2/x.npy", kArray}}), "");
  EXPECT_EQ(problems({{"layer_3_of_12.npy", kArray}}), "");
  EXPECT_EQ(problems({{"professor_3.npy", kArray}, {"3of.npy", kArray}}), "");
}

TEST(Archive, IsRefusedWhenNothingCanBeRead) {
  EXPECT_EQ(names({}), "! no tensor files found (0 files checked)");
  EXPECT_EQ(names({{"README.md", "hi"}}), "! no tensor files found (1 file checked)");
  EXPECT_EQ(names({{"a.npy", kArray.substr(0, 30)}, {"b.npy", kArray.substr(0, 40)}}),
            "! nothing in it could be read; 'a.npy': the header is longer than the file; "
            "'b.npy': the header is longer than the file");
}

TEST(Archive, RefusesDeepNesting) {
  std::string bytes = kArray;
  for (int depth = 0; depth < 2; ++depth) bytes = zip({stored("d/a", bytes)});
  EXPECT_EQ(error_of(formats::zip, bytes), "");
  EXPECT_NE(error_of(formats::zip, zip({stored("a.zip", bytes)}))
                .find("an archive inside 2 others, the limit; --limit nesting=N raises it"),
            std::string::npos);
}

// An archive of many compressed dumps must not end up in memory because it was opened.
TEST(Archive, LetsGoOfInflatedMembers) {
  const Result<Catalog> catalog = formats::zip.open(input(
      zip({deflated("d/a.npy", kArray), deflated("d/b.zip", zip({stored("b.npy", kArray)}))})));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  ASSERT_EQ(catalog.value().tensors.size(), 2U);
  for (const Tensor& tensor : catalog.value().tensors) {
    EXPECT_FALSE(tensor.view.parts[0].source.ready()) << tensor.name;
    const Result<Reader> reader = Reader::open(tensor.view);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader.value().value(1), 2);
  }
}

std::string index_of(std::string_view map) {
  return fmt::format(R"({{"metadata":{{}},"weight_map":{}}})", map);
}

TEST(Shards, FollowTheIndex) {
  const std::string index = index_of(R"({"w":"x.safetensors","v":"y.safetensors"})");
  const Files files = {{"m/model.safetensors.index.json", index},
                       {"m/x.safetensors", kOne},
                       {"m/y.safetensors", kTwo}};
  EXPECT_EQ(names(files), "w v ");
  EXPECT_EQ(problems(files), "");
}

TEST(Shards, ReportWhatContradictsTheIndex) {
  const std::string index = index_of(R"({"w":"x.safetensors","v":"y.safetensors"})");
  const Files missing = {{"model.safetensors.index.json", index}, {"x.safetensors", kOne}};
  EXPECT_EQ(names(missing), "v w ");
  EXPECT_EQ(open(missing).value().tensors[0].fault,
            "not found in 'y.safetensors', where the index has it");
  EXPECT_EQ(problems(missing),
            "model.safetensors.index.json: shard 'y.safetensors' is missing or unreadable\n");

  const Files elsewhere = {
      {"model.safetensors.index.json", index}, {"x.safetensors", kOne}, {"y.safetensors", kOne}};
  EXPECT_EQ(names(elsewhere), "v w w (in y.safetensors) ");
  EXPECT_EQ(problems(elsewhere),
            "y.safetensors: tensor 'w' is here too; the index has it in 'x.safetensors'\n"
            "model.safetensors.index.json: tensor 'v': not found in 'y.safetensors', where the "
            "index has it\n");

  const std::string partial = index_of(R"({"w":"x.safetensors","u":"x.safetensors"})");
  EXPECT_EQ(problems({{"model.safetensors.index.json", partial}, {"x.safetensors", kTwo}}),
            "x.safetensors: tensor 'v' is not in the index\n"
            "model.safetensors.index.json: tensor 'u': not found in 'x.safetensors', where the "
            "index has it\n"
            "model.safetensors.index.json: tensor 'w': not found in 'x.safetensors', where the "
            "index has it\n");
}

TEST(Shards, NeverLeaveTheFolder) {
  for (const std::string_view file :
       {"../x.safetensors", "/etc/passwd", "a/x.safetensors", "..", ""}) {
    const std::string index = index_of(fmt::format(R"({{"w":"{}"}})", file));
    EXPECT_EQ(problems({{"model.safetensors.index.json", index}, {"x.safetensors", kOne}}),
              fmt::format("model.safetensors.index.json: index not used: tensor 'w' is mapped to "
                          "'{}', which is not the name of a file beside it\n",
                          file));
  }
  EXPECT_EQ(problems({{"model.safetensors.index.json", "{}"}, {"x.safetensors", kOne}}),
            "model.safetensors.index.json: index not used: no 'weight_map' in it\n");
}

}  // namespace
}  // namespace tensordiff
