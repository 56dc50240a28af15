// PMI-2: every command, attributes that are waited for, threads, and tasks of both versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pmi/limits.h"
#include "pmi/server_test_fixture.h"

namespace berth::pmi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The text of answers, without lengths.
std::string unframed(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t length = std::stoul(std::string(bytes.substr(0, 6)));
    out.append(bytes.substr(6, length)).append("\n");
    bytes.remove_prefix(6 + length);
  }
  return out;
}

TEST(Counted, InitTurnsALineIntoMessages) {
  Cluster cluster({{0, 1}, {2, 3}});
  EXPECT_EQ(cluster.ask(3, "cmd=init pmi_version=2 pmi_subversion=0\n"),
            "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n");
  EXPECT_EQ(
      unframed(cluster.ask(3, framed("cmd=fullinit;pmijobid=12.0;pmirank=3;threaded=FALSE;"))),
      "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=3;size=4;appnum=0;"
      "debugged=FALSE;pmiverbose=FALSE;\n");
  Step step;
  step.spawner = "11.0";
  step.appnums[0] = 1;
  Cluster child(kOneTask, step);
  child.init(0);
  EXPECT_THAT(child.ask(0, "cmd=init pmi_version=2 pmi_subversion=0\n" + framed("cmd=fullinit;")),
              HasSubstr("appnum=1;debugged=FALSE;pmiverbose=FALSE;spawner-jobid=11.0;"));
}

TEST(Counted, EveryQuestionHasItsAnswer) {
  struct Row {
    const char* question;
    const char* answer;
  };
  const Row rows[] = {
      {"cmd=job-getid;", "cmd=job-getid-response;rc=0;jobid=12.0;\n"},
      {"cmd=job-getid;thrid=0x7f;", "cmd=job-getid-response;thrid=0x7f;rc=0;jobid=12.0;\n"},
      {"cmd=info-getjobattr;key=PMI_process_mapping;",
       "cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,1,1));\n"},
      {"cmd=info-getjobattr;key=universeSize;",
       "cmd=info-getjobattr-response;rc=0;found=TRUE;value=1;\n"},
      {"cmd=info-getjobattr;key=given;", "cmd=info-getjobattr-response;rc=0;found=TRUE;value=x;\n"},
      {"cmd=info-getjobattr;key=hasNameServ;", "cmd=info-getjobattr-response;rc=0;found=FALSE;\n"},
      {"cmd=kvs-get;jobid=12.0;srcid=-1;key=a;", "cmd=kvs-get-response;rc=0;found=FALSE;\n"},
      {"cmd=kvs-put;key=a;value=1;;2;", "cmd=kvs-put-response;rc=0;\n"},
      {"cmd=kvs-put;value=1;", "cmd=kvs-put-response;rc=1;errmsg=bad_key;\n"},
      {"cmd=kvs-get;jobid=12.0;srcid=-1;key=a;",
       "cmd=kvs-get-response;rc=0;found=TRUE;value=1;;2;\n"},
      {"cmd=kvs-get;jobid=;key=a;", "cmd=kvs-get-response;rc=0;found=TRUE;value=1;;2;\n"},
      {"cmd=kvs-get;jobid=13.0;key=a;", "cmd=kvs-get-response;rc=0;found=FALSE;\n"},
      {"cmd=kvs-fence;thrid=1;", "cmd=kvs-fence-response;thrid=1;rc=0;\n"},
      {"cmd=info-getnodeattr;key=shm;wait=FALSE;",
       "cmd=info-getnodeattr-response;rc=0;found=FALSE;\n"},
      {"cmd=info-putnodeattr;key=shm;value=/dev/shm/x;", "cmd=info-putnodeattr-response;rc=0;\n"},
      {"cmd=info-getnodeattr;key=shm;",
       "cmd=info-getnodeattr-response;rc=0;found=TRUE;value=/dev/shm/x;\n"},
      {"cmd=info-putnodeattr;value=1;", "cmd=info-putnodeattr-response;rc=1;errmsg=too much;\n"},
      {"cmd=job-connect;jobid=1.0;", "cmd=job-connect-response;rc=1;errmsg=not supported;\n"},
      {"cmd=job-disconnect;jobid=1.0;", "cmd=job-disconnect-response;rc=1;errmsg=not supported;\n"},
      {"cmd=ring;thrid=2;", "cmd=ring-response;thrid=2;rc=1;errmsg=not supported;\n"},
      {"cmd=spawn;ncmds=2;subcmd=a;maxprocs=1;",
       "cmd=spawn-response;rc=1;errmsg=a spawn request has another number of programs than it "
       "says;\n"},
      {"cmd=finalize;", "cmd=finalize-response;rc=0;\n"},
  };
  Step step;
  step.given["given"] = "x";
  Cluster cluster(kOneTask, step);
  cluster.init2(0);
  for (const Row& row : rows) {
    EXPECT_EQ(unframed(cluster.ask(0, framed(row.question))), row.answer) << row.question;
  }
  EXPECT_TRUE(cluster.of(0).finalized(0));
  EXPECT_EQ(cluster.ask(0, "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get key=a\n"),
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
            "cmd=get_result rc=0 value=1;2\n");
  EXPECT_THAT(cluster.events, testing::IsEmpty());
}

TEST(Counted, BytesMayBeCutAnywhere) {
  const std::string all = "cmd=init pmi_version=2 pmi_subversion=0\n" + framed("cmd=fullinit;") +
                          framed("cmd=kvs-put;key=a;value=x;") + framed("cmd=finalize;") +
                          "cmd=init pmi_version=1 pmi_subversion=1\n";
  Cluster whole(kOneTask);
  const std::string answers = whole.ask(0, all);
  for (std::size_t at = 0; at <= all.size(); ++at) {
    Cluster cut(kOneTask);
    cut.send(0, all.substr(0, at));
    cut.send(0, all.substr(at));
    EXPECT_EQ(cut.got(0), answers) << at;
  }
  EXPECT_TRUE(whole.events.empty());
}

TEST(Counted, AttributesOfTheNodeAreWaitedFor) {
  Cluster cluster({{0, 1}, {2}});
  for (std::uint32_t rank = 0; rank < 3; ++rank) cluster.init2(rank);
  const std::string question = framed("cmd=info-getnodeattr;thrid=9;key=shm;wait=TRUE;");
  EXPECT_EQ(cluster.ask(0, question), "");
  EXPECT_EQ(cluster.ask(2, question), "");
  cluster.send(1, framed("cmd=info-putnodeattr;key=other;value=1;"));
  EXPECT_EQ(cluster.got(0), "");
  cluster.send(1, framed("cmd=info-putnodeattr;key=shm;value=a;;b;"));
  EXPECT_EQ(unframed(cluster.got(0)),
            "cmd=info-getnodeattr-response;thrid=9;rc=0;found=TRUE;value=a;;b;\n");
  EXPECT_EQ(cluster.got(2), "") << "another node";
}

TEST(Counted, AttributesOfTheJobComeWithAFence) {
  Cluster cluster({{0}, {1}});
  cluster.init2(0);
  cluster.init2(1);
  // Another thread waits while the first is at the fence.
  EXPECT_EQ(cluster.ask(0, framed("cmd=info-getjobattr;thrid=a;key=k;wait=TRUE;")), "");
  EXPECT_EQ(cluster.ask(0, framed("cmd=kvs-fence;thrid=b;")), "");
  cluster.send(1, framed("cmd=kvs-put;key=k;value=v;") + framed("cmd=kvs-fence;"));
  EXPECT_EQ(unframed(cluster.got(0)),
            "cmd=info-getjobattr-response;thrid=a;rc=0;found=TRUE;value=v;\n"
            "cmd=kvs-fence-response;thrid=b;rc=0;\n");
  EXPECT_EQ(cluster.ask(0, framed("cmd=info-getjobattr;key=own;wait=TRUE;")), "");
  EXPECT_THAT(unframed(cluster.ask(0, framed("cmd=kvs-put;key=own;value=w;"))),
              HasSubstr("found=TRUE;value=w;"));
}

TEST(Counted, NamesAndSpawn) {
  Cluster cluster(kOneTask);
  cluster.init2(0);
  cluster.send(0, framed("cmd=name-publish;thrid=1;name=sea;port=tag#0;;x;infokeycount=0;"));
  cluster.send(0, framed("cmd=name-lookup;thrid=2;name=sea;infokeycount=0;"));
  cluster.send(0, framed("cmd=name-unpublish;name=sea;infokeycount=0;"));
  cluster.send(0, framed("cmd=name-lookup;name=no;"));
  cluster.send(0, framed("cmd=spawn;thrid=3;ncmds=2;preputcount=1;ppkey0=K;ppval0=a;;b;subcmd=p;"
                         "maxprocs=2;argc=2;argv0=x;argv1=-y;infokeycount=1;infokey0=wdir;"
                         "infoval0=/tmp;subcmd=q;maxprocs=1;argc=0;"));
  cluster.send(0, framed("cmd=spawn;ncmds=1;subcmd=q;maxprocs=1;"));
  SpawnRequest both;
  both.ticket = 5;
  both.commands = {{{"p", "x", "-y"}, 2, {{"wdir", "/tmp"}}}, {{"q"}, 1, {}}};
  both.given = {{"K", "a;b"}};
  SpawnRequest one;
  one.ticket = 6;
  one.commands = {{{"q"}, 1, {}}};
  EXPECT_THAT(cluster.events, ElementsAre(Publish{1, 0, "sea", "tag#0;x"}, Lookup{2, 0, "sea"},
                                          Unpublish{3, 0, "sea"}, Lookup{4, 0, "no"}, both, one));
  EXPECT_EQ(cluster.got(0), "");
  cluster.of(0).named(1, "");
  cluster.of(0).named(2, "tag#0;x");
  cluster.of(0).named(3, fail(Code::bad_value, "no"));
  cluster.of(0).named(4, fail(Code::bad_value, "no"));
  cluster.of(0).spawned(5, "12.1");
  cluster.of(0).spawned(6, fail(Code::nodes_busy, "no room"));
  cluster.run();
  EXPECT_EQ(unframed(cluster.got(0)),
            "cmd=name-publish-response;thrid=1;rc=0;\n"
            "cmd=name-lookup-response;thrid=2;rc=0;found=TRUE;port=tag#0;;x;value=tag#0;;x;\n"
            "cmd=name-unpublish-response;rc=1;\n"
            "cmd=name-lookup-response;rc=1;found=FALSE;\n"
            "cmd=spawn-response;thrid=3;rc=0;jobid=12.1;nerrs=0;\n"
            "cmd=spawn-response;rc=1;errmsg=no room;\n");
}

TEST(Counted, Abort) {
  Cluster cluster(kOneTask);
  cluster.init2(0);
  cluster.send(0, framed("cmd=abort;isworld=TRUE;msg=too; deep"));
  cluster.events.clear();
  cluster.send(0, framed("cmd=abort;isworld=TRUE;msg=too;; deep;exitcode=9;"));
  EXPECT_TRUE(cluster.events.empty()) << "the first one ended the connection";
  Cluster other(kOneTask);
  other.init2(0);
  other.send(0, framed("cmd=abort;isworld=TRUE;msg=too;; deep;exitcode=9;"));
  other.send(0, framed("cmd=abort;isworld=TRUE;msg=;"));
  EXPECT_THAT(other.events, ElementsAre(Abort{0, 9, "too; deep"}, Abort{0, 1, ""}));
}

TEST(Counted, TasksOfBothVersionsMeet) {
  Cluster cluster({{0}, {1}});
  cluster.init(0);
  cluster.init2(1);
  cluster.send(0, "cmd=put key=a value=1\ncmd=barrier_in\n");
  cluster.send(1, framed("cmd=kvs-put;key=b;value=2\n3;") + framed("cmd=kvs-fence;"));
  cluster.got(0);
  cluster.got(1);
  EXPECT_EQ(unframed(cluster.ask(1, framed("cmd=kvs-get;key=a;"))),
            "cmd=kvs-get-response;rc=0;found=TRUE;value=1;\n");
  EXPECT_THAT(cluster.ask(0, "cmd=get key=b\n"), HasSubstr("rc=-1")) << "no line can say it";
}

TEST(Counted, WhatIsNoProtocolEndsTheConnection) {
  std::string waiting;
  for (std::size_t i = 0; i <= kMaxOutstanding; ++i) {
    waiting += framed("cmd=info-getnodeattr;key=x;wait=TRUE;");
  }
  std::string names;
  for (std::size_t i = 0; i <= kMaxOutstanding; ++i) names += framed("cmd=name-lookup;name=x;");
  const std::string rows[] = {"cmd=ab",
                              "999999",
                              framed("job-getid"),
                              framed("key=a;"),
                              framed("cmd=kvs-fence;") + framed("cmd=kvs-fence;"),
                              waiting,
                              names};
  for (const std::string& row : rows) {
    Cluster cluster({{0}, {1}});
    cluster.init2(0);
    cluster.send(0, row);
    ASSERT_FALSE(cluster.events.empty()) << row.substr(0, 60);
    EXPECT_TRUE(std::holds_alternative<Misuse>(cluster.events.back())) << row.substr(0, 60);
  }
}

}  // namespace
}  // namespace berth::pmi
