// A node of a rehearsal: the machine with its spool and its supervisors, which outlive an agent,
// and the agent, whose rules are the real ones (node/conversation.h, orders.h, jobs.h, launches.h).
// Processes are entries in a list. The machine may lose its power, and is then started anew.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/job_host.h"
#include "rehearsal/network.h"
#include "rehearsal/witness.h"

namespace berth::rehearsal {

/// What all machines of a rehearsal share.
struct Surroundings {
  Agenda& agenda;
  AgendaClock& clock;
  Network& network;
  Random& random;
  Witness& witness;
};

class Agent;

/// What a supervisor writes down of its step.
struct StepRecord {
  std::string spec;
  bool started = false;
  std::optional<wire::StepEnded> result;
};

/// Files of the spool. A machine that loses its power may lose what was not synced.
struct Spool {
  std::map<node::NodeJob, node::JobHost::Frames> jobs;
  std::map<node::NodeStep, StepRecord> steps;
  /// begun.log, synced: with the boot under which it was written. step = none: the job.
  struct Begun {
    node::NodeJob job;
    std::optional<std::uint32_t> step;
    friend auto operator<=>(const Begun&, const Begun&) = default;
  };
  std::map<Begun, std::uint32_t> begun;
  std::uint64_t epoch = 0;                                // synced
  std::optional<std::pair<std::uint32_t, Moment>> lease;  // of that boot
  wire::StoreMemory memory;
};

class Machine {
 public:
  Machine(Surroundings here, Host host, std::string name);
  ~Machine();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Host host() const { return host_; }
  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] bool agent_runs() const { return agent_ != nullptr; }
  [[nodiscard]] std::string boot_id() const;

  // What happens to it
  void start_agent();
  void kill_agent();
  /// The agent dies at the n-th of its places from now on.
  void kill_agent_at(std::uint64_t places) { places_left_ = places; }
  void lose_power();
  void power_on();
  /// One of its supervisors, any of them.
  void kill_a_supervisor();

  // For its agent
  Surroundings& here() { return here_; }
  Spool& spool() { return spool_; }
  [[nodiscard]] std::uint32_t boot() const { return boot_; }
  /// A place where the agent may die.
  void place(const char* name);
  /// In the agent's name: nothing happens when it is another one by then, and it may die in it.
  void as_agent(std::uint64_t life, std::move_only_function<void()>& what);
  [[nodiscard]] std::uint64_t life() const { return life_; }

  struct Order {
    node::NodeStep at;
    std::shared_ptr<Socket> client;  // of srun
  };
  /// It waits for its order.
  void spawn(const Order& order);
  void order(const node::NodeStep& at);
  /// SIGTERM, or at once.
  void end(const node::NodeStep& at, bool now);
  [[nodiscard]] bool supervisor_lives(const node::NodeStep& at) const {
    return supervisors_.contains(at);
  }

 private:
  struct Supervisor {
    std::shared_ptr<Socket> client;
    bool ordered = false;
    bool running = false;
    bool to_end = false;  // told before it runs
    bool to_end_now = false;
    std::uint32_t lease = 0;
    Moment began{};
    Agenda::Event end = Agenda::kNone;
    Agenda::Event lease_alarm = Agenda::kNone;
  };
  struct Killed {};

  void begin_tasks(const node::NodeStep& at);
  void tasks_ended(const node::NodeStep& at, int status);
  void watch_lease(const node::NodeStep& at);
  void drop(const node::NodeStep& at);
  void agent_is_gone();

  Surroundings here_;
  Host host_;
  std::string name_;
  Spool spool_;
  std::map<node::NodeStep, Supervisor> supervisors_;
  std::unique_ptr<Agent> agent_;
  std::uint64_t life_ = 0;  // of the agent
  std::uint32_t boot_ = 1;
  bool on_ = true;
  bool in_agent_ = false;
  std::optional<std::uint64_t> places_left_;
};

}  // namespace berth::rehearsal
