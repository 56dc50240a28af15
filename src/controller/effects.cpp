// What follows from a stored turn: messages to nodes, owners and those who wait.
#include <fmt/format.h>

#include <type_traits>
#include <variant>

#include "controller/engine.h"
#include "job/launch.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::controller {

template <class M>
void Engine::to_node(const std::string& node, const M& message) {
  // A node that is not there hears of it when it registers.
  if (const auto peer = agents_.serving(node)) outbox_.push(*peer, message);
}

void Engine::carry_out(const job::Effect& effect, job::Time now) {
  std::visit(
      [&](const auto& each) {
        using E = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<E, job::BeginJob>) {
          begin(each);
        } else if constexpr (std::is_same_v<E, job::EndJob>) {
          end(each);
        } else if constexpr (std::is_same_v<E, job::EndStep>) {
          end_step(each);
        } else if constexpr (std::is_same_v<E, job::SignalNodes>) {
          signal(each);
        } else if constexpr (std::is_same_v<E, job::Suspend>) {
          suspend(each);
        } else if constexpr (std::is_same_v<E, job::Forget>) {
          forget(each);
        } else if constexpr (std::is_same_v<E, job::GrantJob>) {
          grant_job(each);
        } else if constexpr (std::is_same_v<E, job::TellWaiting>) {
          tell_waiting(each);
        } else if constexpr (std::is_same_v<E, job::TellEnded>) {
          tell_ended(each);
        } else if constexpr (std::is_same_v<E, job::Notice>) {
          notice(each);
        } else if constexpr (std::is_same_v<E, job::SayInBatch>) {
          say_in_batch(each);
        } else if constexpr (std::is_same_v<E, job::AskGpuIdle>) {
          ask_gpu_idle(each);
        } else if constexpr (std::is_same_v<E, job::GrantStep>) {
          grant_step(each, now);
        } else if constexpr (std::is_same_v<E, job::StepMustWait>) {
          step_must_wait(each);
        } else if constexpr (std::is_same_v<E, job::RefuseStep>) {
          refuse_step(each);
        } else if constexpr (std::is_same_v<E, job::EndProbation>) {
          end_probation(each);
        } else if constexpr (std::is_same_v<E, job::SwitchNodes>) {
          switch_nodes(each);
        } else {
          static_assert(std::is_same_v<E, job::Log>);
          if (each.source.empty()) {
            log_.info("{}", each.text);
          } else {
            log_.of(each.source).info("{}", each.text);
          }
        }
      },
      effect);
}

void Engine::begin(const job::BeginJob& effect) {
  const job::Job* job = state_->find(effect.job);
  if (job == nullptr || !job->running) return;  // it was ended in the same turn
  std::shared_ptr<const wire::Asked> asked;
  if (job->batch) {
    asked = asked_.find(job->asked_blob);
    if (!asked) {
      auto stored = store_.asked(job->asked_blob);
      if (!stored) {
        log_.error("job {}: its script cannot be read: {}", effect.job, stored.error().what());
        return;  // the nodes ask again when they register
      }
      asked = std::make_shared<const wire::Asked>(std::move(*stored));
    }
  } else {
    asked = std::make_shared<const wire::Asked>();
  }
  const User user = user_of(*job);
  parts_.crash.reached("before_begin_job");
  for (const std::string& node : effect.nodes) {
    if (!agents_.serving(node)) continue;
    wire::BeginJob message =
        job::begin_job(*state_, *job, node, *asked, user, tickets_.epoch(),
                       clock_.even_seconds() + kTicketSeconds, Tickets::nonce());
    // Of the epilog, too: a node ends the job without us when its lease is over.
    if (setup_.node_config.prolog_size() > 0 || setup_.node_config.epilog_size() > 0) {
      for (wire::Variable& variable : job::prolog_environment(*state_, *job, node, user, false)) {
        *message.add_prolog_environment() = std::move(variable);
      }
    }
    *message.mutable_memory() = memory();
    if (message.has_batch()) {
      tickets_.sign_step(*message.mutable_batch()->mutable_ticket(), node);
    }
    to_node(node, message);
  }
  log_.debug("job {} begins on {}", effect.job, fmt::join(effect.nodes, ","));
  parts_.crash.reached("after_begin_job");
}

void Engine::end(const job::EndJob& effect) {
  parts_.crash.reached("before_end_job");
  const job::Job* job = state_->find(effect.job);
  for (const std::string& node : effect.nodes) {
    if (!agents_.serving(node)) continue;
    wire::EndJob message;
    message.set_node(node);
    message.set_job_id(effect.job);
    message.set_attempt(effect.attempt);
    message.set_cause(effect.cause);
    message.set_now(effect.now);
    if (job != nullptr && setup_.node_config.epilog_size() > 0) {
      for (wire::Variable& variable :
           job::prolog_environment(*state_, *job, node, user_of(*job), true)) {
        *message.add_epilog_environment() = std::move(variable);
      }
    }
    to_node(node, message);
  }
}

void Engine::end_step(const job::EndStep& effect) {
  for (const std::string& node : effect.nodes) {
    wire::EndStep message;
    message.set_node(node);
    message.set_job_id(effect.job);
    message.set_attempt(effect.attempt);
    message.set_step_id(effect.step);
    message.set_cause(effect.cause);
    message.set_now(effect.now);
    to_node(node, message);
  }
}

void Engine::signal(const job::SignalNodes& effect) {
  for (const std::string& node : effect.nodes) {
    wire::SignalStep message = effect.message;
    message.set_node(node);
    to_node(node, message);
  }
}

void Engine::suspend(const job::Suspend& effect) {
  for (const std::string& node : effect.nodes) {
    wire::SuspendJob message;
    message.set_node(node);
    message.set_job_id(effect.job);
    message.set_attempt(effect.attempt);
    message.set_resume(effect.resume);
    to_node(node, message);
  }
}

void Engine::forget(const job::Forget& effect) {
  parts_.crash.reached("before_forget");
  wire::Forget message;
  message.set_node(effect.node);
  message.set_job_id(effect.job);
  message.set_attempt(effect.attempt);
  if (effect.step) message.set_step_id(*effect.step);
  to_node(effect.node, message);
}

void Engine::grant_job(const job::GrantJob& effect) {
  const auto owner = owners_.owner(effect.job);
  const job::Job* job = state_->find(effect.job);
  if (!owner || job == nullptr || !job->running) return;
  outbox_.push(*owner, grant_of(*job));
}

wire::JobGrant Engine::grant_of(const job::Job& job) {
  wire::JobGrant grant = job::job_grant(*state_, job, user_of(job));
  if (setup_.keys().launch.contains("use_interactive_step")) {
    grant.set_interactive_step(setup_.keys().interactive_step_options);
  }
  return grant;
}

void Engine::tell_waiting(const job::TellWaiting& effect) {
  const auto owner = owners_.owner(effect.job);
  const job::Job* job = state_->find(effect.job);
  if (!owner || job == nullptr) return;
  wire::JobWaits message;
  message.set_job_id(effect.job);
  message.set_reason(job->reason);
  message.set_text(job->reason_text);
  outbox_.push(*owner, message);
}

void Engine::tell_ended(const job::TellEnded& effect) {
  if (effect.state == "COMPLETED") {
    ++figures_.jobs_completed;
  } else if (effect.state == "CANCELLED") {
    ++figures_.jobs_cancelled;
  } else {
    ++figures_.jobs_failed;
  }
  wire::JobEnded message;
  message.set_job_id(effect.job);
  message.set_state(effect.state);
  message.set_exit_status(effect.exit_status);
  message.set_reason(effect.reason);
  if (const auto owner = owners_.owner(effect.job)) outbox_.push(*owner, message);
  owners_.forget_job(effect.job);
  const job::Job* job = state_->find(effect.job);
  std::set<job::JobId> names = {effect.job};
  if (job != nullptr) {
    names.insert(job->array_id());
    if (job->het) names.insert(job->het->leader);
  }
  for (const job::JobId name : names) {
    if (!owners_.waited_for(name) || !state_->all_ended(name)) continue;
    message.set_job_id(name);
    message.set_exit_status(state_->highest_exit(name));
    for (const Peer peer : owners_.take_waiters(name)) outbox_.push(peer, message);
  }
}

void Engine::notice(const job::Notice& effect) {
  wire::Notice message;
  *message.mutable_line() = wire::to_line(effect.line);
  std::set<Peer> peers = owners_.step_peers(effect.job);
  if (const auto owner = owners_.owner(effect.job)) peers.insert(*owner);
  for (const Peer peer : peers) outbox_.push(peer, message);
}

void Engine::say_in_batch(const job::SayInBatch& effect) {
  wire::SayInBatch message;
  message.set_node(effect.node);
  message.set_job_id(effect.job);
  message.set_attempt(effect.attempt);
  message.set_line(effect.line);
  to_node(effect.node, message);
}

void Engine::ask_gpu_idle(const job::AskGpuIdle& effect) {
  for (const std::string& node : effect.nodes) {
    wire::AskGpuIdle message;
    message.set_node(node);
    message.set_job_id(effect.job);
    message.set_attempt(effect.attempt);
    to_node(node, message);
  }
}

void Engine::end_probation(const job::EndProbation& effect) {
  wire::EndProbation message;
  message.set_node(effect.node);
  message.set_index(effect.gpu);
  to_node(effect.node, message);
}

void Engine::grant_step(job::GrantStep effect, job::Time now) {
  const AskedStep* asked = owners_.asked_step(effect.key);
  const StepName name{effect.grant.job_id(), effect.grant.step_id()};
  changed_jobs_.insert(name.first);
  const job::Job* job = state_->find(name.first);
  if (asked == nullptr || job == nullptr) {
    // Its srun has gone while the turn waited to be stored: nobody is going to launch it.
    (void)state_->end_step(name.first, name.second, Caller{0, 0, true}, "", now);
    more_to_do_ = true;
    return;
  }
  const Peer peer = asked->peer;
  const User user = user_of(*job);
  effect.grant.set_user(user.name);
  effect.grant.set_kill_wait_seconds(setup_.keys().kill_wait_seconds);
  effect.grant.set_kill_on_bad_exit(setup_.keys().kill_on_bad_exit.value_or(false));
  effect.grant.set_wait_seconds(setup_.keys().wait_seconds);
  effect.grant.set_failure_grace_seconds(setup_.keys().failure_grace_seconds());
  effect.grant.set_srun_prolog(setup_.keys().srun_prolog);
  effect.grant.set_srun_epilog(setup_.keys().srun_epilog);
  effect.grant.clear_tickets();
  effect.grant.clear_addresses();
  for (wire::StepSpec& spec : effect.specs) {
    job::put_user(spec, user);
    const std::string node = spec.node();
    *effect.grant.add_tickets() = tickets_.sign(std::move(spec), clock_.even_seconds());
    *effect.grant.add_addresses() = agents_.address_of(node);
  }
  // An agent that serves all nodes (an emulated cluster) gains nothing by relays on its machine.
  const auto& where = effect.grant.addresses();
  const bool one_agent = std::ranges::all_of(where, [&](const wire::NodeAddress& address) {
    return !address.unix_path().empty() && address.unix_path() == where.begin()->unix_path();
  });
  const std::uint32_t width = setup_.keys().tree_width;
  effect.grant.set_tree_width(one_agent && width == conf::kDefaultTreeWidth ? 0 : width);
  owners_.forget_asked(effect.key);
  owners_.own_step(name, peer);
  outbox_.push(peer, effect.grant);
}

void Engine::step_must_wait(const job::StepMustWait& effect) {
  if (const AskedStep* asked = owners_.asked_step(effect.key)) {
    outbox_.push(asked->peer, effect.message);
  }
}

void Engine::refuse_step(const job::RefuseStep& effect) {
  const AskedStep* asked = owners_.asked_step(effect.key);
  if (asked == nullptr) return;
  wire::StepGrant message;
  *message.mutable_refusal() = wire::to_refusal(effect.error);
  outbox_.push(asked->peer, message);
  owners_.forget_asked(effect.key);
}

}  // namespace berth::controller
