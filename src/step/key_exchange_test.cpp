// Tasks that speak PMI, with the test as srun: who is where is asked for once, exchanges go up and
// come down.
#include <gmock/gmock.h>

#include <sstream>

#include "step/supervisor_test_fixture.h"

namespace berth::step {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A task in bash that speaks PMI-1 by hand: ask TEXT says it and prints the answer.
constexpr const char* kSpeak = R"(
ask() { printf '%s\n' "$1" >&$PMI_FD; read -r answer <&$PMI_FD; echo "$answer"; }
ask 'cmd=init pmi_version=1 pmi_subversion=1'
)";

class KeyExchangeTest : public SupervisorTest {
 protected:
  void SetUp() override {
    SupervisorTest::SetUp();
    on_frame_ = [this](const wire::Frame& frame) { take(frame); };
  }
  void speak(const std::string& text) {
    program().clear_argv();
    for (const std::string& word : {std::string("bash"), std::string("-c"), kSpeak + text}) {
      program().add_argv(word);
    }
  }
  /// What another node has put is added to what comes from this one.
  void take(const wire::Frame& frame) {
    if (frame.kind == wire::Kind::AskLayout) {
      ++asked_;
      wire::StepLayout layout;
      for (const char* name : {"n0", "n1"}) {
        wire::NodeRanks& node = *layout.add_nodes();
        node.set_name(name);
        const std::uint32_t first = layout.nodes_size() == 1 ? 0 : 2;
        for (std::uint32_t i = 0; i < 2; ++i) node.add_ranks(first + i);
      }
      layout.set_universe(4);
      wire::Variable& given = *layout.add_given();
      given.set_name("given");
      given.set_value("by the spawner");
      client_->send(layout);
    } else if (frame.kind == wire::Kind::Exchange) {
      auto exchange = *wire::decode<wire::Exchange>(frame.payload);
      parts_.push_back(exchange);
      exchange.set_nodes(2);
      client_->send(exchange);
    } else if (frame.kind == wire::Kind::AbortStep) {
      abort_ = wire::decode<wire::AbortStep>(frame.payload);
      wire::SignalTasks end;
      end.set_signal(SIGTERM);
      client_->send(end);
    } else if (frame.kind == wire::Kind::Errand) {
      auto errand = *wire::decode<wire::Errand>(frame.payload);
      errands_.push_back(errand.data());
      errand.set_to(errand.from());
      errand.set_answer(true);
      errand.set_data("+a port");
      client_->send(errand);
    }
    client_->flush();
  }

  int asked_ = 0;
  std::vector<wire::Exchange> parts_;
  std::optional<wire::AbortStep> abort_;
  std::vector<std::string> errands_;
};

TEST_F(KeyExchangeTest, TasksMeetByPmi) {
  tasks(2);
  spec_.set_ntasks(4);
  spec_.set_node_count(2);
  speak(R"x(
ask "cmd=put kvsname=5.0 key=k$PMI_RANK value=v$PMI_RANK"
ask 'cmd=barrier_in'
ask "cmd=get kvsname=5.0 key=k$((1 - PMI_RANK))"
ask 'cmd=get kvsname=5.0 key=PMI_process_mapping'
ask 'cmd=finalize'
)x");
  run();
  EXPECT_EQ(asked_, 1);
  ASSERT_EQ(parts_.size(), 1U);
  EXPECT_EQ(parts_[0].channel(), "pmi");
  EXPECT_EQ(parts_[0].number(), 1U);
  EXPECT_EQ(parts_[0].nodes(), 1U);
  EXPECT_THAT(out_[0], HasSubstr("value=v1"));
  EXPECT_THAT(out_[1], HasSubstr("value=v0"));
  EXPECT_THAT(out_[0], HasSubstr("value=(vector,(0,2,2))"));
  EXPECT_THAT(out_[1], HasSubstr("cmd=finalize_ack"));
}

TEST_F(KeyExchangeTest, AStepThatDoesNotSpeakCostsNothing) {
  tasks(2);
  shell("echo $PMI_RANK.$PMI_SIZE.$PMI_JOBID");
  run();
  EXPECT_EQ(out_[1], "1.2.5.0\n");
  EXPECT_EQ(asked_, 0);
}

TEST_F(KeyExchangeTest, AbortIsTheStatusOfItsTask) {
  speak("ask 'cmd=abort exitcode=9'; sleep 100");
  run();
  ASSERT_TRUE(abort_);
  EXPECT_EQ(abort_->rank(), 0U);
  EXPECT_EQ(abort_->code(), 9);
  EXPECT_EQ(status_of(0), 9 << 8);  // although it was ended before it could exit
}

TEST_F(KeyExchangeTest, NamesArePublishedAtTheRoot) {
  speak("ask 'cmd=lookup_name service=ocean'");
  run();
  ASSERT_EQ(errands_.size(), 1U);
  EXPECT_EQ(errands_[0], "?ocean");
  EXPECT_THAT(out_[0], HasSubstr("port=a port"));
}

TEST_F(KeyExchangeTest, TheRootStartsWhatTasksAskFor) {
  speak(R"x(
printf 'mcmd=spawn\nnprocs=2\nexecname=./more\narg1=x y\npreput_key_0=k\npreput_val_0=v\n' >&$PMI_FD
printf 'info_key_0=host\ninfo_val_0=n2\n' >&$PMI_FD
ask 'endcmd'
echo "spawned ${PMI_SPAWNED:-no}")x");
  run();
  ASSERT_EQ(errands_.size(), 1U);
  const auto asked = wire::decode<wire::SpawnTasks>(errands_[0]);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->spawner(), "5.0");
  ASSERT_EQ(asked->programs_size(), 1);
  EXPECT_EQ(asked->programs(0).tasks(), 2U);
  EXPECT_THAT(asked->programs(0).argv(), testing::ElementsAre("./more", "x y"));
  EXPECT_EQ(asked->programs(0).info(0).value(), "n2");
  EXPECT_EQ(asked->given(0).name(), "k");
  EXPECT_THAT(out_[0], HasSubstr("cmd=spawn_result rc=0"));
  EXPECT_THAT(out_[0], HasSubstr("spawned no"));
}

TEST_F(KeyExchangeTest, WhoWasSpawnedKnowsAndFindsItsKeys) {
  program().set_spawned(true);
  speak("echo spawned $PMI_SPAWNED\nask 'cmd=get key=given'");
  run();
  EXPECT_THAT(out_[0], HasSubstr("spawned 1"));
  EXPECT_THAT(out_[0], HasSubstr("rc=0 value=by the spawner"));
}

TEST_F(KeyExchangeTest, NonsenseEndsTheConnectionNotTheStep) {
  speak("head -c 300000 /dev/zero | tr '\\0' x >&$PMI_FD; echo still here");
  run();
  EXPECT_THAT(out_[0], HasSubstr("still here"));
  EXPECT_EQ(WEXITSTATUS(status_of(0)), 0);
  ASSERT_FALSE(lines_.empty());
  EXPECT_THAT(lines_[0], HasSubstr("task 0 broke the PMI protocol"));
}

TEST_F(KeyExchangeTest, WhatWasAskedForIsServedAndNothingElse) {
  struct Row {
    const char* mpi;
    bool helper;
    const char* seen;
  };
  // An outer step's variables are gone in any case.
  for (const Row& row : std::initializer_list<Row>{{"", true, "fd=40 uri=berth"},
                                                   {"", false, "fd=40 uri="},
                                                   {"none", true, "fd= uri="},
                                                   {"pmi2", true, "fd=40 uri="},
                                                   {"pmix", true, "fd= uri=berth"}}) {
    SetUp();
    variable("PMI_FD", "9");
    variable("PMIX_SERVER_URI41", "outer");
    variable("PMIX_MCA_gds", "hash");  // the user's own
    program().set_mpi(row.mpi);
    order_.set_pmix_helper(row.helper ? "/bin/true" : "");
    shell("echo fd=$PMI_FD uri=${PMIX_SERVER_URI41%%.*} $PMIX_MCA_gds");
    out_.clear();
    ended_.reset();
    done_.reset();
    run();
    EXPECT_EQ(out_[0], std::string(row.seen) + " hash\n") << row.mpi;
    std::filesystem::remove_all(directory_);
    spec_.Clear();
    order_.Clear();
  }
}

TEST_F(KeyExchangeTest, PmixThatIsNotThereIsRefused) {
  program().set_mpi("pmix");
  shell("echo never");
  start();
  ASSERT_TRUE(until([&] { return reply_.has_value(); }));
  ASSERT_TRUE(reply_->has_refusal());
  EXPECT_THAT(reply_->refusal().lines(0).text(), HasSubstr("PMIx is not installed on this node"));
  finish();
  EXPECT_THAT(out_[0], Not(HasSubstr("never")));
}

TEST_F(KeyExchangeTest, InputThatComesBeforeTheTasksIsReadUpToALimit) {
  program().set_mpi("pmix");  // the supervisor asks its client for the layout first
  order_.set_pmix_helper("/bin/true");
  shell("cat");
  start();
  ASSERT_TRUE(eventually([&] {
    client_->read();
    const auto frame = client_->next();
    return frame && frame->kind == wire::Kind::AskLayout;
  }));
  wire::Input in;
  in.set_data(std::string(1 << 20, 'x'));
  const std::string frame = wire::framed(in);
  constexpr std::size_t kMuch = std::size_t{64} << 20;
  std::size_t sent = 0;
  while (sent < kMuch) {
    pollfd ready{client_->fd(), POLLOUT, 0};
    if (::poll(&ready, 1, 1000) == 0) break;  // it is not read any more
    const std::string_view rest = std::string_view(frame).substr(sent % frame.size());
    const ssize_t n = ::send(client_->fd(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<std::size_t>(n);
  }
  EXPECT_GT(sent, std::size_t{16} << 20);
  EXPECT_LT(sent, std::size_t{24} << 20);
}

TEST_F(KeyExchangeTest, AScriptIsNoRank) {
  batch("#!/bin/sh\necho fd=$PMI_FD rank=$RANK\n");
  spec_.clear_master();
  run();
  EXPECT_EQ(file("slurm-5.out"), "fd= rank=\n");
}

TEST_F(KeyExchangeTest, MuchThatNobodyReadsIsNotHeld) {
  // Thousands of questions in one breath, each with a long answer, by a task that does not read.
  speak(R"x(
value=$(head -c 60000 /dev/zero | tr '\0' v)
ask "cmd=put kvsname=5.0 key=k value=$value" > /dev/null
for i in $(seq 2000); do echo 'cmd=get kvsname=5.0 key=k'; done >&$PMI_FD &  # until it is not read from
sleep 1
grep VmHWM /proc/$PPID/status
)x");
  run();
  const std::size_t at = out_[0].find("VmHWM:");
  ASSERT_NE(at, std::string::npos) << out_[0];
  EXPECT_LT(std::stoul(out_[0].substr(at + 6)), 100'000U);  // kB
}

TEST_F(KeyExchangeTest, WhatOneStepSaysIsNotTheNextOnes) {
  spec_.set_master("n0");
  spec_.set_port(20000);
  spec_.set_ports(1);
  spec_.set_node_count(2);
  spec_.set_ntasks(2);
  struct Row {
    const char* given;  // of the outer step: what it said, and what is there now
    const char* seen;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"", "20000 0 2"},
           {"BERTH_RENDEZVOUS=MASTER_PORT=7,RANK=5 MASTER_PORT=7 RANK=5", "20000 0 2"},
           {"BERTH_RENDEZVOUS=MASTER_PORT=7,RANK=5 MASTER_PORT=8 RANK=5", "8 0 2"},
           {"MASTER_PORT=9", "9 0 2"},
       }) {
    program().clear_environment();
    variable("PATH", "/usr/bin:/bin");
    std::istringstream words(row.given);
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      variable(word.substr(0, equals), word.substr(equals + 1));
    }
    shell("echo $MASTER_PORT $RANK $PET_NNODES");
    out_.clear();
    ended_.reset();
    done_.reset();
    run();
    EXPECT_EQ(out_[0], std::string(row.seen) + "\n") << row.given;
    std::filesystem::remove(directory_ + "/step");
  }
  program().add_argv("--standalone");
  out_.clear();
  ended_.reset();
  done_.reset();
  run();
  EXPECT_EQ(out_[0], "9 0\n");  // a torchrun that is to be alone
}

}  // namespace
}  // namespace berth::step
