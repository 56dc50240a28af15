// Turns: gather, apply, schedule, store, tell.
#include "controller/engine.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::controller {
namespace {

using std::chrono::duration_cast;

constexpr std::chrono::hours kIdle{1};
constexpr Moment::duration kShortest = std::chrono::milliseconds(20);
/// A thread that comes round so much too late could hear nobody.
constexpr std::chrono::seconds kPause{5};

/// Requests for a change, which is refused when it cannot be stored. The others read, or tell what
/// has happened already.
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
      clock_(parts_.clock),
      log_(parts_.log),
      users_(parts_.users),
      store_(std::move(parts_.store)),
      setup_(std::move(parts_.setup)),
      tickets_(parts_.cluster_key, parts_.epoch),
      adviser_(parts_.messenger),
      power_programs_(parts_.log) {
  for (const auto& [node, generation] : parts_.identities.generations()) {
    tickets_.set_generation(node, generation);
  }
  parts_.set_certificates(parts_.identities.serials());
}

Engine::~Engine() {
  stop();
}

Result<void> Engine::load() {
  const store::ClockMark& mark = store_.clock();
  clock_.resume({.boot = mark.boot,
                 .ahead = std::chrono::nanoseconds(mark.ahead_nanoseconds),
                 .adopted = mark.adopted});
  figures_.started = figures_.since = clock_.seconds();
  auto done = read_store(clock_.seconds());
  if (!done) return done;
  publish_trust();
  // Owners of interactive jobs have lost us and look for us now.
  const Moment until = clock_.moment() + kRestartGrace;
  for (const auto& [id, job] : state_->jobs()) {
    if (job.interactive && !job.detached && !job::ended(job.base)) owners_.await_owner(id, until);
  }
  wakes_at_ = clock_.moment();
  woke_ = clock_.even_seconds();
  return {};
}

void Engine::start() {
  adviser_.start();
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
  if (more_to_do_) return clock_.moment();
  Moment next = clock_.moment() + kIdle;
  if (const auto time = state_->next_deadline()) {
    // What was due has just been seen to; should it stay due, it must not keep the thread busy.
    const auto wait = duration_cast<Moment::duration>(clock_.until(*time));
    next = std::min(next, clock_.moment() + std::max(kShortest, wait));
  }
  if (const auto moment = owners_.next_deadline()) next = std::min(next, *moment);
  next = std::min(next, next_clock_look_);
  if (agents_.count() > 0) next = std::min(next, next_silence_check_);
  if (degraded_) next = std::min(next, retry_at_);
  return next;
}

void Engine::work() {
  for (;;) {
    bool stopping = false;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait_until(lock, wakes_at_, [&] {
        return stopping_ || !events_.empty() || refresh_wanted_ > refresh_done_;
      });
      stopping = stopping_;
    }
    wake();
    if (stopping) return;
  }
}

void Engine::wake() {
  std::vector<Event> events;
  {
    const std::lock_guard lock(mutex_);
    events.swap(events_);
  }
  const std::int64_t even = clock_.even_seconds();
  const std::chrono::seconds passed(even - std::exchange(woke_, even));
  paused_ = std::max(paused_, passed - std::max(planned_, std::chrono::seconds(0)));
  if (!events.empty() || clock_.moment() >= wakes_at_) take_turn(std::move(events));
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
  wakes_at_ = next_moment();
  planned_ = duration_cast<std::chrono::seconds>(wakes_at_ - clock_.moment());
}

void Engine::take_turn(std::vector<Event> events) {
  Turn turn;
  turn.now = clock_.seconds();
  turn.moment = clock_.moment();
  more_to_do_ = false;
  ++figures_.turns;
  figures_.queued = events.size();
  look_at_clock(turn);
  if (store_.damaged() && !damage_told_) tell_damage();
  if (paused_ >= kPause) forgive_silence(turn, std::exchange(paused_, std::chrono::seconds(0)));
  for (Event& event : events) handle(turn, event);
  pass_time(turn);
  if (!held_steps_.empty()) try_held_steps(turn.now);
  // In the middle of a long pass those who asked for something are answered before it goes on,
  // every other time.
  answers_first_ = in_a_pass_ && turn.asked_for_changes && !answers_first_;
  if (answers_first_) {
    more_to_do_ = true;
  } else if (!degraded_) {
    const Moment start = clock_.moment();
    const schedule::Figures seen = scheduler_->run(*state_, turn.now, setup_.schedule);
    in_a_pass_ = seen.unfinished;
    if (in_a_pass_) more_to_do_ = true;  // requests that came meanwhile are taken first
    figures_.count_cycle(seen, microseconds_since(start), state_->queue().size(), turn.now);
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
  const Moment start = clock_.moment();
  if (const Handler handler = handler_of(request.kind)) {
    turn.asked_for_changes |= needs_store(request.kind);
    (this->*handler)(turn, request);
  } else {
    outbox_.close(request.peer);
  }
  parts_.requests.count(request.kind, request.caller.uid, microseconds_since(start));
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
  if (turn.moment >= next_silence_check_) look_for_silence(turn);
}

void Engine::flush() {
  // Nobody may ever ask: what changed must not grow beyond what there is.
  if (all_jobs_changed_ || changed_jobs_.size() > 1000 + 2 * state_->jobs().size()) {
    all_jobs_changed_ = true;
    changed_jobs_.clear();
  }
  if (!changed_nodes_.empty() || all_changed_) stale_ = true;
  if (!changed_jobs_.empty() || all_jobs_changed_ || published_round_ != state_->priority_round()) {
    stale_jobs_ = true;
  }
  if (trust_changed_) {
    publish_trust();
    if (auto kept = parts_.identities.keep_addresses(); !kept)
      log_.error("{}", kept.error().what());
  }
  parts_.messenger.act(outbox_.take());
}

}  // namespace berth::controller
