// PMI-1: every command, keys across nodes, names, spawning, and bytes cut anywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pmi/limits.h"
#include "pmi/server_test_fixture.h"

namespace berth::pmi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kInit = "cmd=init pmi_version=1 pmi_subversion=1\n";

TEST(Lines, EveryQuestionHasItsAnswer) {
  struct Row {
    const char* question;
    const char* answer;
  };
  // One after the other, by the only task of a step.
  const Row rows[] = {
      {"cmd=init pmi_version=3 pmi_subversion=0\n",
       "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"},
      {"cmd=init pmi_version=1 pmi_subversion=1\n",
       "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"},
      {"cmd=get_maxes\n", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"},
      {"cmd=get_appnum\n", "cmd=appnum appnum=2\n"},
      {"cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=12.0\n"},
      {"cmd=get_universe_size\n", "cmd=universe_size size=16\n"},
      {"cmd=get kvsname=12.0 key=PMI_process_mapping\n",
       "cmd=get_result rc=0 value=(vector,(0,1,1))\n"},
      {"cmd=get kvsname=12.0 key=PARENT_ROOT_PORT_NAME\n", "cmd=get_result rc=0 value=tag#0\n"},
      {"cmd=get kvsname=12.0 key=a\n", "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"},
      {"cmd=put kvsname=12.0 key=a value=1\n", "cmd=put_result rc=0 msg=success\n"},
      {"cmd=get kvsname=12.0 key=a\n", "cmd=get_result rc=0 value=1\n"},
      {"cmd=get kvsname=13.0 key=a\n", "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"},
      {"cmd=put kvsname=13.0 key=a value=1\n", "cmd=put_result rc=-1 msg=unknown_kvsname\n"},
      {"cmd=put kvsname=12.0 value=1\n", "cmd=put_result rc=-1 msg=bad_key\n"},
      {"cmd=put key=b value=\n", "cmd=put_result rc=0 msg=success\n"},
      {"cmd=get key=b\n", "cmd=get_result rc=0 value=\n"},
      {"cmd=barrier_in\n", "cmd=barrier_out rc=0\n"},
      {"cmd=getbyidx kvsname=12.0 idx=0\n",
       "cmd=getbyidx_results rc=0 nextidx=1 key=PARENT_ROOT_PORT_NAME val=tag#0\n"},
      {"cmd=getbyidx kvsname=12.0 idx=2\n", "cmd=getbyidx_results rc=0 nextidx=3 key=a val=1\n"},
      {"cmd=getbyidx kvsname=12.0 idx=4\n", "cmd=getbyidx_results rc=-2 reason=no_more_keyvals\n"},
      {"cmd=getbyidx kvsname=12.0 idx=-1\n", "cmd=getbyidx_results rc=-2 reason=no_more_keyvals\n"},
      {"\n", ""},
      {"cmd=create_kvs\n", "cmd=error rc=-1 msg=unknown_command\n"},
      {"cmd=finalize\n", "cmd=finalize_ack rc=0\n"},
      {"cmd=init pmi_version=1 pmi_subversion=1\n",
       "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"},
      {"cmd=get key=a\n", "cmd=get_result rc=0 value=1\n"},
  };
  Step step;
  step.universe_size = 16;
  step.appnums[0] = 2;
  step.given["PARENT_ROOT_PORT_NAME"] = "tag#0";
  Cluster cluster(kOneTask, step);
  for (const Row& row : rows) EXPECT_EQ(cluster.ask(0, row.question), row.answer) << row.question;
  EXPECT_THAT(cluster.events, testing::IsEmpty());
}

TEST(Lines, BytesMayBeCutAnywhere) {
  const std::string all =
      "cmd=init pmi_version=1 pmi_subversion=1\ncmd=put kvsname=12.0 key=a value=b\n"
      "mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=1\nendcmd\ncmd=barrier_in\n";
  Cluster whole(kOneTask);
  const std::string answers = whole.ask(0, all);
  EXPECT_THAT(answers, HasSubstr("barrier_out"));
  for (std::size_t at = 0; at <= all.size(); ++at) {
    Cluster cut(kOneTask);
    cut.send(0, all.substr(0, at));
    cut.send(0, all.substr(at));
    EXPECT_EQ(cut.got(0), answers) << at;
    EXPECT_EQ(cut.events, whole.events) << at;
  }
  Cluster bytes(kOneTask);
  for (const char c : all) bytes.send(0, {&c, 1});
  EXPECT_EQ(bytes.got(0), answers);
}

TEST(Lines, KeysGoToAllNodesWithTheFence) {
  Cluster cluster({{0, 1}, {2, 3}});
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    cluster.init(rank);
    cluster.ask(rank, fmt::format("cmd=put kvsname=12.0 key=k{0} value=v{0}\n", rank));
  }
  EXPECT_THAT(cluster.ask(1, "cmd=get key=k0\n"), HasSubstr("rc=-1")) << "not before the fence";
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(cluster.ask(rank, "cmd=barrier_in\n"), "");
  cluster.send(3, "cmd=barrier_in\n");
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(cluster.got(rank), "cmd=barrier_out rc=0\n");
    for (std::uint32_t other = 0; other < 4; ++other) {
      EXPECT_EQ(cluster.ask(rank, fmt::format("cmd=get kvsname=12.0 key=k{}\n", other)),
                fmt::format("cmd=get_result rc=0 value=v{}\n", other));
    }
  }
  // The next fence carries only what is new, and may change what was there.
  cluster.ask(2, "cmd=put key=k0 value=new\n");
  for (std::uint32_t rank = 0; rank < 4; ++rank) cluster.send(rank, "cmd=barrier_in\n");
  EXPECT_EQ(cluster.ask(0, "cmd=get key=k0\n"),
            "cmd=barrier_out rc=0\ncmd=get_result rc=0 value=new\n");
  EXPECT_EQ(cluster.fences, 2U);
}

TEST(Lines, WhatAClientCanPutItCanGet) {
  // Clients cut lines at 1024 bytes, in both directions.
  Cluster cluster(kOneTask);
  cluster.init(0);
  const std::string head = "cmd=put kvsname=12.0 key=k value=";
  const std::string put = head + std::string(1023 - head.size() - 1, 'x') + "\n";
  cluster.ask(0, put);
  EXPECT_LE(cluster.ask(0, "cmd=get kvsname=12.0 key=k\n").size(), 1023U);
}

TEST(Lines, NamesAreTheRootsBusiness) {
  Cluster cluster(kOneTask);
  cluster.init(0);
  cluster.send(0, "cmd=publish_name service=my sea port=tag#0$a b\n");
  cluster.send(0, "cmd=lookup_name service=my sea\n");
  cluster.send(0, "cmd=unpublish_name service=my sea\n");
  EXPECT_THAT(cluster.events, ElementsAre(Publish{1, 0, "my sea", "tag#0$a b"},
                                          Lookup{2, 0, "my sea"}, Unpublish{3, 0, "my sea"}));
  EXPECT_EQ(cluster.got(0), "");
  cluster.of(0).named(2, "tag#0$a");
  cluster.of(0).named(1, "");
  cluster.of(0).named(3, fail(Code::bad_value, "no"));
  cluster.of(0).named(3, "");   // it was answered
  cluster.of(0).named(99, "");  // nobody asked
  cluster.run();
  EXPECT_EQ(cluster.got(0),
            "cmd=lookup_result info=ok rc=0 port=tag#0$a\n"
            "cmd=publish_result info=ok rc=0\n"
            "cmd=unpublish_result info=failed rc=1\n");
  cluster.send(0, "cmd=lookup_name service=x\ncmd=publish_name service=x port=y\n");
  cluster.of(0).named(4, fail(Code::bad_value, "no"));
  cluster.of(0).named(5, fail(Code::bad_value, "no"));
  cluster.run();
  EXPECT_EQ(cluster.got(0),
            "cmd=lookup_result info=failed rc=1\ncmd=publish_result info=failed rc=1\n");
}

TEST(Lines, Spawn) {
  Cluster cluster(kOneTask);
  cluster.init(0);
  cluster.send(0,
               "mcmd=spawn\nnprocs=1\nexecname=/bin/a b\ntotspawns=2\nspawnssofar=1\narg1=x y\n"
               "arg2=b=c\nargcnt=2\npreput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\n"
               "preput_val_0=tag#0$\ninfo_num=2\ninfo_key_0=wdir\ninfo_val_0=/tmp\n"
               "info_key_1=host\ninfo_val_1=\nendcmd\n");
  EXPECT_TRUE(cluster.events.empty()) << "a second program was announced";
  cluster.send(0,
               "mcmd=spawn\nnprocs=3\nexecname=b\ntotspawns=2\nspawnssofar=2\nargcnt=0\n"
               "preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=tag#0$\n"
               "info_num=0\nendcmd\n");
  SpawnRequest request;
  request.ticket = 1;
  request.commands = {{{"/bin/a b", "x y", "b=c"}, 1, {{"wdir", "/tmp"}, {"host", ""}}},
                      {{"b"}, 3, {}}};
  request.given = {{"PARENT_ROOT_PORT_NAME", "tag#0$"}};
  EXPECT_THAT(cluster.events, ElementsAre(request));
  cluster.of(0).spawned(1, "12.1");
  cluster.run();
  EXPECT_EQ(cluster.got(0), "cmd=spawn_result rc=0\n");
  cluster.send(0, "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=1\nendcmd\n");
  cluster.of(0).named(2, "");  // it is no name
  cluster.send(0, "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=1\nendcmd\n");
  cluster.of(0).spawned(3, fail(Code::nodes_busy, "no"));
  cluster.run();
  EXPECT_EQ(cluster.got(0), "cmd=spawn_result rc=-1\n");
}

TEST(Lines, Abort) {
  Cluster cluster({{4, 7}, {0}});
  cluster.send(4, "cmd=abort exitcode=17\n");
  cluster.init(7);
  cluster.send(7, "cmd=abort exitcode=-1 error_msg=the sea = too deep\n");
  cluster.send(7, "cmd=abort\n");
  EXPECT_THAT(cluster.events,
              ElementsAre(Abort{4, 17, ""}, Abort{7, -1, "the sea = too deep"}, Abort{7, 1, ""}));
}

TEST(Lines, UsedAndFinalized) {
  Cluster cluster({{0, 1}});
  Server& server = cluster.of(0);
  EXPECT_FALSE(server.used(0));
  cluster.init(0);
  EXPECT_TRUE(server.used(0));
  EXPECT_FALSE(server.used(1));
  EXPECT_FALSE(server.finalized(0));
  cluster.send(0, "cmd=finalize\n");
  EXPECT_TRUE(server.finalized(0));
  cluster.init(0);
  EXPECT_FALSE(server.finalized(0));
  cluster.send(0, "cmd=finalize\n");
  cluster.close(0);
  EXPECT_TRUE(server.finalized(0));
  EXPECT_FALSE(server.used(99));
  EXPECT_FALSE(server.finalized(99));
}

TEST(Lines, WhatIsNoProtocolEndsTheConnection) {
  struct Row {
    const char* what;
    std::string bytes;
  };
  const Row rows[] = {
      {"no command", std::string(kInit) + "hello\n"},
      {"before init", "cmd=get_maxes\n"},
      {"spawn before init", "mcmd=spawn\n"},
      {"after finalize", std::string(kInit) + "cmd=finalize\ncmd=barrier_in\n"},
      {"two fences at once", std::string(kInit) + "cmd=barrier_in\ncmd=barrier_in\n"},
      {"a line without end", std::string(kMaxMessage + 1, 'x')},
      {"spawn of nothing", std::string(kInit) + "mcmd=spawn\nendcmd\n"},
      {"spawn without '='", std::string(kInit) + "mcmd=spawn\nnprocs\n"},
      {"spawn of many tasks", std::string(kInit) + "mcmd=spawn\nnprocs=99999999999\n"},
      {"spawn of no program", std::string(kInit) + "mcmd=spawn\ntotspawns=0\n"},
      {"spawn with half a pair", std::string(kInit) + "mcmd=spawn\npreput_val_0=x\n"},
      {"spawn with half an info", std::string(kInit) + "mcmd=spawn\ninfo_val_0=x\n"},
      {"another multi-line command", std::string(kInit) + "mcmd=other\n"},
  };
  for (const Row& row : rows) {
    Cluster cluster({{0}, {1}});
    cluster.send(0, row.bytes);
    ASSERT_EQ(cluster.events.size(), 1U) << row.what;
    const Misuse* misuse = std::get_if<Misuse>(&cluster.events[0]);
    ASSERT_NE(misuse, nullptr) << row.what;
    EXPECT_FALSE(misuse->what.empty());
    cluster.got(0);
    EXPECT_EQ(cluster.ask(0, kInit), "") << row.what;
    cluster.close(0);
    EXPECT_EQ(cluster.events.size(), 1U) << row.what;
  }
}

}  // namespace
}  // namespace berth::pmi
