// The small parts that the server is made of.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "serve/assets.h"
#include "serve/columns.h"
#include "serve/exports.h"
#include "serve/guard.h"
#include "serve/message.h"
#include "serve/multipart.h"
#include "serve/query.h"
#include "serve/roots.h"
#include "serve/settings.h"

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

// A folder that ends with the test.
class Serve : public testing::Test {
 protected:
  Serve() {
    std::string name = (fs::temp_directory_path() / "serve-test-XXXXXX").string();
    folder = fs::canonical(mkdtemp(name.data()));
  }
  ~Serve() override { fs::remove_all(folder); }
  fs::path folder;
};

TEST(Problem, IsWhatTheStandardSays) {
  const Response response = problem(409, "say \"no\"", "try", ",\"stale\":[]");
  EXPECT_EQ(response.type, "application/problem+json");
  EXPECT_EQ(response.body,
            R"({"type":"about:blank","title":"Conflict","status":409,"detail":"say \"no\"",)"
            R"("hint":"try","stale":[]})");
}

TEST(Query, ReadsWordsAndPercentSigns) {
  const Query query("dir=%2Fa%20b&x=1&x=2&flag&n=12&bad=1x&plus=a+b");
  EXPECT_EQ(query.text("dir"), "/a b");
  EXPECT_EQ(query.text("x"), "2");
  EXPECT_EQ(query.text("plus"), "a b");
  EXPECT_EQ(query.text("none", "fallback"), "fallback");
  EXPECT_EQ(query.count("n", 1, 100).value(), 12U);
  EXPECT_EQ(query.count("none", 7, 100).value(), 7U);
  EXPECT_FALSE(query.count("bad", 1, 100).ok());
  EXPECT_FALSE(query.count("n", 1, 11).ok());
  EXPECT_EQ(percent_decoded("%zz%4"), "%zz%4");
  EXPECT_EQ(percent_decoded("a%00b"), "a%00b");  // No zero byte ever comes of it.
  EXPECT_FALSE(parse_digits("-1").has_value());
  EXPECT_FALSE(parse_digits("18446744073709551616").has_value());
}

TEST(Multipart, FindsFilesAndFields) {
  const std::string body =
      "--xx\r\nContent-Disposition: form-data; name=\"model1\"; filename=\"a.zip\"\r\n"
      "Content-Type: application/zip\r\n\r\nPK\r\n--x\r\n--xx\r\n"
      "Content-Disposition: form-data; name=\"upload_mode\"\r\n\r\ndual\r\n--xx--\r\n";
  const auto parts = parse_multipart(body, "multipart/form-data; boundary=xx");
  ASSERT_TRUE(parts.ok()) << parts.error().message();
  ASSERT_EQ(parts.value().size(), 2U);
  EXPECT_EQ(parts.value()[0].filename, "a.zip");
  EXPECT_EQ(parts.value()[0].bytes, "PK\r\n--x");
  EXPECT_EQ(parts.value()[1].name, "upload_mode");
  EXPECT_EQ(parts.value()[1].bytes, "dual");
  // Every prefix of it is cut short.
  for (std::size_t size = 0; size + 4 < body.size(); ++size)
    EXPECT_FALSE(
        parse_multipart(std::string(body, 0, size), "multipart/form-data; boundary=xx").ok())
        << size;
  EXPECT_FALSE(parse_multipart(body, "text/plain").ok());
}

TEST(Columns, AlignsEachArray) {
  ColumnCells status, name, none, unset, x;
  for (const int row : {0, 1}) {
    status.add(static_cast<uint8_t>(row));
    name.add(row == 0 ? std::string_view("a") : "größe");
    none.add(std::string_view());
    unset.add(std::nan(""));
    x.add(row + 1.5);
  }
  Columns columns(2);
  columns.add("status", status);
  columns.add("name", name);
  columns.add("none", none);
  columns.add("unset", unset);
  columns.add("x", x);
  const std::string bytes = columns.finish("\"rev\":3,");
  EXPECT_TRUE(bytes.starts_with("TDBC"));
  uint32_t size = 0;
  std::memcpy(&size, bytes.data() + 4, 4);
  EXPECT_EQ(size % 8, 0U);
  const Json header = Json::parse(bytes.substr(8, size)).value();
  EXPECT_EQ(header["rev"].u64(), 3U);
  EXPECT_EQ(header["n"].u64(), 2U);
  ASSERT_EQ(header["columns"].array().size(), 3U) << "what no row has anything in is left out";
  const Json& last = header["columns"][2];
  EXPECT_EQ(*last["offset"].u64() % 8, 0U);
  double value = 0;
  std::memcpy(&value, bytes.data() + 8 + size + *last["offset"].u64() + 8, 8);
  EXPECT_EQ(value, 2.5);
}

TEST_F(Serve, ListsNothingThatLeadsOutside) {
  fs::create_directories(folder / "in" / "deep");
  std::ofstream(folder / "in" / "file") << "x";
  std::ofstream(folder / "out") << "x";
  fs::create_symlink(folder / "out", folder / "in" / "link");
  fs::create_symlink("file", folder / "in" / "inside");
  const Roots roots = Roots::make({(folder / "in").string()}).value();
  std::string names;
  const Listing listing = list_folder(roots, folder / "in", "").value();
  for (const Listing::Entry& entry : listing.entries)
    names += entry.name + (entry.folder ? "/ " : " ");
  EXPECT_EQ(names, "deep/ file inside ");
  EXPECT_FALSE(list_folder(roots, folder, "").ok());
}

TEST(Settings, ComeBackFromTheirText) {
  Settings settings;
  const Json json = Json::parse(R"({"a":["x"],"b":["y"],"policy":{"atol":0.5,"equalNan":false},
      "match":{"strategies":["exact"],"regex":"(?<key>[a-z]+)-","fuzzyThreshold":0.25,
               "align":false},
      "pairs":[{"a":"p","b":"q"}],"only":true,"name":"n",
      "layouts":[{"a":"p","dims":"s h -> h s"}]})")
                        .value();
  ASSERT_TRUE(apply(json, settings).ok());
  EXPECT_EQ(settings.mode, Mode::compare);
  Settings again;
  ASSERT_TRUE(apply(Json::parse(text_of(settings)).value(), again).ok());
  EXPECT_EQ(settings, again);
  const tensordiff::Request request = request_for(settings).value();
  EXPECT_EQ(request.compare.atol, 0.5);
  EXPECT_EQ(request.match.strategies[0], "manual");  // `only` leaves no other.
  EXPECT_TRUE(request.match.pattern.has_value());
  ASSERT_EQ(request.dims.size(), 1U);
  EXPECT_TRUE(request.dims[0].whole);
  ASSERT_TRUE(settings.set_layout("p", "").ok());
  EXPECT_EQ(settings.layout_of("p"), nullptr);
}

TEST(Settings, RefuseWhatMakesNoSense) {
  for (const char* text :
       {R"({"a":[]})", R"({"a":["x"],"mode":"compare"})",
        R"({"a":["x"],"b":["y"],"mode":"explore"})", R"({"a":["x"],"policy":{"atol":-1}})",
        R"({"a":["x"],"policy":{"rtol":"1"}})", R"({"a":"x"})",
        R"({"a":["x"],"match":{"fuzzyThreshold":2}})",
        R"({"a":["x"],"match":{"strategies":["exec"]}})",
        R"({"a":["x"],"layouts":[{"a":"p","dims":"s ->"}]})",
        R"({"a":["x"],"match":{"regex":"(?<layer>"}})", R"({"a":["x"],"match":{"regex":7}})",
        R"({"a":["x"],"match":{"strategies":["magic"]}})", R"({"a":["x"],"pairs":[{"a":"p"}]})",
        "[]"}) {
    Settings settings;
    EXPECT_FALSE(apply(Json::parse(text).value(), settings).ok()) << text;
  }
}

TEST(Assets, TheDemoIsPartOfTheProgram) {
  ASSERT_EQ(demo_files().size(), 2U);
  for (const Asset& asset : demo_files()) EXPECT_EQ(unpacked(asset).size(), asset.size);
}

TEST(Assets, PageFilesAreSentAsTheClientTakesThem) {
  const Asset demo = demo_files()[0];
  const Asset files[] = {{"/index.html", demo.gzip, demo.size, demo.hash},
                         {"/assets/app.js", demo.gzip, demo.size, demo.hash}};
  Request request;
  request.path = "/";
  const Response plain = page_response(files, request);
  EXPECT_EQ(plain.body.size(), demo.size);
  EXPECT_EQ(plain.type, "text/html; charset=utf-8");
  request.path = "/assets/app.js";
  request.headers = {{"accept-encoding", "gzip, br"}};
  EXPECT_EQ(page_response(files, request).fixed.size(), demo.gzip.size());
  request.headers = {{"if-none-match", "\"" + std::string(demo.hash) + "\""}};
  EXPECT_EQ(page_response(files, request).status, 304);
  for (const char* path : {"/none", "/../index.html", "/assets/", "/index.html/"}) {
    request.path = path;
    EXPECT_EQ(page_response(files, request).status, 404) << path;
  }
}

TEST(Exports, AreOnlyWhatCanBeRendered) {
  const std::vector<ExportFormat> formats = export_formats();
  ASSERT_FALSE(formats.empty());
  EXPECT_EQ(formats[0].name, "json");
  Exports exports;
  const std::string id = exports.add({"s", formats[0], {}});
  EXPECT_EQ(exports.find(id)->session, "s");
  EXPECT_FALSE(exports.find("none").has_value());
  EXPECT_TRUE(render(*exports.find(id), Report{}).starts_with("{"));
}

}  // namespace
}  // namespace tensordiff::serve
