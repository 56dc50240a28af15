// What agent.h promises.
#include "rehearsal/agent.h"

#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/controller_host.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::rehearsal {
namespace {

using node::Jobs;
using node::NodeJob;
using node::NodeStep;
using node::StepKey;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kLaunchPatience{10};

}  // namespace

Agent::Agent(Machine& machine)
    : machine_(machine),
      life_(machine.life()),
      conversation_(*this,
                    {.registration =
                         [this] {
                           orders_.registers();
                           return registration();
                         },
                     .registered = [this](const wire::Registered& m) { return registered(m); },
                     .frame = [this](const wire::Frame& frame) { take(frame); },
                     .asked = [this](std::uint64_t number) { orders_.asked(number); },
                     .answered = [this](std::uint64_t number) { orders_.answered(number); },
                     .told_time = [](std::uint64_t, const node::ControllerClock::Told&) {},
                     .clock_ahead = [] { return 0; },
                     .lost = [this] { orders_.lost(); },
                     .leases_rest = [this](auto longest) { orders_.leases_rest(longest); }}),
      jobs_(*this, {.begun = [this](const wire::JobBegun& m) { conversation_.send(m); },
                    .gone =
                        [this](const wire::JobGone& m) {
                          machine_.here().witness.said_gone({m.node(), m.job_id(), m.attempt()});
                          conversation_.send(m);
                        },
                    .changed = [this](const NodeJob&) { look_again(); },
                    .ended = [](const NodeJob&) {}}),
      orders_(*this, jobs_) {}

std::move_only_function<void()> Agent::mine(std::move_only_function<void()> what) {
  return [&machine = machine_, life = life_, what = std::move(what)]() mutable {
    machine.as_agent(life, what);
  };
}

void Agent::start() {
  Spool& spool = machine_.spool();
  lost_with_the_machine();
  jobs_.adopt(machine_.name(), adopt_steps());
  const bool same_boot = spool.lease && spool.lease->first == machine_.boot();
  orders_.take_up(spool.epoch, same_boot ? std::optional(spool.lease->second) : std::nullopt);
  orders_.keep_leases();
  machine_.here().network.listen(machine_.host(), [&machine = machine_, life = life_,
                                                   this](const std::shared_ptr<Socket>& client) {
    std::move_only_function<void()> greet = [this, client] { accept(client); };
    machine.as_agent(life, greet);
  });
  conversation_.dial();
}

void Agent::end() {
  Agenda& agenda = machine_.here().agenda;
  machine_.here().network.stop_listening(machine_.host());
  for (auto& [timer, event] : timers_) agenda.cancel(event);
  agenda.cancel(lease_alarm_);
  if (uplink_) uplink_->close();
  for (const auto& client : clients_) client->close();
  for (Waiting& waiting : waiting_) {
    agenda.cancel(waiting.patience);
    waiting.client->close();
  }
}

void Agent::vanish() {
  if (uplink_) uplink_->vanish();
  for (const auto& client : clients_) client->vanish();
  for (const Waiting& waiting : waiting_) waiting.client->vanish();
  end();
}

// ---- The connection
// ------------------------------------------------------------------------------

void Agent::dial() {
  machine_.here().network.dial(
      machine_.host(), kController, 0,
      [&machine = machine_, life = life_, this](std::shared_ptr<Socket> socket) {
        // Who dialled is dead.
        if (machine.life() != life || !machine.agent_runs()) {
          if (socket) socket->close();
          return;
        }
        std::move_only_function<void()> go_on = [this, &machine, life, socket] {
          if (!socket) return conversation_.lost("");
          uplink_ = socket;
          socket->start({.frame =
                             [this, &machine, life](std::string_view bytes) {
                               std::move_only_function<void()> read = [this, bytes] {
                                 wire::Frame frame;
                                 (void)wire::scan_frame(bytes, wire::kMostBytes, frame);
                                 conversation_.take(frame);
                               };
                               machine.as_agent(life, read);
                             },
                         .closed =
                             [this, &machine, life] {
                               std::move_only_function<void()> lost = [this] {
                                 uplink_.reset();
                                 conversation_.lost("closed");
                               };
                               machine.as_agent(life, lost);
                             }});
          conversation_.connected();
        };
        machine.as_agent(life, go_on);
      });
}

void Agent::send(std::string frame) {
  machine_.place("a message");
  if (uplink_) uplink_->send(std::move(frame));
}

void Agent::hang_up() {
  if (uplink_) std::exchange(uplink_, nullptr)->close();
}

void Agent::set(node::Conversation::Timer timer, std::chrono::milliseconds after) {
  cancel(timer);
  timers_[timer] =
      machine_.here().agenda.after(after, mine([this, timer] { conversation_.rang(timer); }));
}

void Agent::cancel(node::Conversation::Timer timer) {
  machine_.here().agenda.cancel(timers_[timer]);
}

milliseconds Agent::any_up_to(milliseconds most) {
  return milliseconds(machine_.here().random.below(static_cast<std::uint64_t>(most.count()) + 1));
}

void Agent::log_lost(std::string_view why) {
  if (!machine_.here().witness.talks()) return;
  machine_.here().witness.say(fmt::format("{} has no controller: {}", machine_.name(), why));
}

void Agent::log_refused(const wire::Refusal& refusal) {
  machine_.here().witness.say(std::string(wire::from_refusal(refusal).what()));
}

wire::RegisterNodes Agent::registration() const {
  wire::RegisterNodes message;
  wire::NodeReport& node = *message.add_nodes();
  node.set_name(machine_.name());
  node.set_sockets(1);
  node.set_cores_per_socket(2);
  node.set_threads_per_core(1);
  node.set_memory_mb(4000);
  node.set_boot_id(machine_.boot_id());
  node.set_gpus_unwatched(true);
  for (const auto& [at, step] : steps_) node.add_steps()->set_spec(step.spec);
  for (const wire::HeldJob& held : jobs_.held(machine_.name())) *node.add_jobs() = held;
  message.mutable_address()->set_host(machine_.name());
  message.mutable_address()->set_port(machine_.host());
  message.set_epoch(orders_.epoch());
  message.set_instance(fmt::format("{}-{}", machine_.name(), life_));
  if (machine_.spool().memory.store() != 0) *message.mutable_memory() = machine_.spool().memory;
  return message;
}

bool Agent::registered(const wire::Registered& message) {
  std::size_t accepted = 0;
  for (const wire::NodeVerdict& verdict : message.nodes()) {
    if (verdict.has_refusal()) {
      orders_.refused(verdict.name());
      machine_.here().witness.say(machine_.name() + " is refused: " +
                                  std::string(wire::from_refusal(verdict.refusal()).what()));
      continue;
    }
    orders_.accepted(verdict.name(), verdict.key());
    ++accepted;
  }
  if (accepted == 0) return false;
  machine_.here().witness.say(machine_.name() + " is registered");
  orders_.see_epoch(message.epoch());
  remember(message.memory());
  for (const auto& [at, step] : steps_) {
    if (step.result) conversation_.send(*step.result);
  }
  jobs_.repeat();
  look_again();
  return true;
}

void Agent::take(const wire::Frame& frame) {
  switch (frame.kind) {
    case wire::Kind::BeginJob:
      return orders_.begin(*wire::decode<wire::BeginJob>(frame.payload));
    case wire::Kind::EndJob:
      return orders_.end(*wire::decode<wire::EndJob>(frame.payload));
    case wire::Kind::EndStep:
      return orders_.end_step(*wire::decode<wire::EndStep>(frame.payload));
    case wire::Kind::Forget:
      return orders_.forget(*wire::decode<wire::Forget>(frame.payload));
    default:
      return;
  }
}

// ---- What is kept
// --------------------------------------------------------------------------------

BootTime Agent::now() const {
  return machine_.here().agenda.now();
}

std::int64_t Agent::seconds() const {
  return machine_.here().clock.seconds();
}

void Agent::store_lease(BootTime from) {
  machine_.spool().lease = {machine_.boot(), from};
}

void Agent::wake_for_leases(std::optional<BootTime> when) {
  Agenda& agenda = machine_.here().agenda;
  agenda.cancel(lease_alarm_);
  if (when) lease_alarm_ = agenda.at(*when, mine([this] { orders_.keep_leases(); }));
}

void Agent::remember(const wire::StoreMemory& memory) {
  if (memory.store() != 0) machine_.spool().memory = memory;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> Agent::recorded(const std::string& node) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  for (const auto& [at, frames] : machine_.spool().jobs) {
    if (at.node == node) found.emplace_back(at.job, at.attempt);
  }
  return found;
}

node::JobHost::Frames Agent::record_of(const NodeJob& at) {
  const auto found = machine_.spool().jobs.find(at);
  return found == machine_.spool().jobs.end() ? Frames() : found->second;
}

Result<void> Agent::begin_record(const NodeJob& at, const std::string& frame) {
  machine_.spool().jobs[at].clear();
  add_to_record(at, frame);
  return {};
}

void Agent::add_to_record(const NodeJob& at, const std::string& bytes) {
  const auto found = machine_.spool().jobs.find(at);
  // A record that is not there is not made.
  if (found == machine_.spool().jobs.end()) return;
  wire::Frame frame;
  (void)wire::scan_frame(bytes, wire::kMostBytes, frame);
  found->second.emplace_back(frame.kind, std::string(frame.payload));
}

void Agent::forget_record(const NodeJob& at) {
  machine_.spool().jobs.erase(at);
  std::erase_if(machine_.spool().begun, [&](const auto& begun) { return begun.first.job == at; });
}

void Agent::store_attempt(const NodeJob& at, Done done) {
  machine_.here().agenda.after(machine_.here().random.skewed(milliseconds(2), milliseconds(400)),
                               mine([this, at, done = std::move(done)]() mutable {
                                 machine_.spool().begun[{at, std::nullopt}] = machine_.boot();
                                 done("");
                               }));
}

void Agent::later(std::move_only_function<void()> what) {
  machine_.here().agenda.after(microseconds(1), mine(std::move(what)));
}

void Agent::after(std::chrono::seconds wait, std::move_only_function<void()> what) {
  machine_.here().agenda.after(wait, mine(std::move(what)));
}

void Agent::reached(node::JobMoment moment) {
  switch (moment) {
    case node::JobMoment::recorded:
      return machine_.place("job_recorded");
    case node::JobMoment::prolog_done:
      return machine_.place("prolog_done");
    case node::JobMoment::gone:
      return machine_.place("job_gone");
  }
}

// ---- Steps
// ---------------------------------------------------------------------------------------

/// As Steps::adopt().
std::vector<StepKey> Agent::adopt_steps() {
  std::vector<StepKey> unstarted;
  std::vector<NodeStep> never;
  for (auto& [at, record] : machine_.spool().steps) {
    const bool lives = machine_.supervisor_lives(at);
    const bool lost = step_ended(at) != nullptr;
    if (!record.result && !lost && !lives && !record.started) {
      never.push_back(at);
      if (at.key.step == wire::kBatchStep) unstarted.push_back(at.key);
      continue;
    }
    Step& step = steps_[at];
    step.spec = record.spec;
    step.ordered = true;
    if (record.result) step.result = record.result;
    if (step.result || lives) continue;
    later([this, at] { supervisor_lost(at); });
  }
  for (const NodeStep& at : never) {
    machine_.spool().steps.erase(at);
    machine_.spool().begun.erase({{at.node, at.key.job, at.key.attempt}, at.key.step});
  }
  return unstarted;
}

void Agent::lost_with_the_machine() {
  for (const auto& [begun, boot] : machine_.spool().begun) {
    if (boot == machine_.boot()) continue;
    if (begun.step) {
      const NodeStep at{begun.job.node, {begun.job.job, begun.job.attempt, *begun.step}};
      Step& step = steps_[at];
      if (step.spec.empty()) {
        wire::StepSpec bare;
        bare.set_node(at.node);
        bare.set_job_id(at.key.job);
        bare.set_attempt(at.key.attempt);
        bare.set_step_id(at.key.step);
        step.spec = bare.SerializeAsString();
      }
      if (!step.result) step.result = failed(at);
    }
    jobs_.lost_with_the_machine(begun.job);
  }
}

wire::StepEnded Agent::failed(const NodeStep& at) const {
  wire::StepEnded ended;
  ended.set_node(at.node);
  ended.set_job_id(at.key.job);
  ended.set_attempt(at.key.attempt);
  ended.set_step_id(at.key.step);
  ended.set_system_failure(true);
  ended.set_ended(machine_.here().clock.seconds());
  return ended;
}

bool Agent::step_known(const NodeStep& at) const {
  return steps_.contains(at);
}

const wire::StepEnded* Agent::step_ended(const NodeStep& at) const {
  const auto found = steps_.find(at);
  return found == steps_.end() || !found->second.result ? nullptr : &*found->second.result;
}

bool Agent::used(const NodeStep& at) const {
  return steps_.contains(at) || used_.contains(at);
}

std::vector<NodeStep> Agent::steps_running(const NodeJob& job) const {
  std::vector<NodeStep> found;
  for (const auto& [at, step] : steps_) {
    if (at.node != job.node || at.key.job != job.job || at.key.attempt != job.attempt) continue;
    if (!step.result) found.push_back(at);
  }
  return found;
}

void Agent::start_batch_step(const NodeStep& at, const wire::Launch& launch,
                             std::move_only_function<void(Result<void>)> started) {
  start_step(at, launch.ticket().spec(), nullptr, std::move(started));
}

/// As Steps::start(): the record, the supervisor, then its order; of a batch step when the start is
/// synced.
void Agent::start_step(const NodeStep& at, const std::string& spec, std::shared_ptr<Socket> client,
                       std::move_only_function<void(Result<void>)> done) {
  Step& step = steps_[at];
  step.spec = spec;
  step.done = std::move(done);
  machine_.spool().steps[at] = {.spec = spec, .started = false, .result = {}};
  machine_.place("before_spawn");
  machine_.spawn({.at = at, .client = std::move(client)});
  machine_.place("after_spawn");
  if (at.key.step != wire::kBatchStep) return give_order(at);
  machine_.here().agenda.after(
      machine_.here().random.skewed(milliseconds(2), milliseconds(400)), mine([this, at] {
        machine_.spool().begun[{{at.node, at.key.job, at.key.attempt}, at.key.step}] =
            machine_.boot();
        give_order(at);
      }));
}

void Agent::give_order(const NodeStep& at) {
  const auto found = steps_.find(at);
  if (found == steps_.end() || found->second.ordered || found->second.result) return;
  machine_.place("before_order");
  found->second.ordered = true;
  machine_.order(at);
  machine_.place("after_order");
  wire::StepStarted message;
  message.set_spec(found->second.spec);
  message.set_node(at.node);
  conversation_.send(message);
  if (auto done = std::exchange(found->second.done, {})) done({});
}

void Agent::end_step(const NodeStep& at, const std::string& /*cause*/, bool now) {
  if (step_ended(at) == nullptr) machine_.end(at, now);
}

void Agent::supervisor_done(const NodeStep& at) {
  const auto record = machine_.spool().steps.find(at);
  if (record != machine_.spool().steps.end() && record->second.result) {
    take_result(at, *record->second.result);
  }
}

void Agent::supervisor_lost(const NodeStep& at) {
  const auto record = machine_.spool().steps.find(at);
  if (record == machine_.spool().steps.end()) return;
  if (!record->second.result) record->second.result = failed(at);
  take_result(at, *record->second.result);
}

void Agent::take_result(const NodeStep& at, const wire::StepEnded& ended) {
  const auto found = steps_.find(at);
  if (found == steps_.end() || found->second.result) return;
  found->second.result = ended;
  machine_.place("step_ended");
  conversation_.send(ended);
  jobs_.step_ended(at);
  if (auto done = std::exchange(found->second.done, {})) {
    done(fail(Code::job_completed, "the step was ended before it began"));
  }
}

/// As Steps::refuse().
void Agent::refuse_step(const NodeStep& at) {
  if (!used_.add(at)) return;
  wire::Forget used;
  used.set_step_id(at.key.step);
  add_to_record({at.node, at.key.job, at.key.attempt}, wire::framed(used));
}

/// As Steps::forget().
void Agent::forget_step(const NodeStep& at) {
  if (step_ended(at) == nullptr) return;
  if (at.key.step != wire::kBatchStep) refuse_step(at);
  drop(at);
}

void Agent::drop(const NodeStep& at) {
  if (step_ended(at) == nullptr) return;
  machine_.spool().steps.erase(at);
  machine_.spool().begun.erase({{at.node, at.key.job, at.key.attempt}, at.key.step});
  steps_.erase(at);
}

void Agent::forget_steps(const NodeJob& job) {
  std::vector<NodeStep> all;
  for (const auto& [at, step] : steps_) {
    if (at.node == job.node && at.key.job == job.job && at.key.attempt == job.attempt) {
      all.push_back(at);
    }
  }
  for (const NodeStep& at : all) drop(at);
  used_.forget(job);
}

// ---- Launches
// ------------------------------------------------------------------------------------

void Agent::accept(const std::shared_ptr<Socket>& client) {
  clients_.push_back(client);
  client->start({.frame =
                     [&machine = machine_, life = life_, this,
                      weak = std::weak_ptr(client)](std::string_view bytes) {
                       std::move_only_function<void()> read = [this, weak, bytes] {
                         const auto socket = weak.lock();
                         if (!socket || std::erase(clients_, socket) == 0) return;
                         wire::Frame frame;
                         (void)wire::scan_frame(bytes, wire::kMostBytes, frame);
                         auto launch = wire::decode<wire::Launch>(frame.payload);
                         if (frame.kind != wire::Kind::Launch || !launch) return socket->close();
                         waiting_.push_back({.client = socket, .launch = std::move(*launch)});
                         const auto it = std::prev(waiting_.end());
                         if (settle(*it, false)) {
                           waiting_.erase(it);
                           return;
                         }
                         it->patience =
                             machine_.here().agenda.after(kLaunchPatience, mine([this, it] {
                                                            settle(*it, true);
                                                            waiting_.erase(it);
                                                          }));
                       };
                       machine.as_agent(life, read);
                     },
                 .closed =
                     [&machine = machine_, life = life_, this, weak = std::weak_ptr(client)] {
                       std::move_only_function<void()> gone = [this, weak] {
                         std::erase(clients_, weak.lock());
                       };
                       machine.as_agent(life, gone);
                     }});
}

bool Agent::settle(Waiting& waiting, bool last_chance) {
  const wire::Ticket& ticket = waiting.launch.ticket();
  const node::LaunchVerdict verdict =
      node::decide_launch(ticket, orders_.key_of(ticket.node()), machine_.here().clock.seconds(),
                          {.uid = waiting.client->uid()}, last_chance, *this, jobs_);
  if (std::holds_alternative<node::LaunchWaits>(verdict)) return false;
  if (const auto* refused = std::get_if<node::LaunchRefused>(&verdict)) {
    wire::LaunchReply reply;
    *reply.mutable_refusal() = wire::to_refusal(refused->why);
    waiting.client->send(wire::framed(reply));
    waiting.client->close();
    return true;
  }
  start_step(std::get<node::LaunchStarts>(verdict).at, ticket.spec(), waiting.client,
             [](const Result<void>&) {});
  return true;
}

void Agent::look_again() {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto current = it++;
    if (!settle(*current, false)) continue;
    machine_.here().agenda.cancel(current->patience);
    waiting_.erase(current);
  }
}

}  // namespace berth::rehearsal
