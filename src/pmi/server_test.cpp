// Fences when tasks leave, what the tree may say wrong, and how much is kept.
#include "pmi/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pmi/limits.h"
#include "pmi/server_test_fixture.h"

namespace berth::pmi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kHello = "cmd=init pmi_version=1 pmi_subversion=1\n";

Server one_node(std::vector<std::uint32_t> ranks) {
  Step step;
  step.id = "12.0";
  step.size = static_cast<std::uint32_t>(ranks.size());
  step.ranks = std::move(ranks);
  return Server(step);
}

TEST(Fence, OneContributionOnceAllHaveArrived) {
  Server server = one_node({0, 1});
  server.received(0, std::string(kHello) + "cmd=put key=a value=b\ncmd=barrier_in\n");
  server.received(1, kHello);
  server.take();
  EXPECT_THAT(server.take(), IsEmpty());
  server.received(1, "cmd=barrier_in\n");
  EXPECT_THAT(server.take(), ElementsAre(Contribution{1, std::string("\1\0\0\0\1\0\0\0ab", 10)}));
  EXPECT_TRUE(server.fenced(1, ""));
  EXPECT_THAT(server.take(), ElementsAre(Answer{0, "cmd=barrier_out rc=0\n"},
                                         Answer{1, "cmd=barrier_out rc=0\n"}));
}

TEST(Fence, ATaskThatLeavesIsNotWaitedFor) {
  for (const bool polite : {false, true}) {
    Cluster cluster({{0, 1}, {2}});
    for (std::uint32_t rank = 0; rank < 3; ++rank) cluster.init(rank);
    cluster.ask(1, "cmd=put key=last value=word\n");
    cluster.ask(0, "cmd=barrier_in\n");
    cluster.ask(2, "cmd=barrier_in\n");
    if (polite) {
      cluster.send(1, "cmd=finalize\n");
    } else {
      cluster.close(1);
    }
    EXPECT_EQ(cluster.got(0), "cmd=barrier_out rc=0\n");
    EXPECT_EQ(cluster.ask(2, "cmd=get key=last\n"),
              "cmd=barrier_out rc=0\ncmd=get_result rc=0 value=word\n");
  }
}

TEST(Fence, ANodeWithoutTasksIsNotWaitedFor) {
  Cluster cluster({{0}, {1, 2}, {}});
  cluster.init(0);
  cluster.init(1);
  cluster.send(0, "cmd=barrier_in\n");
  cluster.close(2);  // never said a word
  EXPECT_EQ(cluster.got(0), "");
  cluster.close(1);
  EXPECT_EQ(cluster.got(0), "cmd=barrier_out rc=0\n");
  EXPECT_EQ(cluster.ask(0, "cmd=barrier_in\n"), "cmd=barrier_out rc=0\n");
  EXPECT_EQ(cluster.fences, 2U);
}

TEST(Fence, ItsKeysAreKeptWhenATaskDiesAtIt) {
  Server server = one_node({0, 1});
  server.received(0, std::string(kHello) + "cmd=put key=a value=b\ncmd=barrier_in\n");
  server.closed(0);
  server.take();
  server.closed(1);
  EXPECT_THAT(server.take(),
              ElementsAre(Contribution{1, std::string("\1\0\0\0\1\0\0\0ab", 10)}, Departed{}));
  server.closed(1);
  EXPECT_TRUE(server.fenced(1, ""));
  EXPECT_THAT(server.take(), IsEmpty()) << "nobody is left to be told";
}

TEST(Fence, NobodyFencesWhenAllHaveFinalized) {
  Server server = one_node({0, 1});
  for (const std::uint32_t rank : {0, 1})
    server.received(rank, std::string(kHello) + "cmd=finalize\n");
  for (const Event& event : server.take()) EXPECT_TRUE(std::holds_alternative<Answer>(event));
  server.closed(0);
  EXPECT_THAT(server.take(), IsEmpty());
  server.closed(1);
  EXPECT_THAT(server.take(), ElementsAre(Departed{}));
}

TEST(Fence, TheTreeIsNotBelievedEither) {
  Server server = one_node({0});
  EXPECT_FALSE(server.fenced(0, ""));
  EXPECT_FALSE(server.fenced(1, "")) << "nobody is at one";
  server.received(0, std::string(kHello) + "cmd=barrier_in\n");
  server.take();
  EXPECT_FALSE(server.fenced(2, ""));
  EXPECT_FALSE(server.fenced(1, "damaged"));
  EXPECT_THAT(server.take(), IsEmpty());
  EXPECT_TRUE(server.fenced(1, ""));
  EXPECT_FALSE(server.fenced(1, "")) << "it is over";
  EXPECT_THAT(server.take(), ElementsAre(Answer{0, "cmd=barrier_out rc=0\n"}));
}

TEST(Fence, TheStepCannotHaveAnyNumberOfKeys) {
  Server server = one_node({0});
  server.received(0, std::string(kHello) + "cmd=barrier_in\n");
  Kvs kvs;
  const std::string value(kMaxValue, 'x');
  for (int i = 0; kvs.bytes() < kMaxShared; ++i) kvs.put(fmt::to_string(i), value);
  std::string bytes;
  encode(kvs, bytes);
  EXPECT_FALSE(server.fenced(1, bytes));
  EXPECT_TRUE(server.fenced(1, ""));
}

TEST(Server, WhatATaskPutsIsBounded) {
  Cluster cluster({{0, 1}, {2}});
  cluster.init(0);
  cluster.init2(1);
  EXPECT_THAT(cluster.ask(0, "cmd=put key=" + std::string(kMaxKey + 1, 'k') + " value=x\n"),
              HasSubstr("rc=-1"));
  EXPECT_THAT(cluster.ask(0, "cmd=put key=k value=" + std::string(kMaxValue + 1, 'x') + "\n"),
              HasSubstr("rc=-1"));
  const std::string value(kMaxValue, 'x');
  std::size_t taken = 0;
  for (std::size_t i = 0; i < kMaxHeld / kMaxValue + 10; ++i) {
    const std::string answer = cluster.ask(0, fmt::format("cmd=put key=k{} value={}\n", i, value));
    if (answer.find("rc=0") != std::string::npos) taken += kMaxValue;
  }
  EXPECT_LE(taken, kMaxHeld);
  EXPECT_GE(taken, kMaxHeld * 9 / 10);
  // All tasks and the attributes of the node share it; a new value for an old key costs nothing.
  EXPECT_THAT(cluster.ask(1, framed("cmd=kvs-put;key=a;value=" + value + ";")), HasSubstr("rc=1;"));
  EXPECT_THAT(cluster.ask(1, framed("cmd=info-putnodeattr;key=a;value=" + value + ";")),
              HasSubstr("rc=1;"));
  EXPECT_THAT(cluster.ask(0, "cmd=put key=k0 value=" + value + "\n"), HasSubstr("rc=0"));
  // A fence takes it all away.
  cluster.send(0, "cmd=barrier_in\n");
  cluster.close(2);
  cluster.send(1, framed("cmd=kvs-fence;"));
  cluster.got(0);
  EXPECT_THAT(cluster.ask(0, "cmd=put key=n value=" + value + "\n"), HasSubstr("rc=0"));
}

TEST(Server, ASpawnRequestIsBounded) {
  Cluster cluster({{0}, {1}});
  cluster.init(0);
  cluster.send(0, "mcmd=spawn\n");
  const std::string line = "arg1=" + std::string(60000, 'x') + "\n";
  for (int i = 0; i < 40; ++i) cluster.send(0, line);
  ASSERT_EQ(cluster.events.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<Misuse>(cluster.events[0]));
  cluster.init(1);
  std::string programs;
  for (std::size_t i = 0; i <= kMaxSpawnCommands; ++i) {
    programs += "mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=1024\nendcmd\n";
    if (i + 2 == kMaxSpawnCommands) programs += "mcmd=spawn\ntotspawns=1025\n";
  }
  cluster.send(1, programs);
  ASSERT_EQ(cluster.events.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<Misuse>(cluster.events[1]));
}

TEST(Server, OtherRanksAndLateAnswersAreOfNoMatter) {
  Server server = one_node({3});
  server.received(0, kHello);
  server.closed(7);
  EXPECT_THAT(server.take(), IsEmpty());
  server.received(3, std::string(kHello) + "cmd=lookup_name service=a\n");
  server.closed(3);
  server.take();
  server.named(1, "port");
  EXPECT_THAT(server.take(), IsEmpty());
}

}  // namespace
}  // namespace berth::pmi
