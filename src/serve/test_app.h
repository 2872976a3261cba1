// The server without sockets for tests of routes: asked by values, with a few small files to open.

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "serve/app.h"
#include "serve/uploads.h"

namespace tensordiff::serve {

// One f32 tensor with this name as a safetensors file.
inline std::string safetensors_of(const std::string& name, const std::vector<float>& values) {
  const std::string header =
      fmt::format(R"({{"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{}]}}}})", name,
                  values.size(), 4 * values.size());
  const uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof size);
  file += header;
  return file.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
}

class AppTest : public testing::Test {
 protected:
  AppTest() {
    std::string name = (std::filesystem::temp_directory_path() / "app-test-XXXXXX").string();
    folder = std::filesystem::canonical(mkdtemp(name.data()));
    std::filesystem::create_directories(folder / "files");
    write("a.safetensors", safetensors_of("w", {1, 2, 3, 4}));
    write("b.safetensors", safetensors_of("w", {1, 2, 3, 5}));
    options.roots = {(folder / "files").string()};
    options.state = (folder / "state").string();
    start();
  }
  ~AppTest() override {
    app.reset();
    std::filesystem::remove_all(folder);
  }

  // Ends the server that there is, and starts one on the same state.
  void start() {
    app.reset();
    Result<std::unique_ptr<App>> made =
        App::make(options, make_guard(5000, "127.0.0.1", /*loopback=*/true));
    ASSERT_TRUE(made.ok()) << made.error().message();
    app = std::move(made).value();
  }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder / "files" / name, std::ios::binary) << bytes;
  }
  std::string file(const std::string& name) const { return (folder / "files" / name).string(); }

  // The way of a request through the server, as a connection goes it.
  Response ask(const std::string& method, const std::string& target, const std::string& body = "",
               std::vector<Header> headers = {}) {
    Request request;
    request.method = method;
    const std::size_t question = target.find('?');
    request.path = target.substr(0, question);
    if (question != std::string::npos) request.query = target.substr(question + 1);
    request.headers = std::move(headers);
    request.headers.push_back({"host", "127.0.0.1:5000"});
    if (request.count("x-token") == 0) request.headers.push_back({"x-token", app->guard.token});
    BodyPlan plan = app->begin(request);
    if (plan.refusal) return *plan.refusal;
    if (body.size() > plan.bytes_max) return problem(413, "the body is too large");
    if (plan.sink && !body.empty()) {
      if (std::optional<Response> answer = plan.sink(body)) return *answer;
    } else {
      request.body = body;
    }
    return app->respond(request);
  }
  Response get(const std::string& path) { return ask("GET", "/api/v1" + path); }
  Response post(const std::string& path, const std::string& body = "{}") {
    return ask("POST", "/api/v1" + path, body);
  }
  static Json json(const Response& response) {
    Result<Json> parsed = Json::parse(response.body);
    EXPECT_TRUE(parsed.ok()) << response.status << " " << response.body;
    return parsed.ok() ? std::move(parsed).value() : Json();
  }
  static std::string text(const Json& value) { return std::string(value.string()); }

  std::string source(const std::string& name) {
    return text(json(post("/sources", fmt::format(R"({{"path":"{}"}})", file(name))))["id"]);
  }
  // A session on a.safetensors and b.safetensors, compared.
  std::string session() {
    const std::string body = fmt::format(R"({{"a":["{}"],"b":["{}"]}})", source("a.safetensors"),
                                         source("b.safetensors"));
    const std::string id = text(json(post("/sessions", body))["id"]);
    wait(id);
    return id;
  }
  void wait(const std::string& session) const {
    if (const JobPtr job = app->jobs.of(session)) job->wait();
  }
  std::string state_of(const std::string& session) {
    return text(json(get("/sessions/" + session))["state"]);
  }
  // What the list says, without opening the session.
  std::string listed_state(const std::string& session) {
    const Json list = json(get("/sessions"));
    for (const Json& each : list["sessions"].array())
      if (each["id"].string() == session) return text(each["state"]);
    return "not listed";
  }

  std::filesystem::path folder;
  ServeOptions options;
  std::unique_ptr<App> app;
};

}  // namespace tensordiff::serve
