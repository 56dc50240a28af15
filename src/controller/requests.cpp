// What clients ask of the state thread. Each handler checks whose job it is.
#include <fmt/format.h>

#include <algorithm>

#include "controller/change_cancel.h"
#include "controller/change_conf.h"
#include "controller/change_jobs.h"
#include "controller/change_update.h"
#include "controller/engine.h"
#include "controller/info_diagnose.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::controller {
namespace {

/// A client repeats a submission for a minute; jobs that stay in memory for longer need no look at
/// the store.
constexpr std::uint32_t kTokenSeconds = 120;

/// --uid of root: the value of a long option in the words.
std::optional<std::string> option_value(const wire::Asked& asked, std::string_view name) {
  const auto& words = asked.words();
  for (int i = 0; i < words.size(); ++i) {
    if (words[i] == "--" || !words[i].starts_with("-")) break;
    if (words[i] == name && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(name) && words[i].size() > name.size() &&
        words[i][name.size()] == '=') {
      return words[i].substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> as_number(const std::string& text) {
  if (text.empty() || text.size() > 9 ||
      !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(std::stoul(text));
}

/// Advice is about what is configured: a node that is drained today says nothing about a script.
std::shared_ptr<const cluster::Cluster> with_all_nodes(const cluster::Cluster& now,
                                                       const cluster::Cluster& configured) {
  auto copy = std::make_shared<cluster::Cluster>(now);
  for (cluster::Node& node : copy->nodes) {
    const auto known = configured.find_node(node.name);
    node.usable = !known || configured.nodes[*known].usable;
  }
  return copy;
}

/// Who the job is for: the caller, or the user that an administrator names.
Result<Caller> job_owner(const wire::Asked& asked, const Caller& caller, Users& users) {
  Caller owner = caller;
  if (!caller.privileged) return owner;
  if (const auto name = option_value(asked, "--uid")) {
    auto uid = users.uid_of(*name);
    if (!uid) uid = as_number(*name);
    if (!uid) return fail(Code::bad_value, fmt::format("Invalid user id: {}", *name));
    owner.uid = *uid;
    if (const auto user = users.by_uid(*uid)) owner.gid = user->gid;
  }
  if (const auto name = option_value(asked, "--gid")) {
    auto gid = users.gid_of(*name);
    if (!gid) gid = as_number(*name);
    if (!gid) return fail(Code::bad_value, fmt::format("Invalid group id: {}", *name));
    owner.gid = *gid;
  }
  return owner;
}

}  // namespace

Engine::Handler Engine::handler_of(wire::Kind kind) {
  using wire::Kind;
  switch (kind) {
    case Kind::SubmitJob:
      return &Engine::submit;
    case Kind::CreateStep:
      return &Engine::create_step;
    case Kind::GetAllocation:
      return &Engine::get_allocation;
    case Kind::ReclaimJob:
      return &Engine::reclaim_job;
    case Kind::ReclaimStep:
      return &Engine::reclaim_step;
    case Kind::FinishJob:
      return &Engine::finish_job;
    case Kind::WaitJob:
      return &Engine::wait_job;
    case Kind::GetAccess:
      return &Engine::get_access;
    case Kind::GetScript:
      return &Engine::get_script;
    case Kind::ActOnJobs:
      return &Engine::act_on_jobs;
    case Kind::CancelJobs:
      return &Engine::cancel_jobs;
    case Kind::Change:
      return &Engine::change;
    case Kind::Diagnose:
      return &Engine::diagnose;
    case Kind::Reconfigure:
      return &Engine::reconfigure;
    case Kind::Shutdown:
      return &Engine::shutdown;
    case Kind::SetDebug:
      return &Engine::set_debug;
    case Kind::RegisterNodes:
      return &Engine::register_nodes;
    case Kind::JobBegun:
      return &Engine::job_begun;
    case Kind::JobGone:
      return &Engine::job_gone;
    case Kind::StepStarted:
      return &Engine::step_started;
    case Kind::StepEnded:
      return &Engine::step_ended;
    case Kind::NodeTrouble:
      return &Engine::node_trouble;
    case Kind::Beat:
      return &Engine::beat;
    default:
      return nullptr;
  }
}

void Engine::refuse(Peer peer, const Error& error) {
  wire::Done done;
  *done.mutable_refusal() = wire::to_refusal(error);
  outbox_.answer(peer, done);
}

template <class M>
void Engine::answer_when_stored(Turn& turn, Peer peer, M message) {
  turn.thens.push_back({peer, Then::When::stored, [this, peer, message = std::move(message)] {
                          outbox_.answer(peer, message);
                        }});
}

Result<const job::Job*> Engine::visible_job(job::JobId id, const Caller& caller) const {
  const job::Job* job = state_->find(id);
  if (job == nullptr) return std::unexpected(job::job_error(job::JobFault::no_such_job));
  if (!may_touch(caller, job->uid)) {
    return std::unexpected(job::job_error(job::JobFault::not_yours));
  }
  return job;
}

User Engine::user_of(const job::Job& job) {
  User user;
  if (auto known = users_.by_uid(job.uid)) {
    user = std::move(*known);
  } else {
    user.name = std::to_string(job.uid);
    user.home = "/";
    user.shell = "/bin/sh";
    user.groups = {job.gid};
  }
  user.uid = job.uid;
  if (user.gid != job.gid) {
    user.gid = job.gid;
    user.group = users_.group_name(job.gid);
  }
  return user;
}

void Engine::submit(Turn& turn, const Request& request) {
  auto ask = decoded<wire::SubmitJob>(request);
  if (!ask) return;
  const Peer peer = request.peer;
  const auto owner = job_owner(ask->asked(), request.caller, users_);
  if (!owner) return refuse(peer, owner.error());
  if (!ask->token().empty() && setup_.policy.min_job_age < kTokenSeconds) {
    if (const auto old = store_.job_with_token(owner->uid, ask->token());
        old && *old && state_->find(**old) == nullptr) {
      wire::SubmitReply reply;
      reply.set_job_id(**old);
      return outbox_.answer(peer, reply);
    }
  }
  std::string bytes = ask->asked().SerializeAsString();
  const std::size_t size = bytes.size();
  const std::uint64_t key = store_.add_blob(turn.batch, std::move(bytes));
  const auto submitted = state_->submit(*ask, key, *owner, turn.now);
  wire::SubmitReply reply;
  if (!submitted) {
    *reply.mutable_refusal() = wire::to_refusal(submitted.error());
    return answer_when_stored(turn, peer, std::move(reply));
  }
  reply.set_job_id(submitted->id);
  for (const job::JobId id : submitted->components) reply.add_components(id);
  for (const Message& warning : submitted->warnings) *reply.add_lines() = wire::to_line(warning);
  reply.set_start_time(submitted->start_time);
  reply.set_test_nodes(submitted->test_nodes);
  reply.set_test_cpus(submitted->test_cpus);
  reply.set_partition(submitted->partition);
  if (ask->test_only()) return outbox_.answer(peer, reply);

  if (!submitted->again) ++figures_.jobs_submitted;
  const bool owned = ask->interactive() && !ask->detached();
  if (owned) outbox_.keep(peer);
  auto asked = std::make_shared<wire::Asked>(std::move(*ask->mutable_asked()));
  if (asked->command() == "sbatch") asked_.put(key, asked, size);
  turn.thens.push_back(
      {peer, Then::When::stored,
       [this, peer, owned, reply = std::move(reply), asked = std::move(asked)]() mutable {
         if (owned) owners_.own_job(reply.job_id(), peer);
         parts_.crash.reached("before_submit_reply");
         if (adviser_.add_known(*asked, reply)) {
           outbox_.answer(peer, reply);
         } else {
           adviser_.answer(peer, std::move(asked), std::move(reply), advised_cluster_);
         }
         parts_.crash.reached("after_submit_reply");
       }});
}

void Engine::create_step(Turn& turn, const Request& request) {
  auto ask = decoded<wire::CreateStep>(request);
  if (!ask) return;
  // The answer may take long; other requests of this connection need not wait for it.
  outbox_.taken(request.peer);
  outbox_.keep(request.peer);
  const std::uint64_t key = owners_.ask_step({request.peer, request.caller, std::move(*ask)});
  ask_state_for_step(key, turn.now);
}

/// Which steps run is known once all nodes of the job have said so: after a restart a new step
/// waits for that.
void Engine::ask_state_for_step(std::uint64_t key, job::Time now) {
  const AskedStep* step = owners_.asked_step(key);
  if (step == nullptr) return;
  const job::Job* job = state_->find(step->ask.job_id());
  if (job != nullptr && job->running) {
    const bool all_known = std::ranges::all_of(job->nodes, [&](const std::string& name) {
      const job::NodeState* node = state_->find_node(name);
      return node == nullptr || node->registered;
    });
    if (!all_known) {
      held_steps_.push_back(key);
      return;
    }
  }
  state_->create_step(step->ask, key, step->caller, now);
  changed_jobs_.insert(step->ask.job_id());
}

void Engine::try_held_steps(job::Time now) {
  for (const std::uint64_t key : std::exchange(held_steps_, {})) ask_state_for_step(key, now);
}

void Engine::get_allocation(Turn& /*turn*/, const Request& request) {
  auto ask = decoded<wire::GetAllocation>(request);
  if (!ask) return;
  const auto job = visible_job(ask->job_id(), request.caller);
  if (!job) return refuse(request.peer, job.error());
  if (!(*job)->running || job::ended((*job)->base)) {
    return refuse(request.peer, job::job_error((*job)->pending() ? job::JobFault::not_running
                                                                 : job::JobFault::already_done));
  }
  outbox_.answer(request.peer, job::job_grant(*state_, **job, user_of(**job)));
}

void Engine::reclaim_job(Turn& turn, const Request& request) {
  auto ask = decoded<wire::ReclaimJob>(request);
  if (!ask) return;
  const auto job = visible_job(ask->job_id(), request.caller);
  if (!job) return refuse(request.peer, job.error());
  if ((*job)->token != ask->token() || !(*job)->interactive) {
    return refuse(request.peer, job::job_error(job::JobFault::not_yours));
  }
  outbox_.keep(request.peer);
  if (job::ended((*job)->base)) return tell_ended(request.peer, **job);
  owners_.own_job(ask->job_id(), request.peer);
  if ((*job)->running && (*job)->running->ready) {
    return outbox_.answer(request.peer, job::job_grant(*state_, **job, user_of(**job)));
  }
  wire::JobWaits waits;
  waits.set_job_id((*job)->id);
  waits.set_reason((*job)->reason);
  waits.set_text((*job)->reason_text);
  outbox_.answer(request.peer, waits);
}

void Engine::tell_ended(Peer peer, const job::Job& job) {
  wire::JobEnded message;
  message.set_job_id(job.id);
  message.set_state(std::string(job::base_name(job.base)));
  message.set_exit_status(job.exit_status);
  message.set_reason(job.reason);
  outbox_.answer(peer, message);
}

void Engine::reclaim_step(Turn& turn, const Request& request) {
  auto ask = decoded<wire::ReclaimStep>(request);
  if (!ask) return;
  const auto job = visible_job(ask->job_id(), request.caller);
  if (!job) return refuse(request.peer, job.error());
  if (!(*job)->running) {
    return refuse(request.peer, job::job_error(job::JobFault::already_done));
  }
  // Its nodes may not have told of it yet; the connection stands for it all the same.
  owners_.own_step({ask->job_id(), ask->step_id()}, request.peer);
  outbox_.keep(request.peer);
  outbox_.answer(request.peer, wire::Done());
}

void Engine::finish_job(Turn& turn, const Request& request) {
  auto ask = decoded<wire::FinishJob>(request);
  if (!ask) return;
  if (auto done = state_->finish_job(ask->job_id(), request.caller, ask->exit_status(), turn.now);
      !done) {
    return refuse(request.peer, done.error());
  }
  const Peer peer = request.peer;
  turn.thens.push_back({peer, Then::When::fact, [this, peer, job = ask->job_id()] {
                          owners_.forget_job(job);
                          outbox_.answer(peer, wire::Done());
                        }});
}

void Engine::wait_job(Turn& /*turn*/, const Request& request) {
  auto ask = decoded<wire::WaitJob>(request);
  if (!ask) return;
  const auto records = state_->records_of(ask->job_id());
  if (records.empty()) {
    return refuse(request.peer, job::job_error(job::JobFault::no_such_job));
  }
  const auto job = visible_job(records.front(), request.caller);
  if (!job) return refuse(request.peer, job.error());
  if (!state_->all_ended(ask->job_id())) {
    owners_.wait_for(ask->job_id(), request.peer);
    outbox_.taken(request.peer);
    return outbox_.keep(request.peer);
  }
  wire::JobEnded message;
  message.set_job_id(ask->job_id());
  message.set_state(std::string(job::base_name((*job)->base)));
  message.set_exit_status(state_->highest_exit(ask->job_id()));
  message.set_reason((*job)->reason);
  outbox_.answer(request.peer, message);
}

void Engine::get_access(Turn& turn, const Request& request) {
  auto ask = decoded<wire::GetAccess>(request);
  if (!ask) return;
  const auto job = visible_job(ask->job_id(), request.caller);
  if (!job) return refuse(request.peer, job.error());
  if (!(*job)->running || job::ended((*job)->base)) {
    return refuse(request.peer, job::job_error(job::JobFault::already_done));
  }
  if (ask->purpose() != "attach" && ask->purpose() != "file") {
    return refuse(request.peer, fail(Code::bad_value, "no access of that kind").error());
  }
  std::vector<std::string> nodes = (*job)->nodes;
  wire::AccessGrant grant;
  if (ask->purpose() == "attach") {
    const auto& steps = (*job)->running->open_steps;
    const auto step = steps.find(ask->step_id());
    if (step == steps.end()) {
      return refuse(request.peer, job::job_error(job::JobFault::already_done));
    }
    nodes = step->second.nodes;
    grant.set_ntasks(step->second.ntasks);
    for (const std::string& node : step->second.task_nodes) grant.add_task_nodes(node);
  }
  const User user = user_of(**job);
  for (const std::string& node : nodes) {
    wire::AccessSpec spec;
    spec.set_job_id(ask->job_id());
    spec.set_attempt((*job)->attempt);
    spec.set_step_id(ask->step_id());
    spec.set_purpose(ask->purpose());
    spec.set_node(node);
    spec.set_uid(user.uid);
    spec.set_gid(user.gid);
    for (const std::uint32_t gid : user.groups) spec.add_groups(gid);
    *grant.add_tickets() = tickets_.sign(std::move(spec), turn.now);
    *grant.add_addresses() = agents_.address_of(node);
  }
  outbox_.answer(request.peer, grant);
}

void Engine::get_script(Turn& /*turn*/, const Request& request) {
  auto ask = decoded<wire::GetScript>(request);
  if (!ask) return;
  const auto job = visible_job(ask->job_id(), request.caller);
  if (!job) return refuse(request.peer, job.error());
  if (!(*job)->batch) return refuse(request.peer, job::job_error(job::JobFault::not_batch));
  auto asked = store_.asked((*job)->asked_blob);
  if (!asked) return refuse(request.peer, asked.error());
  wire::ScriptReply reply;
  reply.set_script(asked->script());
  if (reply.script().empty() && (*job)->what->request.wrap) {
    reply.set_script(fmt::format("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n",
                                 *(*job)->what->request.wrap));
  }
  outbox_.answer(request.peer, reply);
}

void Engine::act_on_jobs(Turn& turn, const Request& request) {
  auto ask = decoded<wire::ActOnJobs>(request);
  if (!ask) return;
  answer_when_stored(turn, request.peer,
                     controller::act_on_jobs(*state_, request.caller, *ask, turn.now));
}

void Engine::cancel_jobs(Turn& turn, const Request& request) {
  auto ask = decoded<wire::CancelJobs>(request);
  if (!ask) return;
  answer_when_stored(turn, request.peer,
                     controller::cancel_jobs(*state_, request.caller, *ask, users_, turn.now));
}

void Engine::change(Turn& turn, const Request& request) {
  auto ask = decoded<wire::Change>(request);
  if (!ask) return;
  const ChangeContext context{.setup = setup_,
                              .users = users_,
                              .fetch = [this](std::uint64_t key) -> std::optional<wire::Asked> {
                                auto asked = store_.asked(key);
                                if (!asked) return std::nullopt;
                                return std::move(*asked);
                              }};
  answer_when_stored(turn, request.peer,
                     controller::change(*state_, request.caller, *ask, context, turn.now));
  if (ask->what() == "node" || ask->what() == "partition") {
    all_changed_ = true;
    advised_cluster_ = with_all_nodes(state_->cluster(), setup_.cluster);
    adviser_.forget();
  }
}

void Engine::diagnose(Turn& turn, const Request& request) {
  auto ask = decoded<wire::Diagnose>(request);
  if (!ask) return;
  if (ask->reset()) {
    if (!request.caller.privileged) {
      return refuse(request.peer, fail(Code::access_denied, "Access/permission denied").error());
    }
    figures_.reset(turn.now);
    return outbox_.answer(request.peer, wire::DiagnoseReply());
  }
  figures_.connected_agents = agents_.count();
  outbox_.answer(request.peer, diagnose_reply(*state_, figures_, users_, turn.now));
}

Result<void> Engine::read_setup_again(Turn& turn) {
  auto setup = read_setup(setup_.conf_path, parts_.emulate);
  if (!setup) return pass(std::move(setup.error()));
  for (const std::string& note : setup->notes) log_.info("{}", note);
  cluster::Cluster cluster = setup->cluster;
  job::Policy policy = setup->policy;
  std::vector<wire::PartitionRecord> records;
  for (const auto& [name, record] : state_->partition_records()) records.push_back(record);
  for (const std::string& trouble : apply_partition_records(records, *setup, cluster, policy)) {
    log_.error("{}", trouble);
  }
  advised_cluster_ = std::make_shared<const cluster::Cluster>(cluster);
  adviser_.forget();
  state_->reconfigure(std::move(cluster), std::move(policy), turn.now);
  setup_ = std::move(*setup);
  all_changed_ = all_jobs_changed_ = true;
  configure_agents(turn);
  return {};
}

void Engine::reconfigure(Turn& turn, const Request& request) {
  if (auto done = read_setup_again(turn); !done) return refuse(request.peer, done.error());
  log_.info("read the configuration again, as uid {} asked", request.caller.uid);
  answer_when_stored(turn, request.peer, wire::Done());
}

void Engine::shutdown(Turn& /*turn*/, const Request& request) {
  log_.info("shutdown, as uid {} asked", request.caller.uid);
  outbox_.answer(request.peer, wire::Done());
  flush();
  parts_.shut();
}

void Engine::set_debug(Turn& /*turn*/, const Request& request) {
  auto ask = decoded<wire::SetDebug>(request);
  if (!ask) return;
  const auto level = log_level(ask->level());
  if (!level) return refuse(request.peer, level.error());
  log_.set_level(*level);
  log_.info("log level {}", ask->level());
  outbox_.answer(request.peer, wire::Done());
}

}  // namespace berth::controller
