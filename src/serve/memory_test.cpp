// Memory that runs out in the server: allocations are made to fail, and the server answers on.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "serve/server.h"
#include "serve/socket.h"
#include "serve/test_app.h"

namespace {

// Which allocations fail: each `fail_every`-th of the threads that are not excused; 0: none.
std::atomic<uint64_t> fail_every = 0;
std::atomic<uint64_t> allocations = 0;
std::atomic<uint64_t> failures = 0;
thread_local bool excused = false;

void* allocate(std::size_t size, std::size_t alignment) {
  const uint64_t every = fail_every.load(std::memory_order_relaxed);
  if (every > 0 && !excused && ++allocations % every == 0) {
    ++failures;
    return nullptr;
  }
  size = size == 0 ? 1 : size;
  if (alignment == 0) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment = 0) {
  if (void* memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// GCC takes free() in our own operator delete for a mismatch once it has inlined operator new.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

// All forms: a sanitizer brings its own for those left out, and calls them mismatched.
void* operator new(std::size_t size) { return allocate_or_throw(size); }
void* operator new[](std::size_t size) { return allocate_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 0); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace tensordiff::serve {
namespace {

using std::chrono::milliseconds;

class Memory : public testing::Test {
 protected:
  Memory() {
    std::string name = (std::filesystem::temp_directory_path() / "memory-test-XXXXXX").string();
    folder = std::filesystem::canonical(mkdtemp(name.data()));
    excused = true;
    options.port = 0;
    options.ports = 1;
    options.demo = true;
    options.state = (folder / "state").string();
    options.roots = {folder.string()};
  }
  ~Memory() override {
    fail_every = 0;
    excused = false;
    std::filesystem::remove_all(folder);
  }

  static std::string ask(const Server& server, const std::string& method, const std::string& path,
                         const std::string& body = "") {
    const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket.file(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string head = fmt::format(
        "{} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX-Token: {}\r\nConnection: close\r\n"
        "Content-Length: {}\r\n\r\n",
        method, path, server.port(), server.app().guard.token, body.size());
    socket.write(head + body, milliseconds(60'000));
    std::string all;
    char piece[4096];
    for (;;) {
      const auto got = socket.read(piece, sizeof piece, Clock::now() + milliseconds(120'000));
      if (got.got != Socket::Got::bytes) return all;
      all.append(piece, got.count);
    }
  }

  std::filesystem::path folder;
  ServeOptions options;
};

// Those of a server with sockets.
TEST_F(Memory, EveryNthAllocationFailsAndTheServerAnswersOn) {
  Result<Server> server = Server::start(options);
  ASSERT_TRUE(server.ok()) << server.error().message();
  const Server& running = server.value();
  const std::string session = running.app().opened;
  const std::string path = "/api/v1/sessions/" + session;
  while (const JobPtr job = running.app().jobs.of(session)) job->wait();
  for (const uint64_t every : {1, 2, 3, 5, 10, 31, 100, 317, 1000}) {
    const uint64_t before = failures;
    fail_every = every;
    // What a page asks for: whatever the answers are, the server is there afterwards.
    for (const char* each : {"", "/pairs", "/pairs/3", "/pairs/3/slice?at=0,y,x", "/pairs/3/axes",
                             "/pairs/3/pyramid?at=0,y,x", "/pairs/3/tile/d/0/0/0?at=0,y,x"})
      ask(running, "GET", path + each);
    ask(running, "POST", path + "/pairs/3/find", R"({"in":"tol"})");
    ask(running, "PUT", path + "/pairs/3/note", R"({"text":"a note that needs some memory"})");
    ask(running, "GET", path + "/events?token=" + running.app().guard.token);
    ask(running, "POST", path + "/reload", "{}");
    while (const JobPtr job = running.app().jobs.of(session)) job->wait();
    fail_every = 0;
    EXPECT_GT(failures, before) << every << ": nothing failed, so nothing was tried";
    EXPECT_NE(ask(running, "GET", path).find("HTTP/1.1 200"), std::string::npos) << every;
    EXPECT_NE(ask(running, "GET", path + "/pairs").find("HTTP/1.1 200"), std::string::npos);
  }
}

class MemoryOfJobs : public AppTest {
 protected:
  MemoryOfJobs() { excused = true; }
  ~MemoryOfJobs() override {
    fail_every = 0;
    excused = false;
  }
  // Compares while every so many-th allocation of the job fails.
  void compare(const SessionPtr& session, uint64_t every) {
    fail_every = every;
    app->sessions.compare(session, false);
    wait(session->id());
    fail_every = 0;
  }
};

TEST_F(MemoryOfJobs, AComparisonWithoutItFailsAndNothingElse) {
  const SessionPtr session = app->open_demo().value();
  wait(session->id());
  int failed = 0;
  for (const uint64_t every : {1, 2, 3, 5, 10, 31, 100, 317, 1000, 3163, 10'000, 31'627}) {
    const uint64_t before = failures;
    compare(session, every);
    const Response answer = get("/sessions/" + session->id());
    ASSERT_EQ(answer.status, 200);
    const std::string state = text(json(answer)["state"]);
    EXPECT_TRUE(state == "failed" || state == "done") << state;
    EXPECT_EQ(text(json(answer)["error"]), state == "failed" ? "out of memory" : "");
    failed += state == "failed" ? 1 : 0;
    EXPECT_TRUE(failures > before || every > 1000) << every;
    EXPECT_EQ(get("/sessions/" + session->id() + "/pairs").status, 200);
  }
  EXPECT_GE(failed, 6);
  compare(session, 0);
  EXPECT_EQ(state_of(session->id()), "done");
}

TEST_F(MemoryOfJobs, ASessionThatRanOutOfItIsNotComparedAgainByItself) {
  const std::string id = session();
  compare(app->sessions.find(id), 1);
  start();
  EXPECT_EQ(listed_state(id), "failed");
  EXPECT_EQ(text(json(get("/sessions/" + id))["error"]), "out of memory");
  EXPECT_EQ(app->jobs.of(id), nullptr);
  // Whoever asks for it gets it.
  EXPECT_EQ(post("/sessions/" + id + "/reload").status, 202);
  wait(id);
  EXPECT_EQ(state_of(id), "done");
}

}  // namespace
}  // namespace tensordiff::serve
