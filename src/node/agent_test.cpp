// The agent as controller and clients see it, with real supervisors and processes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <thread>

#include "node/agent_test_fixture.h"
#include "step/lease_file.h"
#include "step/supervisor.h"

namespace {

/// This program is its own supervisor: see the fixture.
const bool kIsSupervisor = [] {
  const auto words = berth::step::read_file("/proc/self/cmdline").value_or("");
  if (!words.ends_with(std::string("--supervise") + '\0')) return false;
  ::_exit(berth::step::supervise(3, 4, 5));
}();

}  // namespace

namespace berth::node {
namespace {

using testing::HasSubstr;

std::string why(const wire::LaunchReply& reply) {
  return reply.has_refusal() && reply.refusal().lines_size() > 0 ? reply.refusal().lines(0).text()
                                                                 : "";
}

TEST_F(AgentTest, BatchJobRunsAndItsEndIsToldUntilForgotten) {
  ASSERT_FALSE(kIsSupervisor);
  tell(begin_batch("echo hello; exit 3"));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_EQ(file("out"), "hello\n");
  EXPECT_EQ(WEXITSTATUS(ended_[0].statuses(0)), 3);
  ASSERT_TRUE(begun_.has_value());
  EXPECT_FALSE(begun_->has_refusal());
  EXPECT_EQ(started_.size(), 1U);

  // A connection that breaks: the end is told again.
  ended_.clear();
  registration_.reset();
  agent_link_->abort();
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_EQ(registration_->nodes(0).steps_size(), 1);
  EXPECT_EQ(registration_->nodes(0).jobs(0).job_id(), 7U);

  end_job();
  ASSERT_TRUE(until([&] { return gone_.has_value(); }));
  wire::Forget forget;
  forget.set_node("n0");
  forget.set_job_id(7);
  forget.set_attempt(1);
  tell(forget);
  EXPECT_TRUE(until([&] { return std::filesystem::is_empty(directory_ + "/spool/n0"); }));
}

TEST_F(AgentTest, AnAttemptIsStartedOnce) {
  tell(begin_batch("echo run >> count"));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  begun_.reset();
  tell(begin_batch("echo run >> count"));
  ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  end_job();
  ASSERT_TRUE(until([&] { return gone_.has_value(); }));
  EXPECT_EQ(file("count"), "run\n");
}

TEST_F(AgentTest, LaunchWaitsForItsJobAndIsGoodOnce) {
  const wire::Ticket ticket = auth::sign_ticket("n0", spec(0), kKey);
  loop_.after(std::chrono::milliseconds(50), [&] { tell(begin_job()); });
  EXPECT_EQ(why(launch(ticket, "true")), "");
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_THAT(why(launch(ticket, "true")), HasSubstr("used before"));
}

/// As srun does when the connection broke before it had an answer: for as long as it is good.
TEST_F(AgentTest, ATicketStaysUsedWhenItsStepIsForgotten) {
  const wire::Ticket ticket = auth::sign_ticket("n0", spec(0), kKey);
  tell(begin_job());
  EXPECT_EQ(why(launch(ticket, "echo ran >> ran")), "");
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  wire::Forget forget;
  forget.set_node("n0");
  forget.set_job_id(7);
  forget.set_attempt(1);
  forget.set_step_id(0);
  tell(forget);
  ASSERT_TRUE(until([&] { return !std::filesystem::exists(directory_ + "/spool/n0/step.7.1.0"); }));
  EXPECT_THAT(why(launch(ticket, "echo ran >> ran")), HasSubstr("used before"));
  agent_.reset();
  start_agent();
  EXPECT_THAT(why(launch(ticket, "echo ran >> ran")), HasSubstr("used before"));
  EXPECT_EQ(file("ran"), "ran\n");
}

TEST_F(AgentTest, TicketsThatAreNotGood) {
  tell(begin_job());
  wire::StepSpec s = spec(0);
  EXPECT_THAT(why(launch(auth::sign_ticket("n0", s, std::string(32, 'x')), "touch ran")),
              HasSubstr("Invalid job credential"));
  wire::Ticket altered = auth::sign_ticket("n0", s, kKey);
  s.set_uid(s.uid() + 1);
  altered.set_spec(s.SerializeAsString());
  EXPECT_THAT(why(launch(altered, "touch ran")), HasSubstr("Invalid job credential"));
  s = spec(0);
  s.set_expires(even_time() - 60);
  EXPECT_THAT(why(launch(auth::sign_ticket("n0", s, kKey), "touch ran")), HasSubstr("expired"));
  EXPECT_EQ(file("ran"), "");
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/ran"));
}

TEST_F(AgentTest, TicketsExpireByTheControllersTimeWhateverTheClockOfTheMachineSays) {
  for (const std::int64_t ahead : {3600, -3600}) {
    SCOPED_TRACE(ahead);
    agent_.reset();
    even_ahead_ = ahead;
    start_agent();
    tell(begin_job());
    wire::StepSpec s = spec(ahead > 0 ? 1 : 2);
    s.set_expires(even_time() - 60);
    EXPECT_THAT(why(launch(auth::sign_ticket("n0", s, kKey), "true")), HasSubstr("expired"));
    s.set_expires(even_time() + 60);
    EXPECT_EQ(why(launch(auth::sign_ticket("n0", s, kKey), "true")), "");
    // The first beat, which comes with the registration, says that the clock is off.
    ASSERT_TRUE(until([&] { return clock_ahead_ != 0; }));
    EXPECT_NEAR(static_cast<double>(clock_ahead_), static_cast<double>(-ahead), 10);
    clock_ahead_ = 0;
  }
}

TEST_F(AgentTest, ARelayIsMadeForWhoMayLaunchHereOnceForATicket) {
  tell(begin_job());
  const wire::Ticket good = auth::sign_ticket("n0", spec(0), kKey);
  const wire::Ticket forged = auth::sign_ticket("n0", spec(1), std::string(32, 'x'));
  EXPECT_THAT(why(relay(forged, good, "touch ran")), HasSubstr("Invalid job credential"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/ran"));

  // What a relay carries is looked at where it goes: a forged second ticket starts nothing.
  const wire::LaunchReply first = relay(good, forged, "echo $$ >> ran; exec sleep 1000");
  EXPECT_EQ(why(first), "");
  EXPECT_EQ(first.node(), "n0");
  EXPECT_EQ(started_.size(), 1U);
  EXPECT_THAT(why(relay(good, good, "true")), HasSubstr("used before"));
  // The client went with the second try, and the step with its relay.
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_EQ(WTERMSIG(ended_[0].statuses(0)), SIGTERM);
}

TEST_F(AgentTest, AJobThatBeganBeforeTheMachineCrashedTakesNoLaunches) {
  tell(begin_job());
  ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  agent_.reset();
  // The log as another boot finds it; the ticket's own record is lost.
  ASSERT_TRUE(step::write_file(directory_ + "/spool/begun.log", "begin another-boot n0 7 1 - .\n"));
  start_agent();
  EXPECT_THAT(why(launch(auth::sign_ticket("n0", spec(0), kKey), "touch ran")),
              HasSubstr("already completing"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/ran"));
}

TEST_F(AgentTest, AScriptThatRanBeforeTheMachineCrashedDoesNotRunAgainWhateverFilesAreLeft) {
  tell(begin_batch("echo once >> ran"));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  agent_.reset();
  // The job's record outlived the crash, the step's did not, or has lost its end.
  const std::string record =
      directory_ + "/spool/n0/" + step::record_name({7, 1, wire::kBatchStep});
  ASSERT_TRUE(std::filesystem::exists(record));
  for (const bool kept : {true, false}) {
    // Of the job's record the end is lost.
    const std::string job = directory_ + "/spool/n0/job.7.1";
    const std::string whole = file("spool/n0/job.7.1");
    ASSERT_TRUE(step::write_file(job, whole.substr(0, wire::frame_bytes(whole)), 0600));
    if (kept) {
      wire::Supervised first;
      first.set_spec(spec(wire::kBatchStep).SerializeAsString());
      ASSERT_TRUE(step::write_file(record, wire::framed(first), 0600));
    } else {
      std::filesystem::remove(record);
    }
    ASSERT_TRUE(step::write_file(directory_ + "/spool/begun.log",
                                 fmt::format("begin another-boot n0 7 1 - .\n"
                                             "begin another-boot n0 7 1 {} .\n",
                                             wire::kBatchStep)));
    start_agent();
    ASSERT_EQ(registration_->nodes(0).jobs_size(), 1) << kept;
    EXPECT_TRUE(registration_->nodes(0).jobs(0).lost()) << kept;
    begun_.reset();
    tell(begin_batch("echo once >> ran"));
    ASSERT_TRUE(until([&] { return begun_.has_value(); }));
    agent_.reset();
    // Nothing of that is forgotten before the controller has heard of it.
    EXPECT_THAT(file("spool/begun.log"), HasSubstr(" n0 7 1 - .")) << kept;
    EXPECT_THAT(file("spool/begun.log"), testing::Not(HasSubstr("forget"))) << kept;
  }
  start_agent();
  EXPECT_EQ(file("ran"), "once\n");
}

TEST_F(AgentTest, EndedJobTakesItsStepsAlongAndRefusesNewOnes) {
  tell(begin_job());
  EXPECT_EQ(why(launch(auth::sign_ticket("n0", spec(0), kKey), "sleep 1000")), "");
  end_job();
  ASSERT_TRUE(until([&] { return gone_.has_value(); }));
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(WTERMSIG(ended_[0].statuses(0)), SIGTERM);
  EXPECT_THAT(why(launch(auth::sign_ticket("n0", spec(1), kKey), "true")),
              HasSubstr("already completing"));
}

TEST_F(AgentTest, AStepThatWasEndedBeforeItCameIsRefused) {
  tell(begin_job());
  wire::EndStep end;
  end.set_node("n0");
  end.set_job_id(7);
  end.set_attempt(1);
  end.set_step_id(4);
  tell(end);
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_TRUE(ended_[0].system_failure());
  EXPECT_THAT(why(launch(auth::sign_ticket("n0", spec(4), kKey), "true")),
              HasSubstr("used before"));
}

TEST_F(AgentTest, ANewAgentFindsRunningStepsAndTicketsStayUsed) {
  const wire::Ticket ticket = auth::sign_ticket("n0", spec(0), kKey);
  tell(begin_job());
  EXPECT_EQ(why(launch(ticket, "echo up > up; while [ ! -e go ]; do sleep 0.02; done; exit 5")),
            "");
  ASSERT_TRUE(until([&] { return file("up") == "up\n"; }));
  agent_.reset();
  start_agent();
  EXPECT_EQ(registration_->nodes(0).steps_size(), 1);
  EXPECT_EQ(registration_->nodes(0).jobs_size(), 1);
  net::Client srun = std::move(*client_);  // its connection is the supervisor's, not the agent's
  EXPECT_THAT(why(launch(ticket, "true")), HasSubstr("used before"));
  ASSERT_TRUE(step::write_file(directory_ + "/go", ""));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_EQ(WEXITSTATUS(ended_[0].statuses(0)), 5);
}

TEST_F(AgentTest, ABatchStepWhoseAgentDiedBeforeItsOrderMayBeginAgain) {
  agent_.reset();
  const wire::BeginJob begin = begin_batch("true");
  std::filesystem::create_directory(directory_ + "/spool/n0");
  ASSERT_TRUE(step::append_record(directory_ + "/spool/n0/job.7.1",
                                  wire::framed(begin) + wire::framed(wire::JobBegun()), true));
  const std::string record =
      directory_ + "/spool/n0/" + step::record_name({7, 1, wire::kBatchStep});
  wire::Supervised first;
  first.set_spec(spec(wire::kBatchStep).SerializeAsString());
  ASSERT_TRUE(step::append_record(record, wire::framed(first), true));
  Fd lock(::open(record.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  // The supervisor, which has not noticed yet that nobody will tell it what to do.
  std::jthread leaves([&lock] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    lock.reset();
  });
  start_agent();
  EXPECT_EQ(registration_->nodes(0).jobs_size(), 0);
  EXPECT_EQ(registration_->nodes(0).steps_size(), 0);
  tell(begin_batch("echo ran >> ran"));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_FALSE(ended_[0].system_failure());
  EXPECT_EQ(file("ran"), "ran\n");
}

TEST_F(AgentTest, DeadSupervisorIsNoticedAndItsProcessesAreEnded) {
  tell(begin_job());
  EXPECT_EQ(why(launch(auth::sign_ticket("n0", spec(0), kKey),
                       "echo $PPID > supervisor; "
                       "setsid sh -c 'trap : TERM; echo $$ > escaped; while :; do sleep 1; done' & "
                       "while [ ! -s escaped ]; do sleep 0.02; done; touch ready; sleep 1000")),
            "");
  ASSERT_TRUE(until([&] { return std::filesystem::exists(directory_ + "/ready"); }));
  ::kill(std::stoi(file("supervisor")), SIGKILL);
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_TRUE(ended_[0].system_failure());
  const pid_t escaped = std::stoi(file("escaped"));
  EXPECT_TRUE(until([&] { return ::kill(escaped, 0) != 0; }));
}

TEST_F(AgentTest, FailedPrologRefusesTheJobAndEpilogTroubleIsTold) {
  ASSERT_TRUE(step::write_file(directory_ + "/fails", "#!/bin/sh\nexit 3\n", 0755));
  config_.add_prolog(directory_ + "/fails");
  config_.add_epilog(directory_ + "/fails");
  registration_.reset();
  agent_link_->abort();
  ASSERT_TRUE(until([&] { return registration_.has_value(); }));
  tell(begin_batch("touch ran"));
  ASSERT_TRUE(until([&] { return begun_.has_value(); }));
  EXPECT_TRUE(begun_->prolog_failed());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/ran"));
  end_job();
  ASSERT_TRUE(until([&] { return gone_.has_value(); }));
  EXPECT_EQ(gone_->trouble(), "Epilog error");
}

TEST_F(AgentTest, UnknownJobIsGoneAtOnce) {
  end_job();
  ASSERT_TRUE(until([&] { return gone_.has_value(); }));
  EXPECT_EQ(gone_->trouble(), "");
}

TEST_F(AgentTest, AControllerThatSaysNothingIsDialledAgain) {
  config_.set_beat_seconds(1);
  agent_.reset();
  start_agent();
  ASSERT_TRUE(until([&] { return beats_ >= 4; }));  // it answers: nothing happens
  answers_beats_ = false;
  const std::weak_ptr<net::Connection> before = agent_link_;
  registration_.reset();
  ASSERT_TRUE(until([&] { return registration_.has_value(); }));
  EXPECT_NE(agent_link_, before.lock());
}

/// A batch job with a lease, which says its process id.
class LeaseTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    config_.set_beat_seconds(1);
    agent_.reset();
    start_agent();
  }
  void begin(std::uint32_t lease) {
    lease_ = lease;
    tell(begin_batch("echo $$ > pid.new; mv pid.new pid; exec sleep 1000"));
    ASSERT_TRUE(until([&] { return std::filesystem::exists(directory_ + "/pid"); }));
    pid_ = std::stoi(file("pid"));
  }
  [[nodiscard]] bool runs() const { return ::kill(pid_, 0) == 0; }
  /// The controller hears again, and gets a registration.
  void hear() {
    deaf_ = false;
    registration_.reset();
    if (agent_link_) agent_link_->abort();
    ASSERT_TRUE(until([&] { return registration_.has_value(); }));
  }

  pid_t pid_ = 0;
};

TEST_F(LeaseTest, EndsAJobWithoutAController) {
  begin(4);
  deaf_ = true;
  ASSERT_TRUE(until([&] { return !runs(); }));
  hear();
  ASSERT_EQ(registration_->nodes(0).jobs_size(), 1);
  EXPECT_TRUE(registration_->nodes(0).jobs(0).ending());
  ASSERT_TRUE(until([&] { return gone_.has_value() && !ended_.empty(); }));
  EXPECT_EQ(ended_.back().cause(), "NODE FAILURE");
}

TEST_F(LeaseTest, EndsAJobWithoutAnAgent) {
  begin(4);
  agent_.reset();
  ASSERT_TRUE(until([&] { return !runs(); }));
  start_agent();
  ASSERT_EQ(registration_->nodes(0).jobs_size(), 1);
  EXPECT_TRUE(registration_->nodes(0).jobs(0).ending());
  ASSERT_TRUE(until([&] { return gone_.has_value() && !ended_.empty(); }));
  EXPECT_EQ(ended_.back().cause(), "NODE FAILURE");
}

TEST_F(LeaseTest, GoesOnWhileTheControllerAnswers) {
  begin(3);
  const int before = beats_;
  ASSERT_TRUE(until([&] { return beats_ >= before + 6; }));
  EXPECT_TRUE(runs());
}

TEST_F(LeaseTest, RestsForAControllerThatIsStoppedInOrder) {
  begin(3);
  wire::Beat stops;
  stops.set_leases_rest_seconds(3600);
  tell(stops);
  ASSERT_TRUE(until([&] { return agent_link_->backlog() == 0; }));
  agent_link_->close();
  controller_.reset();
  const auto over = net::Clock::now() + std::chrono::seconds(6);
  until([&] { return net::Clock::now() > over; });
  EXPECT_TRUE(runs());
  // Nor does the supervisor end it.
  agent_.reset();
  const auto later = net::Clock::now() + std::chrono::seconds(4);
  until([&] { return net::Clock::now() > later; });
  EXPECT_TRUE(runs());
  open_controller();
  start_agent();
  EXPECT_FALSE(registration_->nodes(0).jobs(0).ending());
}

TEST_F(LeaseTest, CountsAgainFromARegistrationWhoseAnswerAnAgentDoesNotLiveToHear) {
  begin(3);
  wire::Beat stops;
  stops.set_leases_rest_seconds(3600);
  tell(stops);
  const auto from = [&] { return *step::read_lease_file(directory_ + "/spool/lease"); };
  ASSERT_TRUE(until([&] { return from() > boot_now(); }));
  // The next controller has heard of the node, and counts from then on.
  deaf_ = true;
  agent_link_->close();
  ASSERT_TRUE(until([&] { return from() <= boot_now(); }));
  agent_.reset();
  EXPECT_TRUE(until([&] { return !runs(); }));
  deaf_ = false;
  start_agent();
}

TEST_F(LeaseTest, WithoutOneAJobRunsOn) {
  begin(0);
  deaf_ = true;
  const auto over = net::Clock::now() + std::chrono::seconds(5);
  until([&] { return net::Clock::now() > over; });
  EXPECT_TRUE(runs());
  hear();
  EXPECT_FALSE(registration_->nodes(0).jobs(0).ending());
}

}  // namespace
}  // namespace berth::node
