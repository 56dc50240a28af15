#include "schedule/schedule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "job/forecast.h"
#include "text/hostlist.h"

namespace berth::schedule {
namespace {

using job::Job;
using job::JobId;
using job::State;
using job::Time;
using place::JobPlan;
using place::Verdict;

constexpr Time kYear = 365L * 24 * 3600;

}  // namespace

/// What is known while nothing is freed: shapes that do not fit, and the place of the first job
/// that waits.
class Scheduler::Pass {
 public:
  Pass(State& state, Time now, const Options& options)
      : state_(&state), now_(now), options_(options) {}

  Figures all(Time now) {
    begin(now);
    figures_.backfill = true;
    std::vector<JobId> order;
    for (const job::QueueKey& key : state_->queue()) order.push_back(key.id);
    for (const JobId id : order) {
      if (figures_.placed >= options_.depth || figures_.examined >= options_.examined) break;
      consider(id);
    }
    return figures_;
  }

  /// Only jobs that came: nothing was freed, so who waited before still waits.
  Figures arrived(const std::set<job::QueueKey>& keys, Time now) {
    begin(now);
    for (const job::QueueKey& key : keys) consider(key.id);
    return figures_;
  }

  /// A job with this place in the queue comes before the one that waits first.
  [[nodiscard]] bool overtakes(const job::QueueKey& key) const {
    return first_key_ && key < *first_key_;
  }

 private:
  void begin(Time now) {
    now_ = now;
    figures_ = {};
  }

  void consider(JobId id) {
    // An array starts element by element; each start may be the last that fits.
    constexpr int kMostElements = 100000;
    for (int i = 0; i < kMostElements; ++i) {
      const Job* job = state_->find(id);
      if (job == nullptr || !job->pending()) return;
      ++figures_.examined;
      std::string reason;
      if (!state_->eligible(*job, now_, reason)) {
        if (!reason.empty()) state_->set_reason(id, reason, {}, now_);
        return;
      }
      const bool array = job->is_array_rest();
      if (!try_job(*job) || !array) return;
    }
  }

  /// True when it was started.
  bool try_job(const Job& job) {
    const JobId id = job.id;
    if (job.het) return try_het(job);
    const std::uint64_t shape = job.what->shape;
    const auto known = failed_.find(shape);
    if (known != failed_.end() && known->second.limit <= minutes_of(job)) {
      state_->set_reason(id, known->second.word, known->second.text, now_);
      return false;
    }
    ++figures_.placed;
    JobPlan plan = place::place_job(state_->cluster(), state_->usage(), job.what->request,
                                    job.interactive ? place::Detail::full : place::Detail::verdict);
    if (plan.verdict == Verdict::now && !delays_first(job, plan)) {
      if (state_->start(id, {std::move(plan)}, first_waits_.has_value(), now_)) {
        ++figures_.started;
        return true;
      }
      return false;
    }
    // It waits for its turn when it fits but is in the way of the first, else for what it lacks.
    const bool blocked = plan.verdict == Verdict::now || plan.verdict == Verdict::later;
    const std::string word = plan.verdict == Verdict::now     ? "Priority"
                             : plan.verdict == Verdict::later ? "Resources"
                             : plan.verdict == Verdict::never ? "BadConstraints"
                             : plan.pending_reason.empty()    ? "Resources"
                                                              : plan.pending_reason;
    failed_[shape] = {word, plan.reasons.nearest_miss, minutes_of(job)};
    state_->set_reason(id, word, plan.reasons.nearest_miss, now_);
    if (blocked && !first_waits_) reserve(job);
    return false;
  }

  bool try_het(const Job& job) {
    std::vector<JobPlan> plans;
    cluster::Usage usage = state_->usage();
    for (const JobId id : state_->records_of(job.het->leader)) {
      const Job* part = state_->find(id);
      ++figures_.placed;
      plans.push_back(
          place::place_job(state_->cluster(), usage, part->what->request, place::Detail::verdict));
      if (plans.back().verdict != Verdict::now || delays_first(job, plans.back())) {
        state_->set_reason(job.id, "Resources", {}, now_);
        if (!first_waits_) reserve(job);
        return false;
      }
      usage.take(plans.back().allocation);
    }
    const bool started = state_->start(job.id, plans, first_waits_.has_value(), now_);
    figures_.started += started ? 1 : 0;
    return started;
  }

  static Time minutes_of(const Job& job) {
    if (!job.time_limit_decided) return kYear / 60;  // decided by its partition when it starts
    return job.time_limit_minutes ? Time{*job.time_limit_minutes} : kYear / 60;
  }

  /// The first job that cannot start gets a place in the future; nobody behind may take it.
  void reserve(const Job& job) {
    first_waits_ = job.id;
    first_key_ = state_->key_of(job.id);
    const job::Forecast forecast = job::earliest_start(state_->cluster(), state_->usage(),
                                                       state_->jobs(), job.what->request, now_);
    reserved_at_ = forecast.start;
    reserved_ = forecast.allocation;
    std::vector<std::string> names;
    for (const cluster::NodeShare& share : reserved_.nodes) {
      reserved_nodes_.insert(share.node);
      names.push_back(state_->cluster().nodes[share.node].name);
    }
    const Time window = Time{options_.backfill_window_minutes} * 60;
    const bool near = reserved_at_ > 0 && reserved_at_ <= now_ + window;
    state_->set_planned(job.id, near ? reserved_at_ : 0,
                        near ? text::compress_hostlist(names) : std::string());
  }

  /// A job that starts now would still run when the first one's place is due, on its nodes, and
  /// take what the first one is going to need there.
  bool delays_first(const Job& job, const JobPlan& plan) const {
    if (!first_waits_) return false;
    Time limit = plan.time_limit_minutes ? Time{*plan.time_limit_minutes} * 60 : kYear;
    if (job.time_limit_decided) {
      limit = job.time_limit_minutes ? Time{*job.time_limit_minutes} * 60 : kYear;
    }
    if (reserved_at_ == 0) return false;  // it waits for nodes that are down: no ends would help
    if (now_ + limit <= reserved_at_) return false;
    const bool shares = std::ranges::any_of(plan.allocation.nodes, [&](const auto& share) {
      return reserved_nodes_.contains(share.node);
    });
    if (!shares) return false;
    // Both may fit: look at the moment the first one starts.
    cluster::Usage then = state_->usage();
    for (const auto& [when, ending] : job::expected_ends(state_->jobs(), now_)) {
      if (when <= reserved_at_) then.release(ending->allocation);
    }
    then.take(plan.allocation);
    const Job* first = state_->find(*first_waits_);
    return first == nullptr ||
           place::place_job(state_->cluster(), then, first->what->request, place::Detail::verdict)
                   .verdict != Verdict::now;
  }

  struct Failure {
    std::string word;
    std::string text;
    Time limit = 0;  // minutes: a shorter job of the same shape may still slip in
  };

  State* state_;
  Time now_;
  Options options_;
  Figures figures_;
  std::optional<JobId> first_waits_;
  std::optional<job::QueueKey> first_key_;
  Time reserved_at_ = 0;
  cluster::Allocation reserved_;
  std::set<cluster::NodeIndex> reserved_nodes_;
  std::unordered_map<std::uint64_t, Failure> failed_;
};

Scheduler::Scheduler() = default;
Scheduler::~Scheduler() = default;

Figures Scheduler::run(job::State& state, job::Time now, const Options& options) {
  const job::Wake wake = state.take_wake();
  if (!wake.any()) return {};
  std::set<job::QueueKey> fresh;
  bool everything = wake.everything || !pass_;
  for (const JobId id : wake.arrived) {
    const auto key = state.key_of(id);
    if (!key) continue;
    fresh.insert(*key);
    everything = everything || pass_->overtakes(*key);
  }
  if (!everything) return pass_->arrived(fresh, now);
  pass_ = std::make_unique<Pass>(state, now, options);
  return pass_->all(now);
}

Figures run(job::State& state, job::Time now, const Options& options) {
  return Scheduler().run(state, now, options);
}

job::Time expected_start(const job::State& state, const request::Request& request, job::Time now,
                         place::JobPlan* plan) {
  const job::Forecast forecast =
      job::earliest_start(state.cluster(), state.usage(), state.jobs(), request, now);
  if (plan != nullptr) plan->allocation = forecast.allocation;
  return forecast.start;
}

}  // namespace berth::schedule
