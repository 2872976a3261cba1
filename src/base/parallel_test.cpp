#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tensordiff {
namespace {

// Two threads for a test, however many cores there are.
class TwoThreads : public testing::Test {
 protected:
  TwoThreads() { set_threads(2); }
  ~TwoThreads() override { set_threads(0); }
};

// Where as many threads meet as it is made for; false: the others did not come.
class Meeting {
 public:
  explicit Meeting(int expected) : missing_(expected) {}

  bool attend() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (--missing_; missing_ > 0; std::this_thread::yield())
      if (std::chrono::steady_clock::now() > deadline) return false;
    return true;
  }

 private:
  std::atomic<int> missing_;
};

TEST(Parallel, VisitsEachIndexOnce) {
  std::vector<int> visits(1000);
  for_each_index(visits.size(), [&](std::size_t i) { ++visits[i]; });
  EXPECT_EQ(visits, std::vector<int>(1000, 1));
}

TEST(Parallel, UsesNoMoreThreadsThanAreAskedFor) {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  with_threads(1, [&] {
    for_each_index(1000, [&](std::size_t) {
      const std::scoped_lock lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  });
  EXPECT_EQ(seen.size(), 1U);
}

TEST(Cancellation, LeavesOutWhatHasNotBegunInLoopsInsideLoops) {
  Cancellation cancellation;
  std::atomic<int> visits = 0;
  bool noticed = false;
  cancellation.run([&] {
    for_each_index(1000, [&](std::size_t) {
      for_each_index(1000, [&](std::size_t) {
        if (++visits == 10) cancellation.cancel();
      });
    });
    noticed = called_off();
  });
  EXPECT_LT(visits, 1'000'000);
  EXPECT_TRUE(noticed);
  EXPECT_TRUE(cancellation.cancelled());
  EXPECT_FALSE(called_off());
  for_each_index(10, [&](std::size_t) { ++visits; });  // What comes after it is not touched.
}

TEST_F(TwoThreads, WorkAtTheSameTime) {
  Meeting meeting(2);
  std::atomic<int> met = 0;
  for_each_index(2, [&](std::size_t) { met += meeting.attend(); });
  EXPECT_EQ(met, 2);
}

TEST_F(TwoThreads, HelpInLoopsInsideTheirs) {
  Meeting meeting(2);
  std::atomic<int> met = 0;
  for_each_index(2, [&](std::size_t i) {
    if (i == 1) for_each_index(2, [&](std::size_t) { met += meeting.attend(); });
  });
  EXPECT_EQ(met, 2);
}

TEST_F(TwoThreads, VisitEachIndexOfLoopsInsideLoopsOnce) {
  std::vector<std::atomic<int>> visits(30 * 40 * 50);
  for_each_index(30, [&](std::size_t i) {
    for_each_index(40, [&](std::size_t j) {
      for_each_index(50, [&](std::size_t k) { ++visits[(i * 40 + j) * 50 + k]; });
    });
  });
  for (const std::atomic<int>& count : visits) ASSERT_EQ(count, 1);
}

TEST_F(TwoThreads, DoLoopsOfSeveralCallersAtOnce) {
  std::atomic<int> visits = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&] {
      for (int again = 0; again < 200; ++again)
        with_threads(2, [&] { for_each_index(100, [&](std::size_t) { ++visits; }); });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(visits, 8 * 200 * 100);
}

TEST_F(TwoThreads, PassOnWhatIsThrownAndLeaveOutTheRest) {
  std::atomic<int> visits = 0;
  const auto loop = [&] {
    for_each_index(1'000'000, [&](std::size_t) {
      if (++visits == 10) throw std::runtime_error("full");
    });
  };
  EXPECT_THROW(loop(), std::runtime_error);
  EXPECT_LT(visits, 1'000'000);
  EXPECT_FALSE(called_off());
}

TEST(Cancellation, BeginsNothingWhereItCameFirst) {
  Cancellation cancellation;
  cancellation.cancel();
  bool begun = false;
  cancellation.run([&] { begun = true; });
  EXPECT_FALSE(begun);
}

TEST(Cancellation, HoldsForOneThreadToo) {
  set_threads(1);
  Cancellation cancellation;
  int visits = 0;
  cancellation.run([&] {
    for_each_index(1000, [&](std::size_t) {
      if (++visits == 10) cancellation.cancel();
    });
  });
  set_threads(0);
  EXPECT_EQ(visits, 10);
}

}  // namespace
}  // namespace tensordiff
