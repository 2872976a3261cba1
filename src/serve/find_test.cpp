#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class Find : public AppTest {
 protected:
  Find() : path("/sessions/" + session() + "/pairs/0/find") {}
  std::string path;
};

TEST_F(Find, WhatIsBeyondTolerance) {
  const Json found = json(post(path, R"({"in":"tol","limit":10})"));
  ASSERT_EQ(found["hits"].array().size(), 1U);
  EXPECT_EQ(text(found["hits"][0]["flat"]), "3");
  EXPECT_EQ(found["hits"][0]["b"].number(), 5);
  EXPECT_TRUE(*found["done"].boolean());
}

TEST_F(Find, InEitherDirectionAndFromWhereItStopped) {
  Json found = json(post(path, R"({"in":"a","op":"range","lo":2,"dir":-1})"));
  EXPECT_EQ(text(found["hits"][0]["flat"]), "3");
  EXPECT_EQ(text(found["next"]), "2");
  found = json(post(path, R"({"in":"a","op":"range","lo":2,"dir":-1,"from":"2"})"));
  EXPECT_EQ(text(found["hits"][0]["flat"]), "2");
  found = json(post(path, R"({"in":"d","op":"eq","lo":1})"));
  EXPECT_EQ(text(found["hits"][0]["flat"]), "3");
  EXPECT_TRUE(json(post(path, R"({"in":"b","op":"nan"})"))["hits"].array().empty());
}

TEST_F(Find, RefusesNonsense) {
  for (const char* body :
       {R"({"in":"c"})", R"({"in":"a","op":"like"})", R"({"in":"tol","limit":0})",
        R"({"in":"a","op":"eq","lo":"x"})", R"({"in":"tol","from":4})"})
    EXPECT_EQ(post(path, body).status, 400) << body;
}

}  // namespace
}  // namespace tensordiff::serve
