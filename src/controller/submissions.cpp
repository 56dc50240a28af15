// Jobs and steps as clients ask for them.
#include <fmt/format.h>

#include <algorithm>

#include "controller/engine.h"
#include "request/parse.h"
#include "wire/refusal.h"

namespace berth::controller {
namespace {

/// A client repeats a submission for a minute; jobs that stay in memory for longer need no look at
/// the store.
constexpr std::uint32_t kTokenSeconds = 120;

/// --uid and --gid are read like all options; hardly anybody gives them.
std::optional<request::Request> read_again(const wire::Asked& asked) {
  const std::vector<std::string> words(asked.words().begin(), asked.words().end());
  const bool named = std::ranges::any_of(words, [](const std::string& word) {
    return word.starts_with("--uid") || word.starts_with("--gid");
  });
  if (!named || asked.command() != "sbatch") return std::nullopt;
  request::Surroundings around;
  around.is_root = true;
  auto parsed = request::parse(request::Command::sbatch, words, asked.script(), around);
  if (!parsed) return std::nullopt;  // refused below, with the reason
  return std::move(parsed->components.front());
}

std::optional<std::uint32_t> as_number(const std::string& text) {
  if (text.empty() || text.size() > 9 ||
      !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(std::stoul(text));
}

/// Who the job is for: the caller, or the user that an administrator names.
Result<Caller> job_owner(const wire::Asked& asked, const Caller& caller, Users& users) {
  Caller owner = caller;
  if (!caller.privileged) return owner;
  const auto read = read_again(asked);
  if (!read) return owner;
  if (const request::Given* given = read->given.find(request::Opt::uid)) {
    const std::string* name = &given->text;
    auto uid = users.uid_of(*name);
    if (!uid) uid = as_number(*name);
    if (!uid) return fail(Code::bad_value, fmt::format("Invalid user id: {}", *name));
    owner.uid = *uid;
    if (const auto user = users.by_uid(*uid)) owner.gid = user->gid;
  }
  if (const request::Given* given = read->given.find(request::Opt::gid)) {
    const std::string* name = &given->text;
    auto gid = users.gid_of(*name);
    if (!gid) gid = as_number(*name);
    if (!gid) return fail(Code::bad_value, fmt::format("Invalid group id: {}", *name));
    owner.gid = *gid;
  }
  return owner;
}

}  // namespace

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
  if (ask->test_only()) return foresee(turn, request, submitted->trial, reply);

  if (!submitted->again) ++figures_.jobs_submitted;
  const bool owned = ask->interactive() && !ask->detached();
  if (owned) outbox_.keep(peer);
  auto asked = std::make_shared<wire::Asked>(std::move(*ask->mutable_asked()));
  if (asked->command() == "sbatch") asked_.put(key, asked, size);
  turn.thens.push_back({peer, Then::When::stored,
                        [this, peer, owned, again = submitted->again, reply = std::move(reply),
                         asked = std::move(asked)]() mutable {
                          const job::JobId id = reply.job_id();
                          if (owned) owners_.own_job(id, peer);
                          parts_.crash.reached("before_submit_reply");
                          if (adviser_.add_known(*asked, reply)) {
                            outbox_.answer(peer, reply);
                          } else {
                            adviser_.answer(peer, std::move(asked), std::move(reply),
                                            advised_cluster_);
                          }
                          parts_.crash.reached("after_submit_reply");
                          // A retry: what its owner was told before did not reach it.
                          const job::Job* job = owned && again ? state_->find(id) : nullptr;
                          if (job == nullptr) return;
                          if (job::ended(job->base)) {
                            owners_.forget_job(id);
                            tell_ended(peer, *job);
                          } else if (job->running && job->running->ready) {
                            outbox_.push(peer, grant_of(*job));
                          }
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

}  // namespace berth::controller
