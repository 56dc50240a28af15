// What a turn stores, and what happens when it cannot.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "controller/change_conf.h"
#include "controller/created_nodes.h"
#include "controller/engine.h"
#include "wire/refusal.h"

namespace berth::controller {
namespace {

/// How often the store is tried again while it cannot be written.
constexpr std::chrono::seconds kRetry{1};

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  std::ranges::move(from, std::back_inserter(to));
}

/// One that was stored and is deleted since, or the other way round: only the last counts.
void keep_reservations(store::Batch& to, store::Batch&& from) {
  for (const std::string& name : from.deleted_reservations) {
    std::erase_if(to.reservations, [&](const auto& record) { return record.name() == name; });
  }
  for (const auto& record : from.reservations) std::erase(to.deleted_reservations, record.name());
  append(to.reservations, std::move(from.reservations));
  append(to.deleted_reservations, std::move(from.deleted_reservations));
}

}  // namespace

Result<void> Engine::read_store(job::Time now) {
  // The clock may have been adopted since the store was written: what is in it is of before.
  const job::Time adopted = store_.clock().adopted;
  const job::Time moved = clock_.adopted() - adopted;
  auto loaded = store_.load(now - moved - setup_.policy.min_job_age);
  if (!loaded) return pass(std::move(loaded.error()));
  job::Stored stored;
  for (store::JobRow& row : loaded->jobs) stored.jobs.push_back(std::move(row.record));
  stored.nodes = std::move(loaded->nodes);
  stored.partitions = std::move(loaded->partitions);
  stored.reservations = std::move(loaded->reservations);
  stored.next_job_id = next_job_id_ = loaded->next_job_id;
  stored.leases_rest_until = loaded->leases_rest_until;
  stored.adopted = adopted;
  std::vector<std::string> left_out;
  setup_ = with_fitting_nodes(std::move(setup_), created_nodes(stored.nodes), left_out);
  for (const std::string& trouble : left_out) log_.error("{}", trouble);
  cluster::Cluster cluster = setup_.cluster;
  job::Policy policy = setup_.policy;
  for (const std::string& trouble :
       apply_partition_records(stored.partitions, setup_, cluster, policy)) {
    log_.error("{}", trouble);
  }
  advised_cluster_ = std::make_shared<const cluster::Cluster>(cluster);
  adviser_.forget();
  auto state = std::make_unique<job::State>(std::move(cluster), std::move(policy));
  std::optional<Error> damage;
  state->load(
      stored,
      [&](std::uint64_t key) -> std::optional<wire::Asked> {
        auto asked = store_.asked(key);
        if (asked) return std::move(*asked);
        if (store::is_damage(asked.error())) damage = asked.error();
        return std::nullopt;
      },
      now - moved);
  state->shift(moved, now);
  if (damage) return pass(std::move(*damage));
  scheduler_ = std::make_unique<schedule::Scheduler>();
  state_ = std::move(state);
  all_changed_ = all_jobs_changed_ = true;
  stale_ = stale_jobs_ = true;
  return {};
}

store::Batch Engine::batch_of(Turn& turn) {
  job::Dirty dirty = state_->take_dirty();
  store::Batch batch;
  std::set<std::uint64_t> named;
  for (wire::JobRecord& record : dirty.jobs) {
    named.insert(record.asked_blob());
    store::JobRow row;
    if (const job::Job* job = state_->find(record.id()); job != nullptr && job->what) {
      row.name = job->what->job_name;
      row.account = job->what->account;
    }
    row.record = std::move(record);
    batch.jobs.push_back(std::move(row));
  }
  // A refused submission leaves nothing behind.
  for (store::Blob& blob : turn.batch.blobs) {
    if (named.contains(blob.key)) batch.blobs.push_back(std::move(blob));
  }
  batch.steps = std::move(dirty.steps);
  batch.nodes = std::move(dirty.nodes);
  batch.partitions = std::move(dirty.partitions);
  batch.reservations = std::move(dirty.reservations);
  batch.deleted_reservations = std::move(dirty.deleted_reservations);
  batch.next_job_id = dirty.next_job_id;
  batch.leases_rest_until = dirty.leases_rest_until;
  batch.clock = clock_mark();
  batch.synced = dirty.sync || dirty.next_job_id;
  note_changes(batch, dirty.forgotten);
  // Jobs, and with them what they are on, change by being stored.
  if (!batch.jobs.empty() || !batch.nodes.empty()) close_vouched_without_job();
  return batch;
}

void Engine::note_changes(const store::Batch& batch, const std::vector<job::JobId>& forgotten) {
  for (const store::JobRow& row : batch.jobs) {
    changed_jobs_.insert(row.record.id());
    for (const wire::NodeShare& share : row.record.allocation().nodes()) {
      changed_nodes_.insert(share.node());
    }
  }
  for (const wire::NodeRecord& node : batch.nodes) changed_nodes_.insert(node.name());
  changed_jobs_.insert(forgotten.begin(), forgotten.end());
  for (const job::JobId job : state_->take_changed()) changed_jobs_.insert(job);
  for (const std::string& node : state_->take_changed_nodes()) changed_nodes_.insert(node);
  if (!batch.partitions.empty()) all_changed_ = true;
}

void Engine::finish(Turn& turn) {
  store::Batch batch = batch_of(turn);
  Effects effects = state_->take_effects();
  if (degraded_) {
    append(unsaved_.blobs, std::move(batch.blobs));
    append(unsaved_.jobs, std::move(batch.jobs));
    append(unsaved_.steps, std::move(batch.steps));
    append(unsaved_.nodes, std::move(batch.nodes));
    append(unsaved_.partitions, std::move(batch.partitions));
    keep_reservations(unsaved_, std::move(batch));
    if (batch.next_job_id) unsaved_.next_job_id = batch.next_job_id;
    if (batch.leases_rest_until) unsaved_.leases_rest_until = batch.leases_rest_until;
    if (batch.clock) unsaved_.clock = batch.clock;
    append(withheld_, std::move(effects));
    for (Then& then : std::exchange(turn.thens, {})) {
      if (then.when == Then::When::any_time) {
        then.run();
      } else {
        withheld_thens_.push_back(std::move(then));
      }
    }
    if (turn.moment < retry_at_) return;
    unsaved_.synced = true;
    if (unsaved_.empty()) unsaved_.next_job_id = next_job_id_;  // something to try with
    batch = std::exchange(unsaved_, {});
    effects = std::exchange(withheld_, {});
    turn.thens = std::exchange(withheld_thens_, {});
  }
  if (!batch.empty()) {
    parts_.crash.reached("before_commit");
    const Moment start = clock_.moment();
    const auto done = store_.commit(batch);
    figures_.count_commit(microseconds_since(start), done.has_value());
    if (!done) return cannot_store(turn, std::move(batch), std::move(effects), done.error());
    if (batch.next_job_id) next_job_id_ = *batch.next_job_id;
    parts_.crash.reached("after_commit");
  }
  if (degraded_) {
    degraded_ = false;
    log_.info("the state can be written again");
    const std::lock_guard lock(mutex_);
    events_.insert(events_.begin(), std::make_move_iterator(postponed_.begin()),
                   std::make_move_iterator(postponed_.end()));
    postponed_.clear();
  }
  carry_on(turn, std::move(effects));
}

void Engine::carry_on(Turn& turn, Effects effects) {
  for (Then& then : turn.thens) then.run();
  for (const job::Effect& effect : effects) carry_out(effect, turn.now);
}

void Engine::tell_damage() {
  damage_told_ = true;
  log_.error(
      "the store is damaged: {}; it has been so since it was written. `berthctld --check` says "
      "more "
      "when the controller is stopped, `berth restore FILE` puts a backup in its place",
      store_.damage());
}

Error Engine::store_error() const {
  return fail(Code::io,
              fmt::format("the controller cannot write its state: {}; nothing was changed",
                          why_degraded_),
              "it tries again by itself, and jobs that run go on")
      .error();
}

void Engine::cannot_store(Turn& turn, store::Batch batch, Effects effects, const Error& why) {
  if (!degraded_) log_.error("the state cannot be written: {}", why.what());
  degraded_ = true;
  why_degraded_ = why.what();
  retry_at_ = turn.moment + kRetry;
  std::vector<Then> facts;
  for (Then& then : turn.thens) {
    if (then.when == Then::When::any_time) {
      then.run();
    } else if (then.when == Then::When::stored) {
      refuse(then.peer, store_error());
    } else {
      facts.push_back(std::move(then));
    }
  }
  if (!turn.asked_for_changes) {
    // Only what has happened: it stays true in memory, and nobody hears of it until it is stored.
    unsaved_ = std::move(batch);
    withheld_ = std::move(effects);
    withheld_thens_ = std::move(facts);
    return;
  }
  // What clients asked for is undone by reading the store. What nodes said in this turn, and what
  // runs where, is heard again from the nodes themselves.
  for (const Then& then : facts) refuse(then.peer, store_error());
  if (auto done = read_store(turn.now); !done) {
    log_.error("the state cannot be read either: {}", done.error().what());
    parts_.shut();  // nothing was acknowledged that is not stored; a restart reads it
    return;
  }
  for (const Peer peer : agents_.all()) {
    agents_.left(peer);
    outbox_.close(peer);
  }
  held_steps_ = owners_.asked_keys();
}

}  // namespace berth::controller
