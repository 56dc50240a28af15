// Which handler a message has, and requests about jobs that run. Each handler checks whose job it
// is.
#include <fmt/format.h>

#include <algorithm>

#include "controller/engine.h"
#include "job/launch.h"
#include "request/parse.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::controller {

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
    case Kind::ExplainJob:
      return &Engine::explain_job;
    case Kind::ListReservations:
      return &Engine::list_reservations;
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
    case Kind::JoinNode:
      return &Engine::join_node;
    case Kind::RenewIdentity:
      return &Engine::renew_identity;
    case Kind::MakeTokens:
      return &Engine::make_tokens;
    case Kind::RevokeNodes:
      return &Engine::revoke_nodes;
    case Kind::Hello:
      return &Engine::vouch;
    case Kind::RegisterNodes:
      return &Engine::register_nodes;
    case Kind::JobBegun:
      return &Engine::job_begun;
    case Kind::JobGone:
      return &Engine::job_gone;
    case Kind::JobGpus:
      return &Engine::job_gpus;
    case Kind::GpuHealth:
      return &Engine::gpu_health;
    case Kind::JobGpuIdle:
      return &Engine::job_gpu_idle;
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

void Engine::get_allocation(Turn& /*turn*/, const Request& request) {
  auto ask = decoded<wire::GetAllocation>(request);
  if (!ask) return;
  const auto job = visible_job(ask->job_id(), request.caller);
  if (!job) return refuse(request.peer, job.error());
  if (!(*job)->running || job::ended((*job)->base)) {
    return refuse(request.peer, job::job_error((*job)->pending() ? job::JobFault::not_running
                                                                 : job::JobFault::already_done));
  }
  outbox_.answer(request.peer, grant_of(**job));
}

void Engine::reclaim_job(Turn& /*turn*/, const Request& request) {
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
    return outbox_.answer(request.peer, grant_of(**job));
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

void Engine::reclaim_step(Turn& /*turn*/, const Request& request) {
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

void Engine::get_access(Turn& /*turn*/, const Request& request) {
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
    *grant.add_tickets() = tickets_.sign(std::move(spec), clock_.even_seconds());
    *grant.add_addresses() = agents_.address_of(node);
  }
  outbox_.answer(request.peer, grant);
}

void Engine::get_script(Turn& /*turn*/, const Request& request) {
  auto ask = decoded<wire::GetScript>(request);
  if (!ask) return;
  // Jobs that left memory have their script in the store.
  const job::Job* known = state_->find(ask->job_id());
  std::optional<wire::JobRecord> record;
  if (known == nullptr) {
    auto found = store_.job(ask->job_id());
    if (!found) return refuse(request.peer, found.error());
    if (!*found) return refuse(request.peer, job::job_error(job::JobFault::no_such_job));
    record = std::move(*found);
  }
  if (!may_touch(request.caller, known != nullptr ? known->uid : record->uid())) {
    return refuse(request.peer, job::job_error(job::JobFault::not_yours));
  }
  auto asked = store_.asked(known != nullptr ? known->asked_blob : record->asked_blob());
  if (!asked) return refuse(request.peer, asked.error());
  if (asked->command() != "sbatch") {
    return refuse(request.peer, job::job_error(job::JobFault::not_batch));
  }
  wire::ScriptReply reply;
  reply.set_script(asked->script());
  if (reply.script().empty()) {
    const std::vector<std::string> words(asked->words().begin(), asked->words().end());
    request::Surroundings around;
    around.stored = true;
    const auto parsed = request::parse(request::Command::sbatch, words, "", around);
    if (parsed && parsed->components.front().wrap) {
      reply.set_script(job::wrapped_script(*parsed->components.front().wrap));
    }
  }
  outbox_.answer(request.peer, reply);
}

}  // namespace berth::controller
