// The server without routes: limits, slow clients, broken requests, cancelled work.

#include "serve/http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>

#include "base/parallel.h"
#include "serve/connection.h"
#include "serve/socket.h"
#include "serve/watch.h"

namespace tensordiff::serve {
namespace {

using std::chrono::milliseconds;

class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_.file(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  bool send(std::string_view text) { return socket_.write(text, milliseconds(60'000)); }
  // All that comes until the server closes.
  std::string receive() {
    std::string all;
    char piece[4096];
    for (;;) {
      const auto got = socket_.read(piece, sizeof piece, Clock::now() + milliseconds(60'000));
      if (got.got != Socket::Got::bytes) return all;
      all.append(piece, got.count);
    }
  }
  void close() { socket_.shut(); }

 private:
  Socket socket_;
};

class Http : public testing::Test {
 protected:
  Http() {
    handler.begin = [](Request&) {
      BodyPlan plan;
      plan.bytes_max = 1000;
      return plan;
    };
    handler.respond = [](Request& request) {
      Response response;
      response.type = "text/plain";
      response.body =
          request.method + " " + request.path + " " + request.query + " " + request.body;
      return response;
    };
  }
  void start() { server.start(handler, limits); }
  std::string ask(std::string_view text) {
    Client client(server.port());
    client.send(text);
    return client.receive();
  }

  HttpServer server = HttpServer::listen("127.0.0.1", 0, 1).value();
  HttpHandler handler;
  HttpLimits limits;
};

constexpr std::string_view kClose = "Host: x\r\nConnection: close\r\n";

TEST_F(Http, HandsOnRequests) {
  start();
  const std::string answer = ask("GET /a%20b?c=d HTTP/1.1\r\n" + std::string(kClose) + "\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nGET /a b c=d ")) << answer;
}

TEST_F(Http, ReadsBodiesOfEitherKind) {
  start();
  const std::string head = "POST / HTTP/1.1\r\n" + std::string(kClose);
  EXPECT_TRUE(ask(head + "Content-Length: 5\r\n\r\nhello").ends_with("hello"));
  EXPECT_TRUE(ask(head + "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n")
                  .ends_with("hello"));
}

TEST_F(Http, AnswersSeveralRequestsOnOneConnection) {
  start();
  const std::string answer =
      ask("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\n" + std::string(kClose) + "\r\n");
  EXPECT_NE(answer.find("GET /1"), std::string::npos);
  EXPECT_NE(answer.find("GET /2"), std::string::npos);
}

TEST_F(Http, RefusesWhatIsTooLarge) {
  start();
  const std::string post = "POST / HTTP/1.1\r\n" + std::string(kClose);
  EXPECT_NE(ask(post + "Content-Length: 1001\r\n\r\n").find(" 413 "), std::string::npos);
  // The size of a chunk counts, whether or not it comes.
  EXPECT_NE(ask(post + "Transfer-Encoding: chunked\r\n\r\nffffffff\r\nx").find(" 413 "),
            std::string::npos);
  std::string many = post + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100; ++i) many += "14\r\n01234567890123456789\r\n";
  EXPECT_NE(ask(many + "0\r\n\r\n").find(" 413 "), std::string::npos);
  const std::string long_head = "GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(20'000, 'x');
  EXPECT_NE(ask(long_head + "\r\n\r\n").find(" 431 "), std::string::npos);
  EXPECT_NE(ask("GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\n").find(" 431 "),
            std::string::npos);
}

TEST_F(Http, KeepsOnlySoManyPendingBytesInEveryState) {
  start();
  const std::string post = "POST / HTTP/1.1\r\n" + std::string(kClose);
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  struct Case {
    std::string head, filler;
  };
  // None of these ever ends.
  for (const Case& each :
       {Case{chunked + "1;", "extension=1;"}, Case{chunked + "0\r\n", "A: b\r\n"},
        Case{chunked + "0\r\nA:", " b\r\n"}, Case{post + "A: b\r\n", " c\r\n"},
        Case{chunked + "1\r\nx\r\n2;", "e"}}) {
    Client client(server.port());
    std::string piece;
    while (piece.size() < 8192) piece += each.filler;
    bool taken = client.send(each.head);
    // More than any buffer between us holds: a server that takes it all keeps it.
    std::size_t sent = 0;
    for (; taken && sent < (64U << 20); sent += piece.size()) taken = client.send(piece);
    EXPECT_LT(sent, 64U << 20) << each.head;
  }
}

TEST_F(Http, SaysThatAChunkHeaderIsTooLarge) {
  start();
  const std::string chunked =
      "POST / HTTP/1.1\r\n" + std::string(kClose) + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_NE(ask(chunked + "1;" + std::string(100'000, 'e')).find(" 431 "), std::string::npos);
  EXPECT_NE(ask(chunked + "0\r\nA:" + std::string(100'000, 'e')).find(" 431 "), std::string::npos);
  EXPECT_TRUE(ask(chunked + "5;name=value\r\nhello\r\n0\r\nA: b\r\n\r\n").ends_with("hello"));
}

TEST_F(Http, EveryAnswerCarriesTheSecurityHeaders) {
  limits.header_time = milliseconds(300);
  start();
  const std::string close(kClose);
  for (const std::string& text :
       {"GET / HTTP/1.1\r\n" + close + "\r\n", std::string("hello\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost:"),
        "POST / HTTP/1.1\r\n" + close + "Content-Length: 1001\r\n\r\n",
        "GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"}) {
    const std::string answer = ask(text);
    for (const char* header : {"Content-Security-Policy: default-src 'self'", "nosniff",
                               "X-Frame-Options: DENY", "Referrer-Policy: no-referrer"})
      EXPECT_NE(answer.find(header), std::string::npos) << answer;
  }
}

TEST_F(Http, WhatARequestThrowsEndsThatRequestOnly) {
  handler.begin = [](Request& request) {
    if (request.path == "/begin") throw std::bad_alloc();
    BodyPlan plan;
    plan.bytes_max = 1000;
    plan.sink = [](std::string_view) -> std::optional<Response> { throw std::bad_alloc(); };
    return plan;
  };
  handler.respond = [](Request& request) {
    if (request.path == "/respond") throw std::bad_alloc();
    if (request.path == "/other") throw std::runtime_error("x");
    Response response;
    if (request.path == "/stream") response.stream = [](const Send&) { throw std::bad_alloc(); };
    return response;
  };
  start();
  const std::string close = " HTTP/1.1\r\n" + std::string(kClose);
  EXPECT_NE(ask("GET /begin" + close + "\r\n").find(" 503 "), std::string::npos);
  EXPECT_NE(ask("GET /respond" + close + "\r\n").find(" 503 "), std::string::npos);
  EXPECT_NE(ask("GET /other" + close + "\r\n").find(" 500 "), std::string::npos);
  EXPECT_NE(ask("POST /" + close + "Content-Length: 1\r\n\r\nx").find(" 503 "), std::string::npos);
  EXPECT_NE(ask("GET /stream" + close + "\r\n").find(" 200 "), std::string::npos);
  EXPECT_NE(ask("GET /" + close + "\r\n").find(" 200 "), std::string::npos);
}

TEST_F(Http, RefusesWhatIsNotHttp) {
  start();
  for (const char* text :
       {"hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "GET / HTTP/1.1\r\nBad Header: x\r\n\r\n"})
    EXPECT_NE(ask(text).find(" 400 "), std::string::npos) << text;
}

TEST_F(Http, DoesNotWaitForSlowClients) {
  limits.header_time = limits.pause_max = milliseconds(300);
  start();
  EXPECT_NE(ask("GET / HTTP/1.1\r\nHost:").find(" 408 "), std::string::npos);
  EXPECT_NE(ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc").find(" 408 "),
            std::string::npos);
}

TEST_F(Http, TurnsAwayWhoIsTooMany) {
  limits.connections_max = 2;
  start();
  Client first(server.port()), second(server.port());
  std::string answer;
  // Until the first two have been accepted, a third may get in.
  for (int i = 0; i < 100 && answer.find(" 503 ") == std::string::npos; ++i)
    answer = ask("GET / HTTP/1.1\r\n" + std::string(kClose) + "\r\n");
  EXPECT_NE(answer.find(" 503 "), std::string::npos);
  EXPECT_NE(answer.find("Retry-After"), std::string::npos);
}

TEST_F(Http, AClientThatIsGoneLeavesItsPlaceToTheNext) {
  limits.connections_max = 2;
  // Shared: the slow ones may look once more after this test has ended.
  const auto working = std::make_shared<std::atomic<int>>(0);
  const auto release = std::make_shared<std::atomic<bool>>(false);
  handler.respond = [working, release](Request& request) {
    // As a thread that has not had its turn yet: it does not notice that nobody listens.
    ++*working;
    while (request.path == "/slow" && !*release) std::this_thread::sleep_for(milliseconds(1));
    return Response{};
  };
  start();
  {
    Client first(server.port()), second(server.port());
    for (Client* client : {&first, &second}) client->send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    while (*working < 2) std::this_thread::sleep_for(milliseconds(1));
  }
  std::string answer;
  std::thread third([&] { answer = ask("GET / HTTP/1.1\r\n" + std::string(kClose) + "\r\n"); });
  std::this_thread::sleep_for(milliseconds(100));  // For a server that would turn it away.
  *release = true;
  third.join();
  EXPECT_NE(answer.find(" 200 "), std::string::npos) << answer;
}

TEST_F(Http, GivesTheBodyToItsSink) {
  std::string sunk;
  handler.begin = [&](Request& request) {
    BodyPlan plan;
    plan.bytes_max = 1 << 20;
    if (request.path == "/no") plan.refusal = problem(403, "no");
    plan.sink = [&](std::string_view piece) -> std::optional<Response> {
      sunk += piece;
      if (sunk.size() > 200'000) return problem(507, "full");
      return std::nullopt;
    };
    return plan;
  };
  start();
  const std::string body(150'000, 'x');
  const std::string head = std::string(kClose) + "Content-Length: 150000\r\n\r\n";
  EXPECT_NE(ask("PUT /yes HTTP/1.1\r\n" + head + body).find(" 200 "), std::string::npos);
  EXPECT_EQ(sunk, body);
  EXPECT_NE(ask("PUT /no HTTP/1.1\r\n" + head + body).find(" 403 "), std::string::npos);
  EXPECT_EQ(sunk, body);
  EXPECT_NE(ask("PUT /yes HTTP/1.1\r\n" + head + body).find(" 507 "), std::string::npos);
}

TEST_F(Http, AnswersAHeadWithoutABody) {
  start();
  const std::string answer = ask("HEAD / HTTP/1.1\r\n" + std::string(kClose) + "\r\n");
  EXPECT_NE(answer.find("Content-Length: 8"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST_F(Http, CancelsTheWorkOfAClientThatIsGone) {
  std::atomic<bool> began = false, ended = false;
  handler.respond = [&](Request&) {
    began = true;
    while (!called_off()) std::this_thread::sleep_for(milliseconds(1));
    ended = true;
    return Response{};
  };
  start();
  Client client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  while (!began) std::this_thread::sleep_for(milliseconds(1));
  client.close();
  while (!ended) std::this_thread::sleep_for(milliseconds(1));
  SUCCEED();
}

TEST_F(Http, StreamsUntilTheEnd) {
  handler.respond = [](Request&) {
    Response response;
    response.type = "text/event-stream";
    response.stream = [](const Send& send) {
      for (int i = 0; i < 3; ++i) send("data: x\n\n");
    };
    return response;
  };
  start();
  const std::string answer = ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("\r\n\r\ndata: x\n\ndata: x\n\ndata: x\n\n")) << answer;
}

TEST(HttpServer, TakesTheNextPortAndSaysWhyItCannot) {
  const HttpServer first = HttpServer::listen("127.0.0.1", 0, 1).value();
  const Result<HttpServer> taken = HttpServer::listen("127.0.0.1", first.port(), 1);
  ASSERT_FALSE(taken.ok());
  EXPECT_NE(taken.error().message().find("in use"), std::string::npos);
  const Result<HttpServer> next = HttpServer::listen("127.0.0.1", first.port(), 20);
  ASSERT_TRUE(next.ok());
  EXPECT_GT(next.value().port(), first.port());
  EXPECT_FALSE(HttpServer::listen("localhost", 0, 1).ok());
}

}  // namespace
}  // namespace tensordiff::serve
