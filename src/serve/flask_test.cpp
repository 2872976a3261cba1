#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class Flask : public AppTest {
 protected:
  Response upload(const std::string& a, const std::string& b) {
    const auto part = [](const char* name, const std::string& bytes) {
      return fmt::format(
          "--xx\r\nContent-Disposition: form-data; name=\"{}\"; "
          "filename=\"{}.safetensors\"\r\n\r\n{}\r\n",
          name, name, bytes);
    };
    return ask("POST", "/upload", part("model1", a) + part("model2", b) + "--xx--\r\n",
               {{"content-type", "multipart/form-data; boundary=xx"}});
  }
  Response ask_old(const std::string& path, const std::string& body) {
    return ask("POST", path, body);
  }
};

TEST_F(Flask, ComparesLooksMovesAndPairs) {
  const Response made = upload(safetensors_of("w", {1, 2, 3}), safetensors_of("w", {1, 2, 4}));
  ASSERT_EQ(made.status, 200) << made.body;
  ASSERT_EQ(json(made)["matches"].array().size(), 1U);
  EXPECT_EQ(json(made)["matches"][0]["diff_stats"]["abs_diff_max"].number(), 1);
  const Json values =
      json(ask_old("/get_tensor_values", R"({"match_index":0,"dimension_indices":[1],"count":2})"));
  EXPECT_EQ(values["tensor2_values"][1].number(), 4);
  EXPECT_EQ(ask_old("/reorder_matches", R"({"old_index":0,"new_index":0})").status, 200);
  EXPECT_EQ(ask_old("/reorder_matches", R"({"old_index":0,"new_index":1})").status, 400);
  EXPECT_EQ(ask_old("/regroup_matches", R"({"group_by":"none"})").status, 200);
  EXPECT_EQ(ask_old("/manual_pair", R"({"model1_file":"w","model2_file":"w"})").status, 200);
  EXPECT_EQ(ask_old("/manual_pair", R"({"model1_file":"w","model2_file":"x"})").status, 400);
}

TEST_F(Flask, SeesNothingThatDidNotComeThisWay) {
  const std::string id = session();
  EXPECT_EQ(ask_old("/get_tensor_values", R"({"match_index":0})").status, 400);
  upload(safetensors_of("w", {1}), safetensors_of("w", {1}));
  EXPECT_EQ(ask_old("/get_tensor_values", fmt::format(R"({{"match_index":0,"session":"{}"}})", id))
                .status,
            400);
}

TEST_F(Flask, LeavesNothingBehindOfWhatCannotBeRead) {
  EXPECT_EQ(upload("junk", "junk").status, 400);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "state" / "uploads"));
}

TEST_F(Flask, ADiskWithoutRoomIs507) {
  EXPECT_EQ(ask("POST", "/upload", "x",
                {{"content-type", "multipart/form-data; boundary=xx"},
                 {"content-length", "900000000000000000"}})
                .status,
            app->uploads.has_room(2 * app->uploads.limit()) ? 400 : 507);
  options.upload_limit = UINT64_MAX / 4;
  start();
  EXPECT_EQ(ask("POST", "/upload", "x",
                {{"content-type", "multipart/form-data; boundary=xx"},
                 {"content-length", "900000000000000000"}})
                .status,
            507);
}

}  // namespace
}  // namespace tensordiff::serve
