#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "formats/test_files.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;
using namespace test_files;

const std::string kArray = npy_f32({1, 2});

// A folder of its own for one test, gone after it.
class Open : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tensordiff-test-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view bytes) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }

  // The error without the folder of this test, which has another name each time.
  std::string error_of_path(const std::string& path, const OpenOptions& options = {}) const {
    const Result<Catalog> catalog = open_model(path, options);
    if (catalog.ok()) return "";
    std::string message = catalog.error().message();
    if (const std::size_t at = message.find(folder_.string()); at != std::string::npos)
      message.erase(at, folder_.string().size() + 1);
    return message;
  }

  static std::string format_names() {
    std::string text;
    for (const Format* format : formats::kAll)
      text += (text.empty() ? "" : ", ") + std::string(format->name);
    return text;
  }

  static std::string names(const Result<Catalog>& catalog) {
    if (!catalog.ok()) return "! " + catalog.error().message();
    std::string text;
    for (const Tensor& tensor : catalog.value().tensors) text += tensor.name + " ";
    return text;
  }

  fs::path folder_;
};

TEST_F(Open, OpensAFileByItsContent) {
  const Result<Catalog> catalog = open_model(write("array.safetensors", kArray));
  ASSERT_TRUE(catalog.ok());
  EXPECT_EQ(catalog.value().format, "npy");
  EXPECT_EQ(catalog.value().path, (folder_ / "array.safetensors").string());
}

TEST_F(Open, OpensAFolderInSortedOrder) {
  write("b/1_key.npy", kArray);
  write("a/0_key.npy", kArray);
  write("config.json", "{}");
  const Result<Catalog> catalog = open_model(folder_.string());
  EXPECT_EQ(names(catalog), "a/0_key b/1_key ");
  EXPECT_EQ(catalog.value().format, "folder");
}

TEST_F(Open, FollowsLinksToFilesButNotToFolders) {
  write("real/x.npy", kArray);
  fs::create_directory_symlink(folder_, folder_ / "real/loop");
  fs::create_symlink(folder_ / "real/x.npy", folder_ / "y.npy");
  EXPECT_EQ(names(open_model(folder_.string())), "real/x y ");
}

TEST_F(Open, OpensAnIndexAndItsShards) {
  write("m.safetensors.index.json", R"({"weight_map":{"w":"x.safetensors"}})");
  write("x.safetensors",
        safetensors(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "\1"));
  write("other.npy", kArray);
  EXPECT_EQ(names(open_model((folder_ / "m.safetensors.index.json").string())), "w ");
}

TEST_F(Open, NamesTheFileAndThePlace) {
  EXPECT_EQ(error_of_path((folder_ / "none").string()), "none: no such file or folder");
  EXPECT_EQ(error_of_path("-"), "reading from standard input is not supported");
  EXPECT_EQ(error_of_path(write("empty", "")),
            "empty: an empty file; the formats are: " + format_names());
  EXPECT_EQ(error_of_path(write("cut.npy", kArray.substr(0, 60))),
            "cut.npy: the header is longer than the file");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of_path((folder_ / "pipe").string()), "pipe: not a regular file");
}

TEST_F(Open, SaysWhatAnUnknownFileLooksLike) {
  EXPECT_EQ(error_of_path(write("a.bin", "hello\x1b world")),
            "a.bin: not of a known format: it starts with 'hello\\x1b world'; the formats are: " +
                format_names());
  EXPECT_EQ(error_of_path(write("a.png", "\x89PNG\r\n\x1a\n...")),
            "a.png: it looks like PNG, which is not read; the formats are: " + format_names());
}

TEST_F(Open, TakesTheFormatItIsTold) {
  OpenOptions options;
  options.format = "npz";
  const std::string path = write("x.zip", zip({stored("d/a.npy", kArray)}));
  EXPECT_EQ(names(open_model(path, options)), "d/a ");
  options.format = "npy";
  EXPECT_EQ(error_of_path(path, options), "x.zip: no numpy signature");
  options.format = "nope";
  EXPECT_EQ(error_of_path(path, options).substr(0, 31), "x.zip: no format 'nope'; there ");
}

TEST_F(Open, HoldsTheSizeLimit) {
  OpenOptions options;
  options.limits.input_bytes_max = 10;
  EXPECT_EQ(error_of_path(write("x.npy", kArray), options),
            "x.npy: 76 B are more than 10 B, the limit; --limit input=N raises it");
  EXPECT_NE(error_of_path(folder_.string(), options).find("76 B are more than 10 B, the limit"),
            std::string::npos);
}

TEST_F(Open, SaysThatAPolyglotIsAmbiguous) {
  const std::string both = kArray + zip({stored("data.pkl", "x")});
  std::string shifted = both;  // A directory that counts from the start of the whole file.
  const std::size_t end = both.size() - 22;
  shifted.replace(end + 16, 4, u32(static_cast<uint32_t>(both.find("PK\1\2"))));
  const Result<Catalog> catalog = open_model(write("x.npy", shifted));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  EXPECT_EQ(catalog.value().format, "npy");
  EXPECT_EQ(catalog.value().problems.back().message,
            "ambiguous: it starts as npy and ends as zip; read as npy");
}

}  // namespace
}  // namespace tensordiff
