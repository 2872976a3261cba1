#include "serve/guard.h"

#include <gtest/gtest.h>

namespace tensordiff::serve {
namespace {

Request get(std::vector<Header> headers, std::string method = "GET") {
  Request request;
  request.method = std::move(method);
  request.path = "/";
  request.headers = std::move(headers);
  return request;
}

int status(const Guard& guard, const Request& request) {
  const std::optional<Response> refusal = guard.check(request);
  return refusal ? refusal->status : 200;
}

TEST(Guard, AnswersToItsOwnNamesOnly) {
  const Guard guard = make_guard(5000, "127.0.0.1", true);
  for (const char* host : {"127.0.0.1:5000", "localhost:5000", "LOCALHOST:5000", "[::1]:5000"})
    EXPECT_EQ(status(guard, get({{"host", host}})), 200) << host;
  for (const char* host : {"evil.example:5000", "127.0.0.1", "127.0.0.1:5001", "10.0.0.1:5000",
                           "localhost.evil.example:5000", "", "127.0.0.1:5000 "})
    EXPECT_EQ(status(guard, get({{"host", host}})), 421) << host;
  EXPECT_EQ(status(guard, get({})), 421);
  EXPECT_EQ(status(guard, get({{"host", "localhost:5000"}, {"host", "localhost:5000"}})), 421);
}

TEST(Guard, ElsewhereAnyAddressIsOursButNoForeignName) {
  const Guard guard = make_guard(5000, "0.0.0.0", false);
  EXPECT_EQ(status(guard, get({{"host", "192.168.1.7:5000"}})), 200);
  EXPECT_EQ(status(guard, get({{"host", "[fe80::1]:5000"}})), 200);
  EXPECT_EQ(status(guard, get({{"host", "evil.example:5000"}})), 421);
}

TEST(Guard, RefusesOtherOriginsAndSites) {
  const Guard guard = make_guard(5000, "127.0.0.1", true);
  const Header host{"host", "127.0.0.1:5000"};
  EXPECT_EQ(status(guard, get({host, {"origin", "http://127.0.0.1:5000"}}, "POST")), 200);
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:5000",
                             "http://127.0.0.1:5001", "http://127.0.0.1:5000.evil.example", ""})
    EXPECT_EQ(status(guard, get({host, {"origin", origin}}, "POST")), 403) << origin;
  EXPECT_EQ(status(guard, get({host, {"sec-fetch-site", "cross-site"}})), 403);
  EXPECT_EQ(status(guard, get({host, {"sec-fetch-site", "same-site"}})), 403);
  EXPECT_EQ(status(guard, get({host, {"sec-fetch-site", "none"}})), 200);
  EXPECT_EQ(status(guard, get({host, {"sec-fetch-site", "none"}}, "POST")), 403);
  EXPECT_EQ(status(guard, get({host, {"sec-fetch-site", "same-origin"}}, "POST")), 200);
}

TEST(Guard, TakesNothingCompressed) {
  const Guard guard = make_guard(5000, "127.0.0.1", true);
  const Header host{"host", "127.0.0.1:5000"};
  EXPECT_EQ(status(guard, get({host, {"content-encoding", "gzip"}}, "POST")), 415);
}

TEST(Guard, ALinkLeadsToThePageFromAnywhereButToNothingElse) {
  const Guard guard = make_guard(5000, "127.0.0.1", true);
  Request link = get({{"host", "127.0.0.1:5000"},
                      {"sec-fetch-site", "cross-site"},
                      {"sec-fetch-mode", "navigate"},
                      {"sec-fetch-dest", "document"}});
  EXPECT_EQ(status(guard, link), 200);
  link.path = "/api/v1/exports/x";
  EXPECT_EQ(status(guard, link), 403);
  link.path = "/";
  link.method = "POST";
  EXPECT_EQ(status(guard, link), 403);
  link.method = "GET";
  link.headers[3].value = "iframe";
  EXPECT_EQ(status(guard, link), 403);
}

TEST(Guard, KnowsItsToken) {
  Guard guard = make_guard(5000, "127.0.0.1", true);
  guard.token = random_token();
  EXPECT_EQ(guard.token.size(), 32U);
  EXPECT_FALSE(make_guard(5000, "127.0.0.1", true).knows_token(""));  // None is no way in.
  EXPECT_TRUE(guard.knows_token(guard.token));
  EXPECT_FALSE(guard.knows_token(""));
  EXPECT_FALSE(guard.knows_token(guard.token.substr(1)));
  EXPECT_FALSE(guard.knows_token(guard.token + "a"));
  EXPECT_FALSE(guard.knows_token(std::string(32, 'a')));
  EXPECT_NE(guard.token, random_token());
}

TEST(Guard, TellsTheBrowserToBeCareful) {
  Response response;
  response.headers = {{"Cache-Control", "no-cache"}};
  add_security_headers(response);
  std::string all;
  for (const Header& header : response.headers) all += header.name + ": " + header.value + "\n";
  EXPECT_NE(all.find("default-src 'self'"), std::string::npos);
  EXPECT_NE(all.find("nosniff"), std::string::npos);
  EXPECT_EQ(all.find("no-store"), std::string::npos);  // What the answer says itself stands.
  EXPECT_EQ(all.find("Access-Control"), std::string::npos);
}

}  // namespace
}  // namespace tensordiff::serve
