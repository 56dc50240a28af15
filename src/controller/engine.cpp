// Turns: gather, apply, schedule, store, tell.
#include "controller/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "controller/change_conf.h"
#include "wire/refusal.h"

namespace berth::controller {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using Steady = std::chrono::steady_clock;

/// How often the store is tried again while it cannot be written.
constexpr std::chrono::seconds kRetry{1};
constexpr std::chrono::hours kIdle{1};
constexpr Steady::duration kShortest = std::chrono::milliseconds(20);

std::uint64_t since(Moment start) {
  return static_cast<std::uint64_t>(duration_cast<microseconds>(Steady::now() - start).count());
}

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  std::ranges::move(from, std::back_inserter(to));
}

/// Requests that only read, or that tell what has happened already: they need no working store.
bool needs_store(wire::Kind kind) {
  using wire::Kind;
  switch (kind) {
    case Kind::SubmitJob:
    case Kind::ActOnJobs:
    case Kind::CancelJobs:
    case Kind::Change:
    case Kind::Reconfigure:
      return true;
    default:
      return false;
  }
}

}  // namespace

Engine::Engine(Parts parts)
    : parts_(std::move(parts)),
      log_(parts_.log),
      users_(parts_.users),
      store_(std::move(parts_.store)),
      setup_(std::move(parts_.setup)),
      tickets_(parts_.cluster_key, parts_.epoch),
      adviser_(parts_.front) {
  figures_.started = figures_.since = std::time(nullptr);
}

Engine::~Engine() {
  stop();
}

Result<void> Engine::load() {
  auto done = read_store(std::time(nullptr));
  if (!done) return done;
  // Owners of interactive jobs have lost us and look for us now.
  const Moment until = Steady::now() + kRestartGrace;
  for (const auto& [id, job] : state_->jobs()) {
    if (job.interactive && !job.detached && !job::ended(job.base)) owners_.await_owner(id, until);
  }
  return {};
}

Result<void> Engine::read_store(job::Time now) {
  auto loaded = store_.load(now - setup_.policy.min_job_age);
  if (!loaded) return pass(std::move(loaded.error()));
  job::Stored stored;
  for (store::JobRow& row : loaded->jobs) stored.jobs.push_back(std::move(row.record));
  stored.nodes = std::move(loaded->nodes);
  stored.partitions = std::move(loaded->partitions);
  stored.next_job_id = next_job_id_ = loaded->next_job_id;
  cluster::Cluster cluster = setup_.cluster;
  job::Policy policy = setup_.policy;
  for (const std::string& trouble :
       apply_partition_records(stored.partitions, setup_, cluster, policy)) {
    log_.error("{}", trouble);
  }
  advised_cluster_ = std::make_shared<const cluster::Cluster>(cluster);
  adviser_.forget();
  auto state = std::make_unique<job::State>(std::move(cluster), std::move(policy));
  state->load(
      stored,
      [this](std::uint64_t key) -> std::optional<wire::Asked> {
        auto asked = store_.asked(key);
        if (!asked) return std::nullopt;
        return std::move(*asked);
      },
      now);
  scheduler_ = std::make_unique<schedule::Scheduler>();
  state_ = std::move(state);
  all_changed_ = all_jobs_changed_ = true;
  stale_ = stale_jobs_ = true;
  return {};
}

void Engine::start() {
  thread_ = std::thread([this] { work(); });
}

void Engine::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  published_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Engine::request(Request request) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back({Event::What::request, std::move(request)});
  }
  arrived_.notify_one();
}

void Engine::closed(Peer peer) {
  {
    const std::lock_guard lock(mutex_);
    Event event{Event::What::closed, {}};
    event.request.peer = peer;
    events_.push_back(std::move(event));
  }
  arrived_.notify_one();
}

void Engine::reread() {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back({Event::What::reread, {}});
  }
  arrived_.notify_one();
}

void Engine::refresh(bool with_jobs) {
  if (!stale_ && !(with_jobs && stale_jobs_)) return;
  std::unique_lock lock(mutex_);
  const std::uint64_t wanted = ++refresh_wanted_;
  refresh_jobs_ |= with_jobs;
  arrived_.notify_one();
  published_.wait(lock, [&] { return stopping_ || refresh_done_ >= wanted; });
}

Moment Engine::next_moment() const {
  if (more_to_do_) return Steady::now();
  Moment next = Steady::now() + kIdle;
  if (const auto time = state_->next_deadline()) {
    const auto wait = std::chrono::system_clock::from_time_t(static_cast<std::time_t>(*time)) -
                      std::chrono::system_clock::now();
    // What was due has just been seen to; should it stay due, it must not keep the thread busy.
    next =
        std::min(next, Steady::now() + std::max(kShortest, duration_cast<Steady::duration>(wait)));
  }
  if (const auto moment = owners_.next_deadline()) next = std::min(next, *moment);
  if (agents_.count() > 0) next = std::min(next, next_silence_check_);
  if (degraded_) next = std::min(next, retry_at_);
  return next;
}

void Engine::work() {
  Moment next = Steady::now();
  for (;;) {
    std::vector<Event> events;
    bool stopping = false;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait_until(lock, next, [&] {
        return stopping_ || !events_.empty() || refresh_wanted_ > refresh_done_;
      });
      events.swap(events_);
      stopping = stopping_;
    }
    if (!events.empty() || Steady::now() >= next) take_turn(std::move(events));
    if (stopping) return;
    std::uint64_t wanted = 0;
    bool with_jobs = false;
    {
      const std::lock_guard lock(mutex_);
      wanted = refresh_wanted_;
      with_jobs = std::exchange(refresh_jobs_, false);
    }
    if (wanted > refresh_done_) {
      publish();
      if (with_jobs) publish_jobs();
      const std::lock_guard lock(mutex_);
      refresh_done_ = wanted;
      published_.notify_all();
    }
    next = next_moment();
  }
}

void Engine::take_turn(std::vector<Event> events) {
  Turn turn;
  turn.now = std::time(nullptr);
  turn.moment = Steady::now();
  more_to_do_ = false;
  ++figures_.turns;
  figures_.queued = events.size();
  for (Event& event : events) handle(turn, event);
  pass_time(turn);
  if (!held_steps_.empty()) try_held_steps(turn.now);
  if (!degraded_) {
    const Moment start = Steady::now();
    const schedule::Figures seen = scheduler_->run(*state_, turn.now, setup_.schedule);
    figures_.count_cycle(seen, since(start), turn.now);
  }
  finish(turn);
  flush();
}

void Engine::handle(Turn& turn, Event& event) {
  const Request& request = event.request;
  if (event.what == Event::What::closed) return peer_left(turn, request.peer);
  if (event.what == Event::What::reread) {
    if (degraded_) {
      postponed_.push_back(std::move(event));
      return;
    }
    if (auto done = read_setup_again(turn); !done) {
      log_.error("the configuration was not read again: {}", done.error().what());
    } else {
      log_.info("read the configuration again");
    }
    return;
  }
  if (degraded_ && needs_store(request.kind)) return refuse(request.peer, store_error());
  if (degraded_ && request.kind == wire::Kind::CreateStep) {
    postponed_.push_back(std::move(event));  // a job that runs goes on, a little later
    return;
  }
  const Moment start = Steady::now();
  if (const Handler handler = handler_of(request.kind)) {
    turn.asked_for_changes |= needs_store(request.kind);
    (this->*handler)(turn, request);
  } else {
    outbox_.close(request.peer);
  }
  figures_.count_request(request.kind, request.caller.uid, since(start));
}

void Engine::pass_time(Turn& turn) {
  if (const auto deadline = state_->next_deadline(); deadline && *deadline <= turn.now) {
    state_->tick(turn.now);
  }
  const Owners::Left left = owners_.expired(turn.moment);
  for (const job::JobId job : left.jobs) state_->owner_gone(job, turn.now);
  for (const StepName& step : left.steps) {
    // The error says that it has ended by itself in the meantime.
    (void)state_->end_step(step.first, step.second, Caller{0, 0, true}, "", turn.now);
  }
  if (turn.moment >= next_silence_check_) drop_silent_agents(turn);
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
  batch.next_job_id = dirty.next_job_id;
  batch.synced = dirty.sync || dirty.next_job_id;
  note_changes(batch, dirty.forgotten);
  return batch;
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
    if (batch.next_job_id) unsaved_.next_job_id = batch.next_job_id;
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
    const Moment start = Steady::now();
    const auto done = store_.commit(batch);
    figures_.count_commit(since(start), done.has_value());
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

void Engine::flush() {
  // Nobody may ever ask: what changed must not grow beyond what there is.
  if (all_jobs_changed_ || changed_jobs_.size() > 1000 + 2 * state_->jobs().size()) {
    all_jobs_changed_ = true;
    changed_jobs_.clear();
  }
  if (!changed_nodes_.empty() || all_changed_) stale_ = true;
  if (!changed_jobs_.empty() || all_jobs_changed_) stale_jobs_ = true;
  parts_.front.act(outbox_.take());
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
  if (!batch.partitions.empty()) all_changed_ = true;
}

}  // namespace berth::controller
