#include "serve/jobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>

namespace tensordiff::serve {
namespace {

TEST(Jobs, CancelTheOneBeforeOnTheSameSession) {
  Jobs jobs;
  std::atomic<bool> began = false;
  const auto endless = [&](Job& job) {
    began = true;
    while (!job.cancelled()) std::this_thread::yield();
    return false;
  };
  const JobPtr first = jobs.start("s", "compare", endless);
  while (!began) std::this_thread::yield();
  EXPECT_EQ(jobs.of("s"), first);
  EXPECT_EQ(jobs.of("t"), nullptr);
  const JobPtr second = jobs.start("s", "compare", [&](Job&) {
    EXPECT_EQ(first->state(), Job::State::cancelled);
    EXPECT_TRUE(first->superseded());
    return true;
  });
  second->wait();
  EXPECT_EQ(second->state(), Job::State::done);
  EXPECT_EQ(jobs.find(second->id), second);
  jobs.stop();
  const JobPtr late = jobs.start("s", "compare", [](Job& job) { return !job.cancelled(); });
  late->wait();
  EXPECT_EQ(late->state(), Job::State::cancelled);
}

TEST(Jobs, OnlySoManyRunAtOnceAndCancellingOneThatWaitsIsQuick) {
  Jobs jobs;
  std::atomic<std::size_t> running = 0, most = 0;
  std::atomic<bool> release = false;
  const auto slow = [&](Job&) {
    most = std::max<std::size_t>(most, ++running);
    while (!release) std::this_thread::yield();
    --running;
    return true;
  };
  std::vector<JobPtr> all;
  for (std::size_t i = 0; i < 2 * Jobs::kAtOnce; ++i)
    all.push_back(jobs.start(std::to_string(i), "compare", slow));
  while (running < Jobs::kAtOnce) std::this_thread::yield();
  std::atomic<bool> told = false;
  const JobPtr last = jobs.start("last", "compare", [&](Job& job) {
    told = job.cancelled();
    return false;
  });
  jobs.cancel(last);
  EXPECT_EQ(last->state(), Job::State::cancelled);  // Though none of the others has ended.
  EXPECT_FALSE(last->superseded());
  EXPECT_TRUE(told);
  release = true;
  for (const JobPtr& job : all) job->wait();
  EXPECT_EQ(most, Jobs::kAtOnce);
}

TEST(Jobs, MoreThanCanWaitAreRefused) {
  Jobs jobs;
  std::atomic<bool> release = false;
  const auto slow = [&](Job&) {
    while (!release) std::this_thread::yield();
    return true;
  };
  std::size_t taken = 0;
  while (jobs.start(std::to_string(taken), "compare", slow)) ++taken;
  EXPECT_TRUE(jobs.full());
  EXPECT_GE(taken, Jobs::kWaitingMax);
  EXPECT_LE(taken, Jobs::kWaitingMax + Jobs::kAtOnce);
  release = true;
}

TEST(Jobs, WhatOneThrowsIsItsOwnFailure) {
  Jobs jobs;
  const JobPtr starved = jobs.start("s", "compare", [](Job& job) -> bool {
    job.run([] { throw std::bad_alloc(); });
    return true;
  });
  starved->wait();
  EXPECT_EQ(starved->state(), Job::State::failed);
  const JobPtr next = jobs.start("s", "compare", [](Job&) { return true; });
  next->wait();
  EXPECT_EQ(next->state(), Job::State::done);
}

TEST(Jobs, KeepsTheLatestOnesThatHaveEnded) {
  Jobs jobs;
  EXPECT_EQ(jobs.latest("s"), nullptr);
  std::vector<JobPtr> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(jobs.start(i % 2 == 0 ? "s" : "t", "compare", [](Job&) { return true; }));
    all.back()->wait();
    EXPECT_EQ(jobs.latest(all.back()->session), all.back());
  }
  EXPECT_EQ(jobs.latest("s"), all[98]);
  EXPECT_EQ(jobs.of("s"), nullptr);  // It has ended.
  EXPECT_EQ(jobs.find(all[0]->id), nullptr);
  EXPECT_EQ(jobs.find(all[50]->id), all[50]);
}

}  // namespace
}  // namespace tensordiff::serve
