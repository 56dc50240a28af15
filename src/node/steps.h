// The steps of this agent's nodes: their supervisors, alive or adopted, and ends that the
// controller has not confirmed.
//
//   start: record, lock, cgroup, process ── fence stored (batch) ──▶ Supervise ──▶ started
//   StepEnded from the supervisor, or its death (its processes are ended first) ──▶ ended
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "device/machine.h"
#include "net/connection.h"
#include "net/loop.h"
#include "node/cgroups.h"
#include "node/children.h"
#include "node/fence.h"
#include "node/fencing.h"
#include "node/groups_of.h"
#include "node/job_host.h"
#include "node/launches.h"
#include "node/log.h"
#include "node/pretended_names.h"
#include "step/crash_point.h"
#include "step/spool.h"
#include "wire/frame.h"

namespace berth::node {

/// Of a job's record in the spool of its node.
std::string job_record_name(std::uint32_t job, std::uint32_t attempt);

/// What an agent is, for those who work in it.
struct Surroundings {
  net::Loop& loop;
  Log& log;
  Children& children;
  Fence& fence;
  Cgroups& cgroups;
  Fencing& fencing;
  step::CrashPoints& crash;
  std::string spool;
  std::string spool_key;      // names this spool among all of the machine
  std::string supervisor;     // path of berth-stepd
  std::string pmix_helper{};  // path of berth-pmix; "" = none
  bool emulated = false;
  PretendedNames names{};  // of pretended nodes
  std::uint64_t open_files = 0;
  const device::Machine* machine = nullptr;  // of a real node
  wire::NodeConfig config;                   // as the controller last said
};

/// Of a berth-stepd: all that it needs of this process's environment.
std::vector<std::string> supervisor_environment();

class Steps final : public LaunchBook {
 public:
  /// What the controller wants to know of a step that runs.
  struct Question {
    std::uint64_t number = 0;
    bool with_pids = false;
  };
  /// The answer to measure(). Neither: the step has not begun, or is not known any more.
  struct Answer {
    const wire::TasksMeasured* tasks = nullptr;  // of one that runs
    const wire::StepEnded* ended = nullptr;      // of one that is over
    bool unable = false;                         // it runs, and its supervisor cannot be asked now
  };
  struct Events {
    std::function<void(const NodeStep&, const std::string& spec)> started;
    /// It has ended; what the agent knows of it can be added before anybody is told.
    std::function<void(const NodeStep&, wire::StepEnded&)> ending{};
    /// Once the processes are gone.
    std::function<void(const NodeStep&, const wire::StepEnded&)> ended;
    std::function<void(const NodeStep&, const Question&, const Answer&)> measured{};
    /// Its processes do not go after SIGKILL; `reason` names them. It ends when they are gone.
    std::function<void(const NodeStep&, const std::string& reason)> stuck{};
    /// A step of srun could not be started, twice, by the node's own fault. Of a batch step whoever
    /// asked for it is told, or its end says so.
    std::function<void(const NodeStep&, const std::string& reason)> unfit{};
  };

  using Started = std::move_only_function<void(Result<void>)>;

  Steps(Surroundings& here, Events events) : here_(here), events_(std::move(events)) {}
  /// The loop may outlive it: nobody calls back any more. Supervisors run on.
  ~Steps() override;

  /// Finds what an earlier agent left in the spool of a node. Batch steps of which no task was
  /// started are dropped and returned: they may be started again.
  std::vector<StepKey> adopt(const std::string& node);
  /// A step that was begun before the machine crashed and of which nothing is left, whatever its
  /// record says: before adopt().
  void lost_with_the_machine(const NodeStep& at);

  [[nodiscard]] bool used(const NodeStep& at) const override;
  [[nodiscard]] const Error* unfit_for(const NodeStep& at) const override;
  /// `client`: the connection of srun; none for a batch step. done: the step is begun (StepStarted)
  /// or why not; then the connection is answered here. What fails by the node's own fault is tried
  /// once more in a moment; an error of code node_unfit says that this failed too.
  void start(const NodeStep& at, const std::string& spec, wire::Program program,
             std::optional<net::Connection::Released> client, Started done);

  void end(const NodeStep& at, const std::string& cause, bool now);
  void signal(const NodeStep& at, int number, bool tasks_only);
  /// A line for the step's user: at its srun, or in the output of a batch script. As an error, or
  /// as it is.
  void say(const NodeStep& at, const std::string& line, bool as_it_is = false);
  /// Says again which steps do not go.
  void repeat_stuck() const;
  /// Asks the supervisor what its tasks use now. Questions that come before it has answered share
  /// its answer.
  void measure(const NodeStep& at, const Question& question);
  /// Hands a client to the supervisor; an error when the step does not run here.
  Result<void> attach(const NodeStep& at, net::Connection::Released client, bool read_only);
  /// It is not to be started here, or not again: a launch that comes later is refused, as long as
  /// its job is known here. Written down in the job's record.
  void refuse(const NodeStep& at);
  /// As refuse(), of what was read in the job's record.
  void refused_before(const NodeStep& at) { refused_.add(at); }
  /// The controller has noted the end. The step's ticket stays used.
  void forget(const NodeStep& at);
  void forget_job(const std::string& node, std::uint32_t job, std::uint32_t attempt);

  [[nodiscard]] bool known(const NodeStep& at) const { return steps_.contains(at); }
  /// Whether a step that is known has this cgroup.
  [[nodiscard]] bool uses(const std::string& cgroup) const;
  /// The step that a process of this machine is part of.
  [[nodiscard]] std::optional<NodeStep> owner(std::uint32_t pid) const;
  /// Whether a step of the job has groups of this name (Fencing::name_of).
  [[nodiscard]] bool knows(std::uint32_t job, const std::string& name) const;
  [[nodiscard]] bool knows(std::uint32_t job) const;
  /// fn(at, spec, mark) for each step that has not ended; the mark is BERTH_STEP of its processes.
  template <class Fn>
  void each_running(Fn&& fn) const {
    for (const auto& [at, step] : steps_) {
      if (!step.result) fn(at, step.spec, step.mark);
    }
  }
  /// Steps of a job that have not ended.
  [[nodiscard]] std::vector<NodeStep> running(const std::string& node, std::uint32_t job,
                                              std::uint32_t attempt) const;
  /// Specs of all steps of a node, ended ones too, until they are forgotten.
  [[nodiscard]] std::vector<std::string> specs(const std::string& node) const;
  /// Ends that wait to be confirmed.
  [[nodiscard]] std::vector<wire::StepEnded> unconfirmed() const;
  [[nodiscard]] const wire::StepEnded* ended(const NodeStep& at) const;

 private:
  /// What a step is started with, until it is for certain that it need not be started once more: a
  /// batch step has told of its first task, one of srun has its order.
  struct Launching {
    wire::Program program;
    std::optional<net::Connection::Released> client;
    Started done;
    bool failed = false;                      // once
    net::TimerId timer = net::TimerId::none;  // until it is tried again
  };
  struct Step {
    NodeStep at;
    std::string spec;
    std::string record;
    std::string cgroup;
    std::string mark;
    std::shared_ptr<net::Connection> link;
    int link_fd = -1;  // of link, to send descriptors over
    std::optional<wire::StepEnded> result;
    std::unique_ptr<Launching> launching;
    bool spawned = false;              // its supervisor is one of this agent
    bool ending = false;               // it was told to end
    bool ordered = false;              // it has its order
    bool confirmed = false;            // the controller knows of the end, but processes are left
    std::vector<Question> questions;   // the supervisor was asked, and has not answered
    std::vector<std::string> waiting;  // frames for a supervisor that is not connected or ordered
    net::TimerId timer = net::TimerId::none;
    std::chrono::milliseconds delay{10};
    std::optional<net::Clock::time_point> clearing_since;
    net::TimerId watch = net::TimerId::none;  // when it should be over
    std::optional<net::Clock::time_point> watch_at;
    net::Clock::time_point heard{};  // from its supervisor
    std::string stuck;               // why it does not go, as it was said
  };

  // steps.cpp
  Step& add(const NodeStep& at, std::string spec);
  Result<Fd> prepare(Step& step);
  void try_start(const NodeStep& at);
  /// Until it waits for the list of starts (batch), or has its order.
  Result<void> spawn(Step& step);
  void launch_failed(const NodeStep& at, const Error& why);
  void give_up(const NodeStep& at, const Error& why);
  void give_order(const NodeStep& at, const wire::Supervise& order, const std::string& why_not);
  void forget_begun(const NodeStep& at);
  void drop(const NodeStep& at);
  Result<void> fence_in(const Step& step, wire::Supervise& order);
  /// The groups of a step that is not to run, or whose supervisor is gone. False while one is left.
  bool drop_groups(const Step& step);
  [[nodiscard]] GroupsOf groups_of(const Step& step) const;
  wire::Supervise order_for(const Step& step) const;
  void watch(Step& step, Fd fd);
  void send(Step& step, const std::string& frame);
  void take_result(const NodeStep& at, wire::StepEnded ended);
  void answer_questions(Step& step, const wire::TasksMeasured* measured);
  Step* find(const NodeStep& at);
  // steps_lost.cpp
  void link_lost(const NodeStep& at);
  void connect(const NodeStep& at);
  void clear(const NodeStep& at);
  [[nodiscard]] bool supervisor_lives(const Step& step) const;
  [[nodiscard]] bool lives_on(const Step& step, net::Clock::time_point until) const;
  /// Nothing of it ran: as if its ticket had never come.
  void never_ran(const NodeStep& at);
  /// The supervisor of a step of srun died before it started anything.
  void died_unstarted(const NodeStep& at);
  [[nodiscard]] wire::StepEnded failed(const Step& step) const;
  void again(Step& step, void (Steps::*what)(const NodeStep&));
  // steps_watch.cpp
  /// The supervisor has so long to end the step; then the agent does it.
  void watch_end(Step& step, std::chrono::seconds left);
  void watch_limit(Step& step);
  [[nodiscard]] std::chrono::seconds kill_wait() const;
  void overdue(const NodeStep& at);
  void expect_answer(const NodeStep& at, net::Clock::time_point asked);
  void end_supervisor(const NodeStep& at);
  void kill_processes(const Step& step);
  void take_stuck(Step& step, const std::vector<pid_t>& pids);

  Surroundings& here_;
  Events events_;
  std::map<NodeStep, Step> steps_;
  UsedTickets refused_;
  /// Steps of srun whose supervisor died before it started anything: once, or (why) again.
  std::map<NodeStep, std::optional<Error>> died_unstarted_;
};

}  // namespace berth::node
