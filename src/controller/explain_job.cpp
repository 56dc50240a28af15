// scontrol explain: why a job waits.
#include "controller/engine.h"
#include "schedule/why.h"
#include "schedule/why_preempt.h"
#include "text/hostlist.h"

namespace berth::controller {

void Engine::put_why(const schedule::Why& why, const Caller& caller, wire::JobExplained& out) {
  for (const std::string& fact : why.facts) out.add_facts(fact);
  out.set_position(why.position);
  out.set_waiting(why.waiting);
  out.set_planned_start(why.planned_start);
  out.set_planned_nodes(why.planned_nodes);
  out.set_basis(why.basis);
  for (const auto& [words, nodes] : why.nodes_by_cause) {
    auto* cause = out.add_causes();
    cause->set_words(words);
    cause->set_nodes(nodes);
  }
  for (const schedule::Holder& holder : why.holders) {
    auto* one = out.add_holders();
    one->set_job_id(holder.job);
    if (!hidden(holder.uid, caller)) one->set_user(users_.name_of(holder.uid));
    one->set_ends(holder.ends);
    one->set_limited(holder.limited);
    one->set_holds(holder.holds);
  }
  out.set_more_holders(why.more_holders);
  for (const schedule::Change& change : why.changes) {
    auto* one = out.add_changes();
    one->set_option(change.option);
    one->set_nodes(change.nodes);
  }
}

bool Engine::hidden(std::uint32_t uid, const Caller& caller) const {
  return !setup_.disclosure.shows_job(caller, uid);
}

void Engine::explain_job(Turn& turn, const Request& request) {
  auto ask = decoded<wire::ExplainJob>(request);
  if (!ask) return;
  const std::vector<job::JobId> ids = state_->named(ask->job());
  const job::Job* job = ids.empty() ? nullptr : state_->find(ids.front());
  if (job == nullptr) return refuse(request.peer, job::job_error(job::JobFault::no_such_job));
  if (hidden(job->uid, request.caller)) {
    return refuse(request.peer, job::job_error(job::JobFault::not_yours));
  }
  wire::JobExplained reply;
  reply.set_shown(job->shown());
  reply.set_state(std::string(job::base_name(job->base)));
  reply.set_reason(job->reason);
  if (job->pending()) {
    put_why(scheduler_->why(*state_, *job, turn.now), request.caller, reply);
  } else {
    for (const std::string& fact : schedule::facts_of_giving_way(*state_, *job, turn.now)) {
      reply.add_facts(fact);
    }
  }
  if (const auto waking = state_->waking(*job)) {
    reply.set_waking(text::compress_hostlist(waking->nodes));
    reply.set_waking_since(waking->since);
    reply.set_waking_until(waking->until);
  }
  outbox_.answer(request.peer, reply);
}

/// --test-only and --explain: nothing is submitted.
void Engine::foresee(Turn& turn, const Request& request, const std::vector<job::Job>& trial,
                     wire::SubmitReply& reply) {
  // Components of a heterogeneous job start together, when the last of them can.
  for (const job::Job& part : trial) {
    const schedule::Foreseen seen = scheduler_->foresee(*state_, part, turn.now);
    const bool never = seen.start == 0;
    const bool latest = !reply.has_explained() || never || seen.start > reply.start_time();
    if (!latest) continue;
    reply.set_start_time(seen.start);
    reply.set_test_nodes(seen.nodes);
    reply.set_test_cpus(seen.cpus);
    reply.set_partition(seen.partition);
    wire::JobExplained why;
    why.set_state("PENDING");
    why.set_reason(seen.why.reason);
    put_why(seen.why, request.caller, why);
    reply.set_explained(why.SerializeAsString());
    if (never) break;
  }
  outbox_.answer(request.peer, reply);
}

}  // namespace berth::controller
