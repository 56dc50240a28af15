// What machine.h promises.
#include "rehearsal/machine.h"

#include <fmt/format.h>

#include <array>

#include "rehearsal/agent.h"
#include "step/lease_file.h"
#include "wire/step_ids.h"

namespace berth::rehearsal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array<seconds, 4> kLongTasks{seconds(2), seconds(60), seconds(150), seconds(300)};
/// KillWait of the rehearsal's slurm.conf.
constexpr seconds kKillWait{2};
constexpr int kKilled = 9;

}  // namespace

Machine::Machine(Surroundings here, Host host, std::string name)
    : here_(here), host_(host), name_(std::move(name)) {}

Machine::~Machine() = default;

std::string Machine::boot_id() const {
  return fmt::format("{}-{}", name_, boot_);
}

void Machine::start_agent() {
  if (agent_ || !on_) return;
  here_.witness.say("agent of " + name_ + " starts");
  ++here_.witness.counts.agents;
  ++life_;
  places_left_.reset();  // it was meant for the one before
  agent_ = std::make_unique<Agent>(*this);
  std::move_only_function<void()> start = [this] { agent_->start(); };
  as_agent(life_, start);
}

void Machine::place(const char* name) {
  if (!places_left_ || (*places_left_)-- != 0) return;
  here_.witness.say(fmt::format("agent of {} dies at {}", name_, name));
  throw Killed{};
}

void Machine::as_agent(std::uint64_t life, std::move_only_function<void()>& what) {
  if (life != life_ || !agent_) return;
  // One that is killed unwinds from where it is.
  const bool outermost = !std::exchange(in_agent_, true);
  if (!outermost) return what();
  bool killed = false;
  try {
    what();
  } catch (const Killed&) {
    killed = true;
  }
  in_agent_ = false;
  if (killed) agent_is_gone();
}

void Machine::agent_is_gone() {
  places_left_.reset();
  agent_->end();
  agent_.reset();
  // Supervisors without an order see that there will be none.
  for (auto it = supervisors_.begin(); it != supervisors_.end();) {
    if (it->second.ordered) {
      ++it;
      continue;
    }
    if (it->second.client) it->second.client->close();
    it = supervisors_.erase(it);
  }
}

void Machine::kill_agent() {
  if (!agent_) return;
  here_.witness.say("agent of " + name_ + " is killed");
  agent_is_gone();
}

void Machine::lose_power() {
  if (!on_) return;
  here_.witness.say(name_ + " loses its power");
  on_ = false;
  here_.network.set_power(host_, false);
  if (agent_) agent_->vanish();
  agent_.reset();
  places_left_.reset();
  while (!supervisors_.empty()) {
    auto node = supervisors_.extract(supervisors_.begin());
    here_.agenda.cancel(node.mapped().end);
    here_.agenda.cancel(node.mapped().lease_alarm);
    if (node.mapped().client) node.mapped().client->vanish();
    if (node.mapped().running) here_.witness.ends(node.key());
  }
  // What was not synced may be there or not.
  std::erase_if(spool_.jobs, [this](const auto&) { return here_.random.one_in(2); });
  std::erase_if(spool_.steps, [this](const auto&) { return here_.random.one_in(2); });
}

void Machine::power_on() {
  if (on_) return;
  here_.witness.say(name_ + " is started anew");
  ++here_.witness.counts.boots;
  on_ = true;
  ++boot_;
  here_.network.set_power(host_, true);
}

void Machine::kill_a_supervisor() {
  std::vector<node::NodeStep> running;
  for (const auto& [at, supervisor] : supervisors_) {
    if (supervisor.running) running.push_back(at);
  }
  if (running.empty()) return;
  const node::NodeStep at = running[here_.random.below(running.size())];
  here_.witness.say("a supervisor is killed on " + name_);
  // Its tasks go with it.
  here_.witness.ends(at);
  drop(at);
  if (!agent_) return;
  std::move_only_function<void()> lost = [this, at] { agent_->supervisor_lost(at); };
  as_agent(life_, lost);
}

void Machine::drop(const node::NodeStep& at) {
  const auto node = supervisors_.extract(at);
  if (node.empty()) return;
  here_.agenda.cancel(node.mapped().end);
  here_.agenda.cancel(node.mapped().lease_alarm);
  if (node.mapped().client) node.mapped().client->close();
}

void Machine::spawn(const Order& order) {
  Supervisor& supervisor = supervisors_[order.at];
  supervisor.client = order.client;
  if (!order.client) return;
  supervisor.to_end = !order.client->open();
  // Whoever started the step has gone, or says that it is to end: nothing else comes.
  order.client->start({.frame = {}, .closed = [this, at = order.at] { end(at, false); }});
}

void Machine::order(const node::NodeStep& at) {
  const auto found = supervisors_.find(at);
  if (found == supervisors_.end()) return;
  if (found->second.running) return here_.witness.begins(at);
  found->second.ordered = true;
  here_.agenda.after(here_.random.skewed(microseconds(500), milliseconds(300)),
                     [this, at, boot = boot_] {
                       if (boot == boot_ && on_) begin_tasks(at);
                     });
}

void Machine::begin_tasks(const node::NodeStep& at) {
  const auto found = supervisors_.find(at);
  if (found == supervisors_.end() || found->second.running) return;
  Supervisor& supervisor = found->second;
  StepRecord& record = spool_.steps[at];
  record.started = true;
  supervisor.running = true;
  supervisor.began = here_.agenda.now();
  here_.witness.begins(at);
  if (const auto spec = wire::decode<wire::StepSpec>(record.spec)) {
    supervisor.lease = spec->lease_seconds();
  }
  if (supervisor.client) {
    wire::LaunchReply reply;
    reply.set_node(at.node);
    reply.add_ranks(0);
    supervisor.client->send(wire::framed(reply));
  }
  const Moment most = kLongTasks.at(here_.random.below(kLongTasks.size()));
  supervisor.end = here_.agenda.after(here_.random.up_to(most), [this, at] { tasks_ended(at, 0); });
  watch_lease(at);
  if (supervisor.to_end) end(at, supervisor.to_end_now);
}

void Machine::watch_lease(const node::NodeStep& at) {
  Supervisor& supervisor = supervisors_.at(at);
  if (supervisor.lease == 0) return;
  const seconds lease(supervisor.lease);
  const bool known = spool_.lease && spool_.lease->first == boot_;
  const auto next = step::look_at_lease(known ? std::optional(spool_.lease->second) : std::nullopt,
                                        supervisor.began, lease, here_.agenda.now());
  if (!next) {
    here_.witness.say("a supervisor on " + name_ + " keeps to its lease");
    return tasks_ended(at, kKilled);
  }
  supervisor.lease_alarm = here_.agenda.at(*next, [this, at] { watch_lease(at); });
}

void Machine::end(const node::NodeStep& at, bool now) {
  const auto found = supervisors_.find(at);
  if (found == supervisors_.end()) return;
  Supervisor& supervisor = found->second;
  if (!supervisor.running) {
    supervisor.to_end = true;
    supervisor.to_end_now |= now;
    return;
  }
  here_.agenda.cancel(supervisor.end);
  // Some need SIGKILL.
  const Moment wait = now                      ? here_.random.up_to(milliseconds(20))
                      : here_.random.one_in(4) ? Moment(kKillWait)
                                               : here_.random.up_to(milliseconds(50));
  supervisor.end = here_.agenda.after(wait, [this, at] { tasks_ended(at, kKilled); });
}

void Machine::tasks_ended(const node::NodeStep& at, int status) {
  StepRecord& record = spool_.steps[at];
  wire::StepEnded ended;
  ended.set_node(at.node);
  ended.set_job_id(at.key.job);
  ended.set_attempt(at.key.attempt);
  ended.set_step_id(at.key.step);
  ended.add_ranks(0);
  ended.add_statuses(status);
  ended.set_ended(here_.clock.seconds());
  record.result = ended;
  here_.witness.ends(at);
  if (const auto client = supervisors_.at(at).client) {
    wire::NodeDone done;
    done.set_node(at.node);
    client->send(wire::framed(done));
  }
  drop(at);
  if (!agent_) return;
  here_.agenda.after(
      here_.random.skewed(microseconds(300), milliseconds(50)), [this, at, life = life_] {
        std::move_only_function<void()> tell = [this, at] { agent_->supervisor_done(at); };
        as_agent(life, tell);
      });
}

}  // namespace berth::rehearsal
