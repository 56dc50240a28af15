// Steps as a client and an agent see them.
#include <gmock/gmock.h>

#include <algorithm>

#include "step/launch_failure.h"
#include "step/lease_file.h"
#include "step/supervisor_test_fixture.h"

namespace berth::step {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

TEST_F(SupervisorTest, OutputAndExitCodes) {
  tasks(3);
  shell("echo out $SLURM_PROCID; echo err >&2; exit $SLURM_PROCID");
  run();
  EXPECT_EQ(out_[2], "out 2\n");
  EXPECT_EQ(err_[1], "err\n");
  EXPECT_EQ(WEXITSTATUS(status_of(0)), 0);
  EXPECT_EQ(WEXITSTATUS(status_of(2)), 2);
  EXPECT_EQ(reply_->ranks_size(), 3);
  EXPECT_GT(ended_->usage().max_rss_kb(), 0U);
}

TEST_F(SupervisorTest, OutputThatEndsWithinALineIsNotLost) {
  shell("printf abc");
  run();
  EXPECT_EQ(out_[0], "abc");
}

TEST_F(SupervisorTest, MuchOutputArrivesWhole) {
  shell("head -c 5000000 /dev/zero | tr '\\0' x");
  run();
  EXPECT_EQ(out_[0].size(), 5'000'000U);
}

TEST_F(SupervisorTest, EnvironmentOfATask) {
  variable("KEPT", "yes");
  variable("DROPPED", "no");
  spec_.add_unset("DROPPED");
  spec_.mutable_tasks(0)->set_cpus("0-3,8");
  wire::Variable& own = *spec_.mutable_tasks(0)->add_variables();
  own.set_name("SLURM_LOCALID");
  own.set_value("7");
  shell(
      "echo $KEPT.$DROPPED.$SLURM_LOCALID.$SLURM_GTIDS.$SLURMD_NODENAME.$BERTH_TASK_CPUS; "
      "[ $SLURM_TASK_PID = $$ ] && umask");
  program().set_umask(0027);
  run();
  EXPECT_EQ(out_[0], "yes..7.0.n0.0x10f\n0027\n");
}

TEST_F(SupervisorTest, InputGoesToAllTasksOrToOne) {
  tasks(2);
  shell("cat");
  start();
  input("both\n", false);
  wire::Input one;
  one.set_rank(1);
  one.set_data("one\n");
  client_->send(one);
  input("", true);
  finish();
  EXPECT_EQ(out_[0], "both\n");
  EXPECT_EQ(out_[1], "both\none\n");
}

TEST_F(SupervisorTest, OnlyTheChosenTaskTalksToTheClient) {
  tasks(2);
  program().mutable_stdin()->set_kind("none");
  program().mutable_stdout()->set_kind("task");
  program().mutable_stdout()->set_rank(1);
  shell("cat; echo $SLURM_PROCID");
  run();
  EXPECT_EQ(out_[0], "");
  EXPECT_EQ(out_[1], "1\n");
}

TEST_F(SupervisorTest, TerminalOfTaskZero) {
  program().set_pty(true);
  program().set_rows(24);
  program().set_columns(81);
  shell("test -t 0 && test -t 2 && stty size; read x; echo got $x");
  start();
  input("hello\n", false);
  finish();
  EXPECT_THAT(out_[0], HasSubstr("24 81\r\n"));
  EXPECT_THAT(out_[0], HasSubstr("got hello\r\n"));
}

TEST_F(SupervisorTest, UnbufferedMakesStandardOutputATerminalWithoutCarriageReturns) {
  program().set_unbuffered(true);
  shell("test -t 1 && echo yes");
  run();
  EXPECT_EQ(out_[0], "yes\n");
}

TEST_F(SupervisorTest, ProgramsThatCannotBeStarted) {
  tasks(3);
  ::mkdir((directory_ + "/folder").c_str(), 0755);
  const char* words[] = {"nosuchcommand", "./missing", "./folder"};
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    wire::ProgramOf& own = *program().add_multi_prog();
    own.set_rank(rank);
    own.add_argv(words[rank]);
  }
  run();
  EXPECT_EQ(err_[0], "slurmstepd: error: execve(): nosuchcommand: No such file or directory\n");
  EXPECT_EQ(err_[1], "slurmstepd: error: execve(): " + directory_ +
                         "/./missing: No such file or directory\n");
  EXPECT_EQ(err_[2],
            "slurmstepd: error: execve(): " + directory_ + "/./folder: Permission denied\n");
  EXPECT_EQ(WEXITSTATUS(status_of(0)), 2);
  EXPECT_EQ(WEXITSTATUS(status_of(1)), 2);
  EXPECT_EQ(WEXITSTATUS(status_of(2)), 13);
}

TEST_F(SupervisorTest, WithoutPathNothingIsFound) {
  program().clear_environment();
  shell("true");
  run();
  EXPECT_EQ(err_[0], "slurmstepd: error: execve(): sh: No such file or directory\n");
}

TEST_F(SupervisorTest, MissingDirectoryFallsBackToTmp) {
  program().set_directory("/nonexistent");
  shell("pwd");
  run();
  const std::string line =
      "couldn't chdir to `/nonexistent': No such file or directory: going to /tmp instead";
  EXPECT_EQ(out_[0], "/tmp\n");
  EXPECT_THAT(lines_, ElementsAre(line));
  EXPECT_EQ(err_[0], "slurmstepd: error: " + line + "\n");
}

TEST_F(SupervisorTest, FilesByPatternWithLabelsAndMissingDirectories) {
  tasks(2);
  program().mutable_stdout()->set_kind("file");
  program().mutable_stdout()->set_pattern("logs/%j.%s.%t");
  program().mutable_stderr()->set_kind("file");
  program().mutable_stderr()->set_pattern("all.%N");
  program().set_label(true);
  shell("echo out; echo err >&2");
  run();
  EXPECT_EQ(file("logs/5.0.1"), "1: out\n");
  EXPECT_THAT(file("all.n0"), MatchesRegex("(0: err\n1: err\n)|(1: err\n0: err\n)"));
}

TEST_F(SupervisorTest, AFileThatCannotBeOpenedIsARefusal) {
  program().mutable_stdout()->set_kind("file");
  program().mutable_stdout()->set_pattern("/proc/none/x");
  shell("touch ran");
  run();
  ASSERT_TRUE(reply_ && reply_->has_refusal());
  EXPECT_THAT(reply_->refusal().lines(0).text(), HasSubstr("/proc/none/x"));
  EXPECT_EQ(file("ran"), "(no file ran)");
}

TEST_F(SupervisorTest, BatchScriptWritesItsFileAndKeepsItsArguments) {
  batch("#!/bin/sh\necho $1; echo err >&2; exit 3\n");
  program().add_argv("job.sh");
  program().add_argv("two words");
  run();
  EXPECT_EQ(file("slurm-5.out"), "two words\nerr\n");
  EXPECT_EQ(WEXITSTATUS(status_of(0)), 3);
}

TEST_F(SupervisorTest, BatchScriptWithoutItsDirectoryDoesNotStart) {
  batch("#!/bin/sh\ntrue\n");
  program().set_directory("/nonexistent");
  run();
  EXPECT_THAT(ended_->trouble(), HasSubstr("No such file or directory"));
  EXPECT_EQ(ended_->statuses_size(), 0);
}

TEST_F(SupervisorTest, WhatTheJobBringsAlongIsNotTheNodesFault) {
  batch("#!/bin/sh\ntrue\n");
  program().set_directory("/nonexistent");
  const auto began = std::chrono::steady_clock::now();
  run();
  EXPECT_FALSE(ended_->node_unfit());
  EXPECT_LT(std::chrono::steady_clock::now() - began, kTryAgainAfter);
}

TEST_F(SupervisorTest, ARecordThatCannotBeWrittenIsTheNodesFaultAfterASecondTry) {
  std::filesystem::create_symlink("/dev/full", directory_ + "/step");
  shell("touch ran");
  const auto began = std::chrono::steady_clock::now();
  run();
  EXPECT_GE(std::chrono::steady_clock::now() - began, kTryAgainAfter);
  EXPECT_TRUE(ended_->node_unfit());
  EXPECT_EQ(ended_->statuses_size(), 0);
  EXPECT_EQ(ended_->trouble(),
            "launch failed twice: " + directory_ + "/step: No space left on device");
  EXPECT_EQ(reply_->refusal().code(), "node_unfit");
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/ran"));
}

TEST_F(SupervisorTest, AScriptThatCannotBeCopiedIsTriedOnceMore) {
  ASSERT_TRUE(write_file(directory_ + "/step.d", ""));
  batch("#!/bin/sh\necho ran >> ran\n");
  start();
  // It has failed when the agent's question is answered: the launch comes before it.
  (void)measure();
  std::filesystem::remove(directory_ + "/step.d");
  finish();
  EXPECT_FALSE(ended_->node_unfit());
  EXPECT_EQ(file("ran"), "ran\n");
}

TEST_F(SupervisorTest, AnEndDoesNotWaitForTheSecondTry) {
  ASSERT_TRUE(write_file(directory_ + "/step.d", ""));
  batch("#!/bin/sh\ntouch ran\n");
  end_with_order_.emplace();
  run();
  EXPECT_FALSE(ended_->node_unfit());
  EXPECT_EQ(ended_->trouble(), "the step was ended");
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/ran"));
}

TEST_F(SupervisorTest, NothingOutlivesTheStep) {
  // Twice forked, in a session of its own, deaf to everything but SIGKILL, with the output open.
  shell(
      "sh -c 'setsid sh -c \"trap : TERM HUP; echo \\$\\$ > leftover; "
      "while :; do sleep 1; done\" &' ; while [ ! -s leftover ]; do sleep 0.01; done; echo end");
  run();
  EXPECT_EQ(out_[0], "end\n");
  const pid_t pid = std::stoi(file("leftover"));
  EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }));
}

TEST_F(SupervisorTest, EndedStepSaysWhyAndIsTerminatedThenKilled) {
  order_.set_kill_wait_seconds(1);
  shell("trap 'echo term' TERM; echo up; while :; do sleep 0.05; done");
  start();
  ASSERT_TRUE(until([&] { return out_[0] == "up\n"; }));
  wire::SuperviseEnd end;
  end.set_cause("TIME LIMIT");
  agent_->send(end);
  agent_->flush();
  finish();
  EXPECT_EQ(WTERMSIG(status_of(0)), SIGKILL);
  EXPECT_THAT(out_[0], HasSubstr("term\n"));
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_THAT(lines_[0], MatchesRegex("\\*\\*\\* STEP 5.0 ON n0 CANCELLED AT "
                                      "[0-9]+-[0-9]+-[0-9]+T[0-9:]+ DUE TO TIME LIMIT \\*\\*\\*"));
  EXPECT_EQ(ended_->cause(), "TIME LIMIT");
}

TEST_F(SupervisorTest, LinesForABatchJobAreInItsOutput) {
  batch("#!/bin/sh\necho up\nsleep 1000\n");
  start();
  ASSERT_TRUE(eventually([&] { return file("slurm-5.out") == "up\n"; }));
  wire::SuperviseSay say;
  say.set_line("the GPU is ill");
  agent_->send(say);
  say.set_line("berth: a hint");
  say.set_as_it_is(true);
  agent_->send(say);
  wire::SuperviseEnd end;
  end.set_now(true);
  agent_->send(end);
  agent_->flush();
  finish();
  EXPECT_EQ(file("slurm-5.out"), "up\nslurmstepd: error: the GPU is ill\nberth: a hint\n");
}

TEST_F(SupervisorTest, CancelledBatchJobIsToldInItsOutput) {
  batch("#!/bin/sh\necho up\nsleep 1000\n");
  start();
  ASSERT_TRUE(eventually([&] { return file("slurm-5.out") == "up\n"; }));
  wire::SuperviseEnd end;
  end.set_cause("SIGNAL");
  agent_->send(end);
  agent_->flush();
  finish();
  EXPECT_EQ(WTERMSIG(status_of(0)), SIGTERM);
  EXPECT_THAT(file("slurm-5.out"),
              MatchesRegex("up\nslurmstepd: error: \\*\\*\\* JOB 5 ON n0 CANCELLED AT [^ ]+ DUE to "
                           "SIGNAL Terminated \\*\\*\\*\n"));
}

TEST_F(SupervisorTest, AnEndThatComesWithTheOrderIsNotLost) {
  batch("#!/bin/sh\nsleep 1000\n");
  end_with_order_.emplace();
  end_with_order_->set_cause("SIGNAL");
  start();
  finish();
  EXPECT_EQ(WTERMSIG(status_of(0)), SIGTERM);
  EXPECT_EQ(ended_->cause(), "SIGNAL");
}

/// A pipe that somebody has opened to read, and does not read.
Fd unread_pipe(const std::string& path) {
  EXPECT_EQ(::mkfifo(path.c_str(), 0666), 0);
  return Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

TEST_F(SupervisorTest, NothingIsStartedUnderALeaseThatIsOver) {
  std::filesystem::create_directory(directory_ + "/n0");
  order_.set_step_directory(directory_ + "/n0/step");
  ASSERT_TRUE(write_lease_file(directory_ + "/lease", BootTime(1)));
  spec_.set_lease_seconds(1);
  batch("#!/bin/sh\ntouch " + directory_ + "/began\n");
  run();
  EXPECT_EQ(ended_->ranks_size(), 0);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/began"));
}

TEST_F(SupervisorTest, AnEndDoesNotWaitForAPipeThatNobodyReads) {
  batch("#!/bin/sh\necho up >&2\necho $$ >pid\nhead -c 1000000 /dev/zero\nsleep 1000\n");
  const Fd reader = unread_pipe(directory_ + "/slurm-5.out");
  start();
  ASSERT_TRUE(eventually([&] { return file("pid").ends_with('\n'); }));
  wire::SuperviseEnd end;
  end.set_cause("TIME LIMIT");
  agent_->send(end);
  agent_->flush();
  finish();
  EXPECT_EQ(WTERMSIG(status_of(0)), SIGTERM);
}

TEST_F(SupervisorTest, LabelledOutputWaitsForItsReaderAndArrivesWhole) {
  tasks(2);
  program().set_label(true);
  program().mutable_stdout()->set_kind("file");
  program().mutable_stdout()->set_pattern("pipe");
  shell("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo done$SLURM_PROCID >&2; exit 3");
  const Fd reader = unread_pipe(directory_ + "/pipe");
  start();
  // It answers although its output stands still.
  ASSERT_TRUE(until([&] { return reply_.has_value(); }));
  measure();
  std::size_t seen = 0;
  ASSERT_TRUE(eventually([&] {
    char buffer[65536];
    for (ssize_t n = 0; (n = ::read(reader.get(), buffer, sizeof buffer)) > 0;) {
      seen += static_cast<std::size_t>(std::count(buffer, buffer + n, 'x'));
    }
    return seen == 6'000'000;
  }));
  finish();
  EXPECT_EQ(WEXITSTATUS(status_of(1)), 3);
}

TEST_F(SupervisorTest, LabelledOutputThatNobodyReadsHoldsUpNoEnd) {
  program().set_label(true);
  program().mutable_stdout()->set_kind("file");
  program().mutable_stdout()->set_pattern("pipe");
  shell("echo up >&2; exec head -c 100000000 /dev/zero");
  const Fd reader = unread_pipe(directory_ + "/pipe");
  start();
  ASSERT_TRUE(until([&] { return reply_.has_value(); }));
  order_.set_kill_wait_seconds(600);
  wire::SuperviseEnd end;
  end.set_now(true);
  agent_->send(end);
  agent_->flush();
  finish();
  EXPECT_EQ(WTERMSIG(status_of(0)), SIGKILL);
}

TEST_F(SupervisorTest, WhatGoesOnWritingHoldsUpNothing) {
  shell("yes & exit 4");
  start();
  ASSERT_TRUE(until([&] { return reply_.has_value(); }));
  finish();
  EXPECT_EQ(WEXITSTATUS(status_of(0)), 4);
}

TEST_F(SupervisorTest, WordsBeforeTheProgramGoToAFullPipeToo) {
  program().set_cpu_bind_report("verbose");
  spec_.mutable_tasks(0)->set_cpus("0");
  program().mutable_stderr()->set_kind("file");
  program().mutable_stderr()->set_pattern("full");
  const Fd reader = unread_pipe(directory_ + "/full");
  const Fd writer(::open((directory_ + "/full").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string much(1 << 16, 'x');
  while (::write(writer.get(), much.data(), much.size()) > 0) {
  }
  shell("true");
  start();
  ASSERT_TRUE(until([&] { return reply_.has_value(); }));
  wire::SuperviseEnd end;
  end.set_now(true);
  agent_->send(end);
  agent_->flush();
  finish();
  EXPECT_EQ(WTERMSIG(status_of(0)), SIGKILL);
}

TEST_F(SupervisorTest, ClientThatVanishesEndsTheStep) {
  shell("echo up; sleep 1000");
  start();
  ASSERT_TRUE(until([&] { return out_[0] == "up\n"; }));
  client_->close();
  order_.set_has_client(false);
  finish();
  EXPECT_EQ(WTERMSIG(status_of(0)), SIGTERM);
}

TEST_F(SupervisorTest, AgentThatVanishesLeavesTheStepAloneAndAnotherFindsIt) {
  shell("echo up; cat");
  start();
  ASSERT_TRUE(until([&] { return out_[0] == "up\n"; }));
  agent_->close();
  Fd control;
  ASSERT_TRUE(eventually([&] {
    control = connect_in(directory_of(order_.step_directory()), kControlSocket);
    return static_cast<bool>(control);
  }));
  agent_ = std::make_unique<Peer>(std::move(control));
  input("still here\n", true);
  finish();
  EXPECT_EQ(out_[0], "up\nstill here\n");
  const StepRecord kept = read_step_record(order_.step_directory());
  EXPECT_TRUE(kept.started);
  ASSERT_TRUE(kept.result);
  EXPECT_EQ(kept.result->statuses(0), 0);
}

TEST_F(SupervisorTest, AnAttachedClientSeesTheOutputToo) {
  shell("echo up; read x; echo $x");
  start();
  ASSERT_TRUE(until([&] { return out_[0] == "up\n"; }));
  Peer attached{attach({})};
  std::string seen;
  bool replied = false;
  const auto look = [&] {
    attached.read();
    while (const auto frame = attached.next()) {
      replied |= frame->kind == wire::Kind::LaunchReply;
      if (frame->kind != wire::Kind::Output) continue;
      seen += wire::decode<wire::Output>(frame->payload)->data();
    }
  };
  ASSERT_TRUE(eventually([&] {
    look();
    return replied;
  }));
  input("both\n", true);
  ASSERT_TRUE(eventually([&] {
    look();
    return seen == "both\n";
  }));
  attached.close();
  finish();
  EXPECT_EQ(out_[0], "up\nboth\n");
}

TEST_F(SupervisorTest, WhatAnAttachedClientSaysWithItsRequestIsHeard) {
  shell("echo up; read x; echo $x");
  start();
  ASSERT_TRUE(until([&] { return out_[0] == "up\n"; }));
  wire::Input typed;
  typed.set_data("typed\n");
  wire::SuperviseAttach how;
  how.set_unread(wire::framed(typed));
  attach(how);  // and it goes at once
  finish();
  EXPECT_EQ(out_[0], "up\ntyped\n");
}

TEST_F(SupervisorTest, SixteenMayBeAttached) {
  shell("read x");
  start();
  const auto answer_to = [&](Peer& peer) {
    std::optional<wire::LaunchReply> reply;
    EXPECT_TRUE(eventually([&] {
      peer.read();
      while (const auto frame = peer.next()) {
        if (frame->kind == wire::Kind::LaunchReply) {
          reply = wire::decode<wire::LaunchReply>(frame->payload);
        }
      }
      return reply.has_value();
    }));
    return reply.value_or(wire::LaunchReply());
  };
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 16; ++i) {
    peers.push_back(std::make_unique<Peer>(attach({})));
    EXPECT_FALSE(answer_to(*peers.back()).has_refusal()) << i;
  }
  Peer one_more{attach({})};
  const wire::LaunchReply refused = answer_to(one_more);
  ASSERT_TRUE(refused.has_refusal());
  EXPECT_THAT(refused.refusal().lines(0).text(),
              HasSubstr("16 commands are attached to this step already"));
  one_more.close();
  peers.front()->close();
  // Its place is free as soon as the supervisor has seen that.
  EXPECT_TRUE(eventually([&] {
    peers.front() = std::make_unique<Peer>(attach({}));
    return !answer_to(*peers.front()).has_refusal();
  }));
  peers.clear();
  input("", true);
  finish();
}

TEST_F(SupervisorTest, OwnTimeLimit) {
  spec_.set_time_limit_seconds(1);
  shell("exec sleep 1000");
  run();
  EXPECT_EQ(WTERMSIG(status_of(0)), SIGTERM);
  EXPECT_EQ(ended_->cause(), "TIME LIMIT");
}

TEST_F(SupervisorTest, TaskPrologChangesTheEnvironment) {
  const std::string prolog = directory_ + "/prolog";
  ASSERT_TRUE(write_file(prolog,
                         "#!/bin/sh\necho export ADDED=a=b c\necho unset KEPT\n"
                         "echo print $SLURM_SCRIPT_CONTEXT\necho ignored\n",
                         0755));
  order_.set_task_prolog(prolog);
  variable("KEPT", "yes");
  shell("echo $ADDED.$KEPT");
  run();
  EXPECT_EQ(out_[0], "prolog_task\na=b c.\n");
}

}  // namespace
}  // namespace berth::step
