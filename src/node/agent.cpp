// What agent.h promises.
#include "node/agent.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "auth/random.h"
#include "base/printable.h"
#include "base/version.h"
#include "net/paths.h"
#include "node/gpu_holder.h"
#include "node/machine_identity.h"
#include "node/scripts.h"
#include "step/container.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::node {
namespace {

/// Between two writes of how far the controller's store is.
constexpr std::chrono::seconds kBetweenMemories{10};
/// How often it looks whether its certificate has to be renewed; registrations may be months apart.
constexpr std::chrono::hours kRenewalLook{24};
/// Of what tells this process from other agents; kept nowhere, so that no copy of a disk has it.
constexpr std::size_t kInstanceBytes = 16;

}  // namespace

Result<std::unique_ptr<Agent>> Agent::open(net::Loop& loop, Log& log, Inventory inventory,
                                           Place place) {
  if (::mkdir(place.spool.c_str(), 0755) != 0 && errno != EEXIST) {
    return fail(Code::io, fmt::format("{}: {}", place.spool, std::strerror(errno)));
  }
  auto fence = Fence::open(place.spool + "/begun.log", this_boot_id());
  if (!fence) return pass(std::move(fence.error()));
  std::unique_ptr<Agent> agent(
      new Agent(loop, log, std::move(inventory), std::move(place), **fence));
  agent->fence_ = std::move(*fence);
  return agent;
}

Agent::Agent(net::Loop& loop, Log& log, Inventory inventory, Place place, Fence& fence)
    : loop_(loop),
      log_(log),
      inventory_(std::move(inventory)),
      place_(std::move(place)),
      children_(loop),
      crash_(step::CrashPoints::from_environment()),
      here_{.loop = loop,
            .log = log,
            .children = children_,
            .fence = fence,
            .cgroups = cgroups_,
            .fencing = fencing_,
            .crash = crash_,
            .spool = place_.spool,
            .spool_key = net::run_key(place_.spool),
            .supervisor = place_.supervisor,
            .pmix_helper = place_.pmix_helper,
            .emulated = place_.emulated,
            .names = {},
            .open_files = place_.open_files,
            .machine = place_.emulated ? nullptr : &inventory_.machine,
            .config = {}},
      uplink_(loop, log,
              {.trusted =
                   [this](uid_t uid) {
                     return uid == 0 || uid == ::geteuid() || uid == place_.slurm_uid;
                   },
               .where = [this] { return controller(); },
               .session = [this] { return session(); }},
              {.registration =
                   [this] {
                     orders_.registers();
                     return registration();
                   },
               .registered = [this](const wire::Registered& m) { return registered(m); },
               .frame = [this](const wire::Frame& frame) { take(frame); },
               .asked =
                   [this](std::uint64_t number) {
                     orders_.asked(number);
                     controller_clock_.asked(number, boot_now());
                   },
               .answered = [this](std::uint64_t number) { orders_.answered(number); },
               .told_time = [this](std::uint64_t number,
                                   const ControllerClock::Told& told) { time_told(number, told); },
               .clock_ahead = [this] { return clock_ahead_; },
               .lost =
                   [this] {
                     orders_.lost();
                     controller_clock_.forget_questions();
                   },
               .leases_rest =
                   [this](std::chrono::seconds longest) {
                     log_.info("the controller is being stopped; jobs may run on for {} s",
                               longest.count());
                     orders_.leases_rest(longest);
                   }}),
      steps_(here_,
             {.started =
                  [this](const NodeStep& at, const std::string& spec) {
                    wire::StepStarted message;
                    message.set_spec(spec);
                    message.set_node(at.node);
                    uplink_.send(message);
                  },
              .ending =
                  [this](const NodeStep& at, wire::StepEnded& ended) {
                    step_gpus_.put(at, true, *ended.mutable_usage()->mutable_figures());
                    step_gpus_.forget(at);
                  },
              .ended =
                  [this](const NodeStep& at, const wire::StepEnded& ended) {
                    uplink_.send(ended);
                    jobs_.step_ended(at);
                  },
              .measured = [this](const NodeStep& at, const Steps::Question& question,
                                 const Steps::Answer& known) { measured(at, question, known); },
              .stuck =
                  [this](const NodeStep& at, const std::string& reason) {
                    wire::NodeTrouble message;
                    message.set_node(at.node);
                    message.set_reason(cut_text(reason, kMostReason));
                    uplink_.send(message);
                  },
              .unfit = [this](const NodeStep& at,
                              const std::string& reason) { tell_trouble(at.node, reason); }}),
      receivers_(here_, {.gone = [this](const NodeJob& at) { jobs_.receivers_gone(at); },
                         .stuck =
                             [this](const std::string& node, const std::string& reason) {
                               wire::NodeTrouble message;
                               message.set_node(node);
                               message.set_reason(reason);
                               uplink_.send(message);
                             }}),
      job_host_(here_, steps_, receivers_),
      jobs_(job_host_, {.begun = [this](const wire::JobBegun& m) { uplink_.send(m); },
                        .gone = [this](const wire::JobGone& m) { uplink_.send(m); },
                        .changed = [this](const NodeJob& at) { gate_.job_changed(at); },
                        .ended =
                            [this](const NodeJob& at) {
                              gpus_freed(at);
                              tell_gpus(at);
                              meter_.forget(at);
                            }}),
      order_host_(make_order_host()),
      orders_(*order_host_, jobs_),
      gate_(
          here_, steps_, receivers_, jobs_,
          [this](const std::string& node) { return orders_.key_of(node); },
          [this] { return ticket_time(); },
          {.where = [this] { return controller(); }, .session = [this] { return session(); }}),
      meter_(metered_gpus(inventory_)),
      step_gpus_(mark_of_process),
      idle_(metered_gpus(inventory_)),
      // A value that cannot be read was refused with the file.
      gpu_parameters_(conf::gpu_parameters(inventory_.keys.node).value_or(conf::GpuParameters())),
      gpu_memory_(metered_gpus(inventory_),
                  [this](std::uint32_t pid) { return steps_.owner(pid); }),
      health_(metered_gpus(inventory_), gpu_parameters_.probation, look_at_holder),
      gpu_watch_(loop, log, children_,
                 {.round = [this](const GpuRound& round) { gpus_seen(round); },
                  .xid = [this](const survey::Xid& xid) { xid_seen(xid); }}),
      started_(std::time(nullptr)),
      instance_(auth::random_bytes(kInstanceBytes)) {
  std::string why_not;
  const conf::CgroupConf limits = inventory_.fences.limits.value_or(conf::CgroupConf());
  cgroups_ = Cgroups::find({.spool = place_.spool,
                            .by_job = !place_.emulated,
                            .whole_machine = !place_.emulated && ::geteuid() == 0,
                            .slice = limits.slice},
                           why_not);
  set_up_fences();
  if (!cgroups_.usable()) {
    limits_.push_back(fmt::format(
        "processes are kept together by parentage only ({}): one that is orphaned when its "
        "supervisor is killed is found by its environment",
        why_not));
  }
  if (::geteuid() != 0) {
    limits_.push_back("without root only jobs of the user who started it can run");
  }
  if (!place_.emulated) return;
  limits_.push_back("CPU masks are computed and exported, not set");
  why_not.clear();
  if (write_names()) {
    here_.names = PretendedNames::make(hosts_file(), why_not);
  } else {
    why_not = fmt::format("{}: {}", hosts_file(), std::strerror(errno));
  }
  if (!why_not.empty()) {
    limits_.push_back(fmt::format("jobs cannot reach nodes by their names ({})", why_not));
  } else if (::geteuid() != 0) {
    limits_.push_back(
        "jobs run in a user namespace (for the names of nodes): sudo does not work there");
  }
}

Agent::~Agent() {
  loop_.unwatch(lease_alarm_.fd());
  loop_.cancel(renewal_timer_);
  if (memory_timer_ != net::TimerId::none) {
    loop_.cancel(memory_timer_);
    write_memory(false);
  }
  fencing_.leave();
  cgroups_.leave();
}

void Agent::set_up_fences() {
  fencing_ = Fencing(cgroup::this_kernel(), inventory_.fences, here_.config, cgroups_,
                     inventory_.machine, place_.emulated);
}

/// The fence has holes: the node says so and takes no more jobs.
void Agent::tell_fence_trouble() {
  const std::string trouble = fencing_.trouble();
  if (trouble.empty()) return;
  log_.error("jobs cannot be fenced in: {}", trouble);
  if (place_.emulated) return;
  for (const auto& [node, key] : orders_.keys()) {
    wire::NodeTrouble message;
    message.set_node(node);
    message.set_reason(cut_text(trouble, kMostReason));
    uplink_.send(message);
  }
}

void Agent::tell_trouble(const std::string& node, const std::string& reason) {
  if (!uplink_.registered()) {
    untold_trouble_.try_emplace(node, reason);
    return;
  }
  wire::NodeTrouble message;
  message.set_node(node);
  message.set_reason(cut_text(reason, kMostReason));
  uplink_.send(message);
}

bool Agent::write_names() const {
  std::vector<std::string> names;
  for (const wire::NodeReport& node : inventory_.nodes) names.push_back(node.name());
  return PretendedNames::write(hosts_file(), names);
}

Result<void> Agent::start() {
  const auto memory = step::read_file(store_memory_file(place_.spool));
  if (memory && !memory_.ParseFromString(*memory)) {
    log_.error("{} cannot be read: an old copy of the controller's store would not be noticed",
               store_memory_file(place_.spool));
    memory_.Clear();
  }
  adopt();
  take_up_orders();
  if (place_.emulated) {
    switchboard_ = Switchboard(place_.spool + "/mains");
    meet_nodes();
    gate_.on_switch([this](const wire::SwitchNodes& message, uid_t caller) {
      return switch_nodes(message, caller);
    });
  }
  const mode_t mode = ::geteuid() == 0 ? 0777 : 0700;
  const auto socket = net::Address::unix_socket(net::node_socket(place_.run));
  if (auto done = gate_.listen(socket, mode); !done) return done;
  by_tcp_ = !controller().is_unix() && !place_.emulated;
  if (by_tcp_) {
    if (auto done = gate_.listen(place_.tcp_listen, mode); !done) return done;
  }
  tell_health();  // of those that are missing
  remember_gpus();
  watch_gpus();
  await_missing_gpus();
  uplink_.start();
  return {};
}

Result<tls::Stream> Agent::session() const {
  auto identity = MachineIdentity::load(place_.spool);
  if (!identity) return pass(std::move(identity.error()));
  auto context = tls::Context::node(identity->own, identity->authority);
  if (!context) return pass(std::move(context.error()));
  return context->open();
}

void Agent::renew_identity() {
  if (!by_tcp_ || controller().is_unix()) return;
  loop_.cancel(renewal_timer_);
  renewal_timer_ = loop_.after(kRenewalLook, [this] { renew_identity(); });
  if (!uplink_.registered()) return;  // it looks again when it is
  const auto identity = MachineIdentity::load(place_.spool);
  if (!identity) return;
  const auto days = tls::days_left(identity->own.certificate);
  if (days && *days > tls::kNodeCertificateDays / 2) return;
  auto made = tls::make_key();
  if (!made) return log_.error("no new key: {}", made.error().what());
  new_key_ = made->key;
  wire::RenewIdentity ask;
  ask.set_wish(made->wish);
  uplink_.send(ask);
}

void Agent::identity_renewed(const wire::IdentityRenewed& message) {
  if (new_key_.empty()) return;
  auto identity = MachineIdentity::load(place_.spool);
  if (message.has_refusal() || !identity) {
    log_.error("this machine gets no new certificate: {}",
               identity ? wire::from_refusal(message.refusal()).what() : identity.error().what());
    return;
  }
  identity->own = {.key = std::exchange(new_key_, {}), .certificate = message.certificate()};
  const auto good = tls::Context::node(identity->own, identity->authority);
  const auto saved = good ? identity->save(place_.spool) : Result<void>(pass(good.error()));
  if (!saved) return log_.error("the new certificate cannot be used: {}", saved.error().what());
  log_.info("this machine has a new certificate");
}

net::Address Agent::controller() const {
  const std::string path = net::controller_socket(place_.run);
  if (place_.tcp_controller.host.empty() || ::access(path.c_str(), F_OK) == 0) {
    return net::Address::unix_socket(path);
  }
  return place_.tcp_controller;
}

void Agent::adopt_node(const std::string& node) {
  const std::vector<StepKey> unstarted = steps_.adopt(node);
  receivers_.adopt(node);
  jobs_.adopt(node, unstarted);
}

void Agent::adopt() {
  // First: what files say of these may be what was left of them by the crash.
  for (const Begun& begun : fence_->lost()) {
    const bool ours = std::ranges::any_of(
        inventory_.nodes, [&](const auto& node) { return node.name() == begun.node; });
    if (!ours) continue;
    if (begun.step) {
      steps_.lost_with_the_machine({begun.node, {begun.job, begun.attempt, *begun.step}});
    }
    jobs_.lost_with_the_machine({begun.node, begun.job, begun.attempt});
  }
  for (const wire::NodeReport& node : inventory_.nodes) {
    adopt_node(node.name());
  }
  clear_leftover_cgroups();
}

/// Cgroups of steps nobody knows: their directory was removed, the kernel was slow.
void Agent::clear_leftover_cgroups() {
  bool left = !fencing_.clear([this](std::uint32_t job, const std::string& name) {
    return !steps_.knows(job, name) && !receivers_.knows(job, name);
  });
  fencing_.sweep();
  for (const std::string& name : cgroups_.names()) {
    const std::string path = cgroups_.path_of(name);
    if (steps_.uses(path) || receivers_.uses(path)) continue;
    // What somebody made beside the steps of a job is not the agent's; it goes with the job's
    // group.
    if (const auto job = cgroups_.foreign_in(name)) {
      left |= !steps_.knows(*job) && !receivers_.knows(*job) && !cgroups_.tidy(path);
      continue;
    }
    left |= !step::clear_cgroup(path);
    cgroups_.tidy(path);
  }
  if (left) loop_.after(std::chrono::milliseconds(200), [this] { clear_leftover_cgroups(); });
}

wire::RegisterNodes Agent::registration() const {
  wire::RegisterNodes message;
  for (const wire::NodeReport& node : inventory_.nodes) {
    if (switchboard_.off(node.name())) continue;
    wire::NodeReport& report = *message.add_nodes();
    report = node;
    report.set_boot_id(this_boot_id());
    if (const auto since = switchboard_.since(node.name()); since > 0) {
      report.set_boot_time(since);
      report.set_boot_id(fmt::format("{} {}", report.boot_id(), since));
    }
    for (std::string& spec : steps_.specs(node.name())) {
      report.add_steps()->set_spec(std::move(spec));
    }
    for (const wire::HeldJob& held : jobs_.held(node.name())) *report.add_jobs() = held;
    report.set_gpus_unwatched(place_.emulated || !idle_.sees_all());
    put_gpus_out(*report.mutable_gpus_out());
  }
  wire::NodeAddress& address = *message.mutable_address();
  if (by_tcp_) {
    address.set_host(inventory_.machine.host);
    address.set_port(place_.tcp_listen.port);
  } else {
    address.set_unix_path(net::node_socket(place_.run));
  }
  message.set_version(std::string(kBerthVersion));
  message.set_epoch(orders_.epoch());
  message.set_instance(instance_);
  if (memory_.store() != 0) *message.mutable_memory() = memory_;
  message.set_emulated(place_.emulated);
  message.set_started(started_);
  for (const std::string& limit : limits_) message.add_limits(limit);
  const bool asked = inventory_.fences.step_pids.value_or(1) > 0;
  if (!place_.emulated && asked && !fencing_.limits_processes()) {
    message.add_limits("a step may start as many processes as the machine has room for");
  }
  const bool memory = fencing_.fences_memory();
  if (const bool devices = fencing_.fences_devices(); !memory || !devices) {
    message.add_limits(fmt::format("{} of a job {} counted, not fenced",
                                   memory    ? "devices"
                                   : devices ? "memory"
                                             : "memory and devices",
                                   devices && !memory ? "is" : "are"));
  }
  return message;
}

/// What the controller's store was at last. A crash may lose the last moments of it, which then ask
/// for less.
void Agent::remember(const wire::StoreMemory& memory) {
  if (memory.store() == 0) return;
  const bool other = memory.store() != memory_.store() || memory.mark() != memory_.mark();
  if (!other && memory.commits() <= memory_.commits()) return;
  memory_ = memory;
  if (other) return write_memory(true);
  if (memory_timer_ != net::TimerId::none) return;
  memory_timer_ = loop_.after(kBetweenMemories, [this] {
    memory_timer_ = net::TimerId::none;
    write_memory(false);
  });
}

void Agent::write_memory(bool synced) {
  const std::string path = store_memory_file(place_.spool);
  if (!step::write_file(path, memory_.SerializeAsString(), 0600, synced)) {
    log_.error("{}: {}", path, std::strerror(errno));
  }
}

bool Agent::registered(const wire::Registered& message) {
  std::size_t accepted = 0;
  for (const wire::NodeVerdict& verdict : message.nodes()) {
    if (verdict.has_refusal()) {
      orders_.refused(verdict.name());
      const Error why = wire::from_refusal(verdict.refusal());
      std::string words(why.what());
      if (!why.hint.empty()) words += "; " + why.hint;
      if (std::exchange(refusals_[verdict.name()], words) == words) continue;
      log_.error("node {} was not accepted: {}", verdict.name(), words);
      continue;
    }
    refusals_.erase(verdict.name());
    orders_.accepted(verdict.name(), verdict.key());
    ++accepted;
  }
  // Of a controller that takes none of its nodes an agent learns nothing.
  if (accepted == 0 && message.nodes_size() > 0) return false;
  orders_.see_epoch(message.epoch());
  remember(message.memory());
  here_.config = message.config();
  if (!place_.conf.empty()) here_.config.set_conf_path(place_.conf);
  if (place_.read_fences) {
    if (auto fences = place_.read_fences()) {
      inventory_.fences = std::move(*fences);
      name_files(inventory_.gres, inventory_.fences);
    } else {
      log_.error("the limits of jobs stay as they were: {}", fences.error().what());
    }
  }
  set_up_fences();
  tell_fence_trouble();
  log_.info("registered {} of {} nodes (epoch {})", accepted, message.nodes_size(),
            orders_.epoch());
  if (nodes_changed()) uplink_.send(registration());
  renew_identity();
  seek_missing_gpus(true);
  for (const wire::StepEnded& ended : steps_.unconfirmed()) uplink_.send(ended);
  steps_.repeat_stuck();
  receivers_.repeat_stuck();
  for (const auto& [node, reason] : std::exchange(untold_trouble_, {})) tell_trouble(node, reason);
  send_health();  // it may have changed since the registration was sent
  jobs_.repeat();
  gate_.keys_changed();
  check_health();
  return true;
}

/// Pretended nodes come and go with slurm.conf and scontrol create. True when some came.
bool Agent::nodes_changed() {
  if (!place_.look_again) return false;
  const auto& lines = here_.config.created_nodes();
  auto fresh = place_.look_again({lines.begin(), lines.end()});
  if (!fresh) {
    log_.error("the nodes cannot be read again: {}", fresh.error().what());
    return false;
  }
  const auto has = [](const std::vector<wire::NodeReport>& nodes, const std::string& name) {
    return std::ranges::any_of(nodes, [&](const auto& node) { return node.name() == name; });
  };
  bool came = false;
  for (const wire::NodeReport& node : fresh->nodes) {
    if (has(inventory_.nodes, node.name())) continue;
    adopt_node(node.name());
    came = true;
  }
  inventory_.nodes = std::move(fresh->nodes);
  inventory_.off_at_first = std::move(fresh->off_at_first);
  meet_nodes();
  return came;
}

void Agent::meet_nodes() {
  for (const std::string& name : inventory_.off_at_first) switchboard_.meet(name, true);
  if (!write_names()) log_.error("{}: {}", hosts_file(), std::strerror(errno));
}

/// What runs on a node that goes off is gone, as when a machine loses its power. The controller
/// learns from the next registration who is (no longer) there.
Result<void> Agent::switch_nodes(const wire::SwitchNodes& message, uid_t caller) {
  if (caller != 0 && caller != ::geteuid() && caller != place_.slurm_uid) {
    return fail(Code::access_denied, "Access/permission denied");
  }
  for (const std::string& name : message.nodes()) {
    if (std::ranges::none_of(inventory_.nodes, [&](const auto& n) { return n.name() == name; })) {
      return fail(Code::invalid_node_name, "Invalid node name specified",
                  fmt::format("{} is not a node of this cluster", name));
    }
  }
  const std::vector<std::string> names(message.nodes().begin(), message.nodes().end());
  if (auto done = switchboard_.turn(names, message.on(), std::time(nullptr)); !done) return done;
  for (const std::string& name : names) {
    log_.info("node {} is switched {}", name, message.on() ? "on" : "off");
    if (message.on()) continue;
    for (const wire::HeldJob& job : jobs_.held(name)) {
      for (const NodeStep& at : steps_.running(name, job.job_id(), job.attempt())) {
        steps_.end(at, "NODE FAILURE", true);
      }
      receivers_.end({name, job.job_id(), job.attempt()});
    }
  }
  uplink_.send(registration());
  return {};
}

void Agent::check_health() {
  loop_.cancel(health_timer_);
  if (here_.config.health_check_program().empty() || here_.config.health_check_seconds() == 0) {
    return;
  }
  const auto every = std::chrono::seconds(here_.config.health_check_seconds());
  health_timer_ = loop_.after(every, [this] { check_health(); });
  ScriptRun run;
  run.programs = {here_.config.health_check_program()};
  run.environment = script_environment({}, inventory_.nodes.front().name(), "health_check",
                                       here_.config.conf_path());
  run.limit = std::chrono::seconds(60);
  run_scripts(loop_, children_, std::move(run), [this](const std::string& trouble) {
    if (!trouble.empty()) log_.error("health check: {}", trouble);
  });
}

void Agent::take(const wire::Frame& frame) {
  const auto read = [&]<class M>(M*) { return wire::decode<M>(frame.payload); };
  switch (frame.kind) {
    case wire::Kind::BeginJob:
      if (const auto m = read(static_cast<wire::BeginJob*>(nullptr))) orders_.begin(*m);
      return;
    case wire::Kind::IdentityRenewed:
      if (const auto m = read(static_cast<wire::IdentityRenewed*>(nullptr))) identity_renewed(*m);
      return;
    case wire::Kind::EndJob:
      if (const auto m = read(static_cast<wire::EndJob*>(nullptr))) orders_.end(*m);
      return;
    case wire::Kind::EndStep:
      if (const auto m = read(static_cast<wire::EndStep*>(nullptr))) orders_.end_step(*m);
      return;
    case wire::Kind::SignalStep:
      if (const auto m = read(static_cast<wire::SignalStep*>(nullptr))) signal(*m);
      return;
    case wire::Kind::MeasureOnNodes:
      if (const auto m = read(static_cast<wire::MeasureOnNodes*>(nullptr))) measure(*m);
      return;
    case wire::Kind::SuspendJob:
      if (const auto m = read(static_cast<wire::SuspendJob*>(nullptr))) suspend(*m);
      return;
    case wire::Kind::AskGpuIdle:
      if (const auto m = read(static_cast<wire::AskGpuIdle*>(nullptr))) tell_gpu_idle(*m);
      return;
    case wire::Kind::SayInBatch:
      if (const auto m = read(static_cast<wire::SayInBatch*>(nullptr))) {
        steps_.say({m->node(), {m->job_id(), m->attempt(), wire::kBatchStep}}, m->line(), true);
      }
      return;
    case wire::Kind::NodeClaimed:
      if (const auto m = read(static_cast<wire::NodeClaimed*>(nullptr))) {
        log_.of("claims").error(
            "another agent wanted to register as node {}, from {}: that machine or its spool may "
            "be a copy of this one; it was refused",
            m->node(), m->from());
      }
      return;
    case wire::Kind::EndProbation:
      if (const auto m = read(static_cast<wire::EndProbation*>(nullptr))) {
        health_.end_probation(m->index());
        tell_health();
      }
      return;
    case wire::Kind::Forget:
      if (const auto m = read(static_cast<wire::Forget*>(nullptr))) orders_.forget(*m);
      return;
    default:
      return;
  }
}

void Agent::signal(const wire::SignalStep& message) {
  for (const NodeStep& at : steps_.running(message.node(), message.job_id(), message.attempt())) {
    const bool batch = at.key.step == wire::kBatchStep;
    if (message.has_step_id() && message.step_id() != at.key.step) continue;
    if (!message.has_step_id()) {
      const bool wanted =
          batch ? message.batch() || message.full() || message.batch_only() : !message.batch_only();
      if (!wanted) continue;
    }
    steps_.signal(at, message.signal(), batch && !message.full());
  }
}

void Agent::suspend(const wire::SuspendJob& message) {
  for (const NodeStep& at : steps_.running(message.node(), message.job_id(), message.attempt())) {
    steps_.signal(at, message.resume() ? SIGCONT : SIGSTOP, false);
  }
}

}  // namespace berth::node
