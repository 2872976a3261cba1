#include "serve/lanes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/parallel.h"
#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

constexpr std::array<Lanes::Limit, Lanes::kCount> kOneEach = {
    {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 0}}};

TEST(Lanes, OneKindDoesNotStopAnother) {
  Lanes lanes(kOneEach);
  const auto search = lanes.enter(Lane::search);
  ASSERT_TRUE(search);
  EXPECT_TRUE(lanes.enter(Lane::quick));
  EXPECT_TRUE(lanes.enter(Lane::quick)) << "the place was not given back";
}

TEST(Lanes, TooManyWaiting) {
  Lanes lanes(kOneEach);
  const auto working = lanes.enter(Lane::compare);
  EXPECT_FALSE(lanes.enter(Lane::compare));
}

TEST(Lanes, TheNextGetsThePlace) {
  Lanes lanes(kOneEach);
  std::optional<Lanes::Place> first = lanes.enter(Lane::search);
  std::atomic<bool> entered = false;
  std::thread second([&] { entered = lanes.enter(Lane::search).has_value(); });
  first.reset();
  second.join();
  EXPECT_TRUE(entered);
}

TEST(Lanes, WhoIsCalledOffWaitsNoLonger) {
  Lanes lanes(kOneEach);
  const auto first = lanes.enter(Lane::search);
  Cancellation work;
  std::atomic<bool> began = false, entered = true;
  std::thread second([&] {
    work.run([&] {
      began = true;
      entered = lanes.enter(Lane::search).has_value();
    });
  });
  while (!began) std::this_thread::yield();
  work.cancel();
  second.join();  // Or this never ends.
  EXPECT_FALSE(entered);
}

class LanesOfTheServer : public AppTest {};

TEST_F(LanesOfTheServer, SlowSearchesDoNotStarveThePage) {
  const std::string id = session();
  std::vector<Lanes::Place> slow;
  const std::size_t at_once = Lanes::kLimits[static_cast<std::size_t>(Lane::search)].at_once;
  for (std::size_t i = 0; i < at_once; ++i) slow.push_back(*app->lanes.enter(Lane::search));
  // Sixteen more wait behind them.
  std::atomic<int> found = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i)
    clients.emplace_back([&] {
      const Response answer = post("/sessions/" + id + "/pairs/0/find", R"({"in":"tol"})");
      found += answer.status == 200 ? 1 : 0;
    });
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/sessions/" + id).status, 200);
  EXPECT_EQ(get("/sessions/" + id + "/pairs/0/slice?at=x").status, 200);
  EXPECT_EQ(found, 0);
  slow.clear();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(found, 16);
}

}  // namespace
}  // namespace tensordiff::serve
