#include "net/loop.h"

#include <sys/socket.h>

#include <csignal>
#include <thread>

#include "net/log_timer.h"
#include "net/test_fixture.h"

namespace berth::net {
namespace {

using std::chrono::milliseconds;

class Timers : public LoopTest {};

TEST_F(Timers, RunInTheOrderOfTheirTimesNotOfTheirMaking) {
  std::string seen;
  const Clock::time_point now = Clock::now();
  loop.at(now + milliseconds(3), [&] { seen += 'c'; });
  loop.at(now + milliseconds(1), [&] { seen += 'a'; });
  loop.at(now + milliseconds(1), [&] { seen += 'b'; });
  ASSERT_TRUE(until([&] { return seen.size() == 3; }));
  EXPECT_EQ(seen, "abc");
}

/// A log as far as LogTimer knows one.
struct FewLines {
  LineGate gate{{.lines = 1, .window = std::chrono::seconds(1), .sources = 4}};
  std::vector<std::string> written;

  LineGate& lines() { return gate; }
  void tell_left_out() {
    for (std::string& told : gate.ended()) written.push_back(std::move(told));
  }
};

TEST_F(Timers, ALogTellsWhatItLeftOutWhenTheTimeIsOver) {
  FewLines log;
  const LogTimer<FewLines> timer(loop, log);
  for (int i = 0; i < 5; ++i) log.gate.line("uid 1");
  log.gate.line("uid 2");
  ASSERT_TRUE(until([&] { return !log.written.empty(); }));
  EXPECT_EQ(log.written, std::vector<std::string>{"4 more lines of uid 1 left out within 1 s"});
}

TEST_F(Timers, ACancelledOneDoesNotRunEvenWhenBothAreDue) {
  int ran = 0;
  TimerId second{};
  const Clock::time_point past = Clock::now() - milliseconds(10);
  loop.at(past, [&] {
    ++ran;
    loop.cancel(second);
  });
  second = loop.at(past + milliseconds(1), [&] { ran += 100; });
  ASSERT_TRUE(until([&] { return ran > 0; }));
  loop.run_once(milliseconds(0));
  EXPECT_EQ(ran, 1);
  loop.cancel(second);  // again: nothing
}

TEST_F(Timers, OneThatSetsItselfAgainDoesNotStarveTheLoop) {
  int rounds = 0;
  std::function<void()> again = [&] {
    ++rounds;
    loop.after(milliseconds(0), [&] { again(); });
  };
  again();
  bool posted = false;
  loop.post([&] { posted = true; });
  loop.run_once(milliseconds(0));
  EXPECT_TRUE(posted);
  EXPECT_LE(rounds, 2);
}

class Watches : public LoopTest {
 protected:
  void SetUp() override {
    int ends[4];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends + 2), 0);
    for (int i = 0; i < 4; ++i) ends_[i].reset(ends[i]);
  }
  Fd ends_[4];
};

TEST_F(Watches, WhatWasUnwatchedInTheSameRoundIsNotCalled) {
  int calls = 0;
  const auto first_unwatches_both = [&](Ready) {
    ++calls;
    loop.unwatch(ends_[0].get());
    loop.unwatch(ends_[2].get());
  };
  loop.watch(ends_[0].get(), {.read = true}, first_unwatches_both);
  loop.watch(ends_[2].get(), {.read = true}, first_unwatches_both);
  ASSERT_EQ(::write(ends_[1].get(), "x", 1), 1);
  ASSERT_EQ(::write(ends_[3].get(), "x", 1), 1);
  for (int i = 0; i < 5; ++i) loop.run_once(milliseconds(0));
  EXPECT_EQ(calls, 1);
}

TEST_F(Watches, ADescriptorThatWasUsedAgainGetsNoEventOfTheOldOne) {
  bool old_called = false;
  bool new_called = false;
  const int number = ends_[2].get();
  loop.watch(number, {.read = true}, [&](Ready) { old_called = true; });
  loop.watch(ends_[0].get(), {.read = true}, [&](Ready) {
    loop.unwatch(ends_[0].get());
    loop.unwatch(number);
    loop.watch(number, {.read = true}, [&](Ready) { new_called = true; });
  });
  ASSERT_EQ(::write(ends_[1].get(), "x", 1), 1);
  loop.run_once(milliseconds(0));
  EXPECT_FALSE(new_called);
  ASSERT_EQ(::write(ends_[3].get(), "x", 1), 1);
  ASSERT_TRUE(until([&] { return new_called; }));
  EXPECT_FALSE(old_called);
}

TEST_F(Watches, PostFromAnotherThreadWakesTheLoop) {
  bool called = false;
  std::thread other([&] {
    loop.post([&] {
      called = true;
      loop.stop();
    });
  });
  loop.run();
  other.join();
  EXPECT_TRUE(called);
}

TEST_F(Watches, ASignalIsAnEvent) {
  int seen = 0;
  loop.on_signal(SIGUSR1, [&] { ++seen; });
  ::kill(::getpid(), SIGUSR1);
  EXPECT_TRUE(until([&] { return seen == 1; }));
}

}  // namespace
}  // namespace berth::net
