// What agents say, and what follows when a connection goes away.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/printable.h"
#include "controller/engine.h"
#include "job/silence.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::controller {
namespace {

/// So long a controller that was stopped in order may be away before leases count.
constexpr std::chrono::hours kUpgrade{1};

std::string next_job(std::uint32_t id) {
  return id == 0 ? "no job yet" : fmt::format("next job {}", id);
}

Caller self() {
  return Caller{0, 0, true};
}

}  // namespace

Log::Source Engine::log_of(const Request& request) {
  return log_.of(source_of(request.caller, request.node.get()));
}

void Engine::register_nodes(Turn& turn, const Request& request) {
  auto message = decoded<wire::RegisterNodes>(request);
  if (!message) return;
  if (request.node &&
      static_cast<std::size_t>(message->nodes_size()) > request.node->nodes.size()) {
    refuse(request.peer,
           fail(Code::access_denied, fmt::format("a registration of {} nodes by a machine whose "
                                                 "certificate speaks for {}",
                                                 message->nodes_size(), request.node->nodes.size()))
               .error());
    peer_left(turn, request.peer);
    return outbox_.close(request.peer);
  }
  wire::Registered reply;
  reply.set_epoch(tickets_.epoch());
  reply.set_even_time(clock_.even_seconds());
  reply.set_clock_adopted(clock_.adopted());
  *reply.mutable_config() = setup_.node_config;
  Agents::Agent* agent = nullptr;
  const Agents::Origin origin = Agents::Origin::of(*message, request.from);
  // An agent that knows a later store, or another one, must not be told what to do by this one.
  const Result<void> known = check_memory(*message);
  if (!known) {
    log_of(request).error("the agent at {} is refused: {}; {}", origin.text(), known.error().what(),
                          known.error().hint);
  } else {
    *reply.mutable_memory() = memory();
    agent = &agents_.arrived(request.peer, *message, origin, turn.moment);
    if (request.node) agent->certificate = request.node->serial;
    lose_unnamed(turn, request.peer, *message);
  }
  std::size_t accepted = 0;
  for (wire::NodeReport& report : *message->mutable_nodes()) {
    drop_forged_steps(request, report);
    wire::NodeVerdict& verdict = *reply.add_nodes();
    verdict.set_name(report.name());
    const Result<void> done =
        known ? register_node(turn, request, *message, report, *agent) : pass(known.error());
    if (!done) {
      if (known) {
        log_of(request).error("node {} may not register from {}: {}", report.name(), origin.text(),
                              done.error().what());
      }
      *verdict.mutable_refusal() = wire::to_refusal(done.error());
      continue;
    }
    agents_.serve(request.peer, report.name());
    verdict.set_key(tickets_.key_of(report.name()));
    changed_nodes_.insert(report.name());
    for (const wire::RunningStep& step : report.steps()) {
      if (const auto spec = wire::decode<wire::StepSpec>(step.spec())) {
        find_owner_of_step(*spec, turn.moment);
      }
    }
    ++accepted;
  }
  // A copy of a machine's identity must not make that of the machine void.
  if (request.node && accepted > 0) {
    trust_changed_ |= parts_.identities.is_at(*request.node, request.from);
    if (auto changed = parts_.identities.seen(*request.node); !changed) {
      log_of(request).error("{}", changed.error().what());
    } else if (*changed) {
      parts_.set_certificates(parts_.identities.serials());
    }
  }
  log_of(request).info("{} of {} nodes registered by the agent at {}", accepted,
                       message->nodes_size(), origin.text());
  // One that waits for a node of its own to be free, or to be in slurm.conf, is kept. A machine
  // that speaks for no node here has no reason to be connected.
  const bool welcome = agent != nullptr && (!request.node || accepted > 0 || agent->refused);
  if (welcome) {
    outbox_.make_agent(request.peer);
    for (const Peer twin : agents_.idle_twins(request.peer)) {
      outbox_.close(twin);
      peer_left(turn, twin);
    }
  } else {
    peer_left(turn, request.peer);
  }
  turn.thens.push_back({request.peer, Then::When::any_time,
                        [this, peer = request.peer, welcome, reply = std::move(reply)] {
                          outbox_.push(peer, reply);
                          if (!welcome) outbox_.close(peer);
                        }});
}

/// Why the agent may not serve the node; nothing when it does from now on.
Result<void> Engine::register_node(Turn& turn, const Request& request,
                                   const wire::RegisterNodes& message,
                                   const wire::NodeReport& report, Agents::Agent& agent) {
  if (request.node) {
    if (auto good = parts_.identities.check(*request.node, report.name()); !good) return good;
  }
  const auto first = agents_.served_elsewhere(report.name(), request.peer, agent.origin);
  if (!first) {
    auto done = state_->register_node(report, message, turn.now);
    agent.refused |= !done;
    return done;
  }
  agent.refused = true;
  claimed(request, report.name(), *first);
  agent.claims.insert(report.name());
  return fail(Code::conflict,
              fmt::format("node {} is served by another agent, at {}", report.name(),
                          agents_.find(*first)->origin.text()),
              "this machine or its spool may be a copy of that one: `berth join` gives it a "
              "name of its own");
}

wire::StoreMemory Engine::memory() const {
  const store::Memory now = store_.memory();
  wire::StoreMemory out;
  out.set_store(now.store);
  out.set_epoch(now.epoch);
  out.set_mark(now.mark);
  out.set_commits(now.commits);
  out.set_next_job_id(now.next_job_id);
  return out;
}

Result<void> Engine::check_memory(const wire::RegisterNodes& message) const {
  constexpr std::string_view kAccept =
      "`berthctld --accept-loss`, while it does not run, goes on with this store: what runs on "
      "nodes and is not in it ends";
  const wire::StoreMemory& told = message.memory();
  const store::Memory own = store_.memory();
  if (message.has_memory()) {
    const auto line = store_.line_of({.store = told.store(),
                                      .epoch = told.epoch(),
                                      .mark = told.mark(),
                                      .commits = told.commits(),
                                      .next_job_id = told.next_job_id()});
    if (line == store::Store::Line::foreign) {
      return fail(
          Code::conflict,
          fmt::format("the node belongs to another store ({}), not to this controller's, in "
                      "{} ({})",
                      next_job(told.next_job_id()), parts_.state, next_job(own.next_job_id)),
          fmt::format("start berthctld with that store (its StateSaveLocation, or `berth "
                      "restore` of a backup); {}",
                      kAccept));
    }
    if (line == store::Store::Line::same) return {};
  } else if (message.epoch() <= tickets_.epoch()) {
    return {};
  }
  return fail(
      Code::conflict,
      fmt::format("this controller's store, in {}, is an old copy: the agent has seen start "
                  "{} with {} commits, this is start {} with {}",
                  parts_.state, std::max(message.epoch(), told.epoch()), told.commits(), own.epoch,
                  own.commits),
      fmt::format("start berthctld with the newest one; {}", kAccept));
}

/// Somebody says that he serves a node, which an agent does. Both are told; if the first one is
/// dead and its machine back, what is sent to it shows it.
void Engine::claimed(const Request& request, const std::string& node, Peer first) {
  wire::NodeClaimed message;
  message.set_node(node);
  const Agents::Origin* origin = &agents_.find(request.peer)->origin;
  message.set_from(origin->text());
  outbox_.push(first, message);
}

void Engine::let_claimants_try(Turn& turn, const std::vector<std::string>& nodes) {
  for (const Peer peer : agents_.claimants(nodes)) {
    outbox_.close(peer);
    peer_left(turn, peer);
  }
}

/// What no controller has made did not begin by right.
void Engine::drop_forged_steps(const Request& request, wire::NodeReport& report) {
  auto& steps = *report.mutable_steps();
  const auto forged = [this](const wire::RunningStep& step) {
    return !tickets_.sealed(step.spec());
  };
  const auto first = std::remove_if(steps.begin(), steps.end(), forged);
  if (first == steps.end()) return;
  log_of(request).error("node {} reports {} steps that no controller has made", report.name(),
                        std::distance(first, steps.end()));
  steps.erase(first, steps.end());
}

/// A registration names all nodes of its agent: those that it named before are gone.
void Engine::lose_unnamed(Turn& turn, Peer peer, const wire::RegisterNodes& message) {
  const std::vector<std::string> before = agents_.find(peer)->nodes;
  if (before.empty()) return;
  std::set<std::string_view> named;
  for (const wire::NodeReport& report : message.nodes()) named.insert(report.name());
  std::vector<std::string> left;
  for (const std::string& node : before) {
    if (named.contains(node)) continue;
    agents_.no_longer(peer, node);
    state_->node_lost(node, turn.now);
    changed_nodes_.insert(node);
    left.push_back(node);
  }
  let_claimants_try(turn, left);
}

void Engine::configure_agents(Turn& turn) {
  for (const Peer peer : agents_.all()) {
    const Agents::Agent* known = agents_.find(peer);
    if (known == nullptr) continue;  // it has left with the one before
    const Agents::Agent& agent = *known;
    if (agent.refused) {
      // Its other nodes may be welcome now: it registers again.
      outbox_.close(peer);
      peer_left(turn, peer);
      continue;
    }
    wire::Registered message;
    message.set_epoch(tickets_.epoch());
    message.set_even_time(clock_.even_seconds());
    message.set_clock_adopted(clock_.adopted());
    *message.mutable_config() = setup_.node_config;
    for (const std::string& node : agent.nodes) {
      wire::NodeVerdict& verdict = *message.add_nodes();
      verdict.set_name(node);
      verdict.set_key(tickets_.key_of(node));
    }
    outbox_.push(peer, message);
  }
}

bool Engine::speaks_for(Turn& turn, const Request& request, const std::string& node) {
  heard_from(turn, request.peer);
  if (agents_.speaks_for(request.peer, node)) return true;
  log_of(request).info("{} about node {} from an agent that does not serve it",
                       wire::name_of(request.kind), node);
  return false;
}

/// A step that runs without a connection of its srun (the controller restarted) waits for it.
void Engine::find_owner_of_step(const wire::StepSpec& spec, Moment now) {
  if (spec.step_id() == wire::kBatchStep || spec.step_id() == wire::kExternStep) return;
  const StepName name{spec.job_id(), spec.step_id()};
  const job::Job* job = state_->find(spec.job_id());
  if (job == nullptr || !job->running || !job->running->open_steps.contains(spec.step_id())) return;
  changed_jobs_.insert(spec.job_id());
  owners_.await_step_owner(name, now + kRestartGrace);
}

void Engine::job_begun(Turn& turn, const Request& request) {
  const auto message = decoded<wire::JobBegun>(request);
  if (!message || !speaks_for(turn, request, message->node())) return;
  state_->job_begun(*message, turn.now);
  changed_jobs_.insert(message->job_id());
}

void Engine::job_gone(Turn& turn, const Request& request) {
  const auto message = decoded<wire::JobGone>(request);
  if (!message || !speaks_for(turn, request, message->node())) return;
  if (!message->trouble().empty()) {
    log_of(request).error("node {}, job {}: {}", message->node(), message->job_id(),
                          cut_text(message->trouble(), kMostReason));
  }
  state_->job_gone(*message, turn.now);
  changed_jobs_.insert(message->job_id());
  changed_nodes_.insert(message->node());
  const job::Job* job = state_->find(message->job_id());
  if (job == nullptr || !job->running) owners_.forget_steps_of(message->job_id());
}

void Engine::job_gpus(Turn& turn, const Request& request) {
  const auto message = decoded<wire::JobGpus>(request);
  if (!message || !speaks_for(turn, request, message->node())) return;
  if (state_->job_gpus(*message, turn.now)) changed_jobs_.insert(message->job_id());
}

void Engine::gpu_health(Turn& turn, const Request& request) {
  const auto message = decoded<wire::GpuHealth>(request);
  if (!message || !speaks_for(turn, request, message->node())) return;
  state_->gpu_health(*message);
  changed_nodes_.insert(message->node());
}

void Engine::job_gpu_idle(Turn& turn, const Request& request) {
  const auto message = decoded<wire::JobGpuIdle>(request);
  if (!message || !speaks_for(turn, request, message->node())) return;
  state_->job_gpu_idle(*message, turn.now);
}

void Engine::step_started(Turn& turn, const Request& request) {
  const auto message = decoded<wire::StepStarted>(request);
  if (!message || !speaks_for(turn, request, message->node())) return;
  const auto spec = wire::decode<wire::StepSpec>(message->spec());
  if (!spec) return outbox_.close(request.peer);
  if (!tickets_.sealed(message->spec())) {
    log_of(request).error("node {} says that step {}.{} runs there, which no controller has made",
                          message->node(), spec->job_id(), spec->step_id());
    return;
  }
  state_->step_started(*spec, message->node(), turn.now);
  changed_jobs_.insert(spec->job_id());
  find_owner_of_step(*spec, turn.moment);
}

void Engine::step_ended(Turn& turn, const Request& request) {
  const auto message = decoded<wire::StepEnded>(request);
  if (!message || !speaks_for(turn, request, message->node())) return;
  state_->step_ended(*message, turn.now);
  changed_jobs_.insert(message->job_id());
  const job::Job* job = state_->find(message->job_id());
  if (job == nullptr || !job->running || !job->running->open_steps.contains(message->step_id())) {
    owners_.forget_step({message->job_id(), message->step_id()});
  }
}

void Engine::node_trouble(Turn& turn, const Request& request) {
  const auto message = decoded<wire::NodeTrouble>(request);
  if (!message || !speaks_for(turn, request, message->node())) return;
  log_of(request).error("node {}: {}", message->node(), cut_text(message->reason(), kMostReason));
  state_->node_trouble(message->node(), message->reason(), turn.now);
  changed_nodes_.insert(message->node());
}

void Engine::beat(Turn& turn, const Request& request) {
  const auto message = decoded<wire::Beat>(request);
  if (!message) return;
  heard_from(turn, request.peer);
  if (const Agents::Agent* agent = agents_.find(request.peer)) {
    for (const std::string& node : agent->nodes) {
      const auto clock_ahead = [&] {
        const job::NodeState* known = state_->find_node(node);
        return known == nullptr ? 0 : known->clock_ahead;
      };
      const bool was_off = clock_ahead() != 0;
      state_->node_beat(node, *message);
      // One line when it comes and one when it goes; while it drifts there is nothing new to say.
      if (const std::int64_t off = clock_ahead(); off != 0 && !was_off) {
        log_of(request).error("the clock of node {} is {} s {}; nothing is decided by it", node,
                              std::abs(off), off > 0 ? "ahead" : "behind");
      } else if (off == 0 && was_off) {
        log_of(request).info("the clock of node {} is right again", node);
      }
      changed_nodes_.insert(node);
    }
  }
  if (!message->ask()) return;
  wire::Beat reply;
  reply.set_number(message->number());
  reply.set_even_time(clock_.even_seconds());
  reply.set_clock_adopted(clock_.adopted());
  outbox_.push(request.peer, reply);
}

void Engine::peer_left(Turn& turn, Peer peer) {
  vouched_.erase(peer);
  const Agents::Agent* agent = agents_.find(peer);
  const job::Time heard = agent == nullptr ? turn.now : heard_at(*agent, turn.moment);
  const std::vector<std::string> nodes = agents_.left(peer);
  if (!nodes.empty()) {
    log_.of("node " + nodes.front())
        .info("lost the agent of {}{}", nodes.front(),
              nodes.size() > 1 ? fmt::format(" and {} other nodes", nodes.size() - 1) : "");
  }
  for (const std::string& node : nodes) {
    state_->node_lost(node, heard);
    changed_nodes_.insert(node);
  }
  let_claimants_try(turn, nodes);
  const Owners::Left left = owners_.lost(peer);
  for (const std::uint64_t key : left.asked) {
    std::erase(held_steps_, key);
    state_->drop_waiting_step(key);
  }
  for (const StepName& step : left.steps) {
    // The error says that it has ended already.
    (void)state_->end_step(step.first, step.second, self(), "", turn.now);
  }
  for (const job::JobId id : left.jobs) {
    const job::Job* job = state_->find(id);
    if (job == nullptr || job::ended(job->base)) continue;
    owners_.await_owner(id, turn.moment + (job->pending() ? kWaitingGrace : kOwnerGrace));
  }
}

job::Time Engine::heard_at(const Agents::Agent& agent, Moment now) const {
  const auto ago = std::chrono::duration_cast<std::chrono::seconds>(now - agent.heard);
  return clock_.seconds() - ago.count();
}

void Engine::heard_from(Turn& turn, Peer peer) {
  if (!agents_.heard(peer, turn.moment)) return;
  const std::vector<std::string> nodes = agents_.find(peer)->nodes;
  bool given_up = false;
  for (const std::string& node : nodes) {
    given_up |= !state_->node_heard(node, turn.now);
    changed_nodes_.insert(node);
  }
  if (nodes.empty()) return;
  log_.of("node " + nodes.front()).info("node {} is heard again", nodes.front());
  if (!given_up) return;
  outbox_.close(peer);  // it registers again
  peer_left(turn, peer);
}

void Engine::look_for_silence(Turn& turn) {
  const std::chrono::seconds timeout(setup_.policy.slurmd_timeout);
  const std::chrono::seconds limit(job::silent_seconds(setup_.policy.slurmd_timeout));
  for (const Peer peer : agents_.fall_silent(turn.moment - limit)) {
    const Agents::Agent& agent = *agents_.find(peer);
    if (agent.nodes.empty()) continue;
    log_.of("node " + agent.nodes.front())
        .info("nothing has come from the agent of {} for {} s: no jobs are started there",
              agent.nodes.front(), limit.count());
    for (const std::string& node : agent.nodes) {
      state_->node_lost(node, heard_at(agent, turn.moment));
      changed_nodes_.insert(node);
    }
  }
  next_silence_check_ = agents_.longest_ago(false).value_or(turn.moment) + limit;
  if (timeout.count() == 0) return;
  for (const Peer peer : agents_.silent_since(turn.moment - timeout)) {
    log_.info("an agent has been silent for {} s", timeout.count());
    outbox_.close(peer);
    peer_left(turn, peer);
  }
  if (const auto heard = agents_.longest_ago(true)) {
    next_silence_check_ = std::min(next_silence_check_, *heard + timeout);
  }
}

void Engine::let_leases_rest() {
  store::Batch batch;
  batch.leases_rest_until = clock_.seconds() + std::chrono::seconds(kUpgrade).count();
  // First of all: the next controller has to know how long nodes may do without it.
  Result<void> stored;
  if (degraded_) {
    stored = pass(store_error());
  } else {
    stored = store_.commit(batch);
  }
  if (!stored) {
    log_.error("jobs that may be requeued end on their nodes unless a controller is back soon: {}",
               stored.error().what());
    return;
  }
  wire::Beat message;
  message.set_leases_rest_seconds(
      static_cast<std::uint32_t>(std::chrono::seconds(kUpgrade).count()));
  for (const Peer peer : agents_.speaking()) outbox_.push(peer, message);
  flush();
}

void Engine::forgive_silence(Turn& turn, std::chrono::seconds paused) {
  log_.error(
      "the controller was held up for {} s (stopped, asleep, or its disk hangs) and heard nobody: "
      "silent nodes have SlurmdTimeout once more",
      paused.count());
  agents_.all_heard(turn.moment);
  state_->stood_still(turn.now);
  next_silence_check_ = turn.moment;
}

}  // namespace berth::controller
