// scontrol explain: why a job waits.
#include "controller/engine.h"
#include "schedule/why.h"
#include "text/hostlist.h"

namespace berth::controller {

void Engine::explain_job(Turn& turn, const Request& request) {
  auto ask = decoded<wire::ExplainJob>(request);
  if (!ask) return;
  const std::vector<job::JobId> ids = state_->named(ask->job());
  const job::Job* job = ids.empty() ? nullptr : state_->find(ids.front());
  if (job == nullptr) return refuse(request.peer, job::job_error(job::JobFault::no_such_job));
  const auto hidden = [&](std::uint32_t uid) {
    return setup_.private_jobs && !may_touch(request.caller, uid);
  };
  if (hidden(job->uid)) return refuse(request.peer, job::job_error(job::JobFault::not_yours));
  wire::JobExplained reply;
  reply.set_shown(job->shown());
  reply.set_state(std::string(job::base_name(job->base)));
  reply.set_reason(job->reason);
  if (job->pending()) {
    const schedule::Why why = scheduler_->why(*state_, *job, turn.now);
    for (const std::string& fact : why.facts) reply.add_facts(fact);
    reply.set_position(why.position);
    reply.set_waiting(why.waiting);
    reply.set_planned_start(why.planned_start);
    reply.set_planned_nodes(why.planned_nodes);
    reply.set_basis(why.basis);
    for (const auto& [words, nodes] : why.nodes_by_cause) {
      auto* cause = reply.add_causes();
      cause->set_words(words);
      cause->set_nodes(nodes);
    }
    for (const schedule::Holder& holder : why.holders) {
      auto* out = reply.add_holders();
      out->set_job_id(holder.job);
      if (!hidden(holder.uid)) out->set_user(users_.name_of(holder.uid));
      out->set_ends(holder.ends);
      out->set_limited(holder.limited);
      out->set_holds(holder.holds);
    }
    reply.set_more_holders(why.more_holders);
    for (const schedule::Change& change : why.changes) {
      auto* out = reply.add_changes();
      out->set_option(change.option);
      out->set_nodes(change.nodes);
    }
  }
  if (const auto waking = state_->waking(*job)) {
    reply.set_waking(text::compress_hostlist(waking->nodes));
    reply.set_waking_since(waking->since);
    reply.set_waking_until(waking->until);
  }
  outbox_.answer(request.peer, reply);
}

}  // namespace berth::controller
