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
/// Nodes and jobs that may be looked at for planned starts in one pass.
constexpr std::size_t kPlanWork = 10000;

}  // namespace

/// What is known while nothing is freed: shapes that do not fit, and the place of the first job
/// that waits.
class Scheduler::Pass {
 public:
  Pass(State& state, Time now, const Options& options)
      : state_(&state), now_(now), options_(options) {}

  /// `plan`: later jobs get a planned start too.
  Figures all(Time now, bool plan) {
    begin(now);
    figures_.backfill = true;
    // A plan costs in proportion to nodes and jobs: on large clusters only the first has one.
    const std::size_t size = state_->cluster().nodes.size() + state_->jobs().size();
    plans_left_ = plan ? std::min(options_.planned, kPlanWork / std::max<std::size_t>(size, 1)) : 0;
    std::vector<JobId> order;
    for (const job::QueueKey& key : state_->queue()) order.push_back(key.id);
    for (const JobId id : order) {
      if (figures_.placed >= options_.depth || figures_.examined >= options_.examined) break;
      consider(id);
    }
    state_->set_planned_nodes(planned_nodes_);
    return figures_;
  }

  /// Only jobs that came: nothing was freed, so who waited before still waits.
  Figures arrived(const std::set<job::QueueKey>& keys, Time now) {
    begin(now);
    for (const job::QueueKey& key : keys) consider(key.id);
    state_->set_planned_nodes(planned_nodes_);
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
      if (known->second.blocked) plan_later(job);
      return false;
    }
    ++figures_.placed;
    JobPlan plan = place::place_job(state_->cluster(), state_->usage(), job.what->request,
                                    job.interactive ? place::Detail::full : place::Detail::verdict);
    const bool in_the_way = plan.verdict == Verdict::now && delays_first(job, plan);
    bool starts = plan.verdict == Verdict::now && !in_the_way;
    if (in_the_way) {
      // The same job on other nodes may delay nobody.
      request::Request beside = job.what->request;
      avoid(reserved_nodes_, beside);
      ++figures_.placed;
      JobPlan other =
          place::place_job(state_->cluster(), state_->usage(), beside,
                           job.interactive ? place::Detail::full : place::Detail::verdict);
      starts = other.verdict == Verdict::now;
      if (starts) plan = std::move(other);
    }
    if (starts) {
      if (state_->start(id, {std::move(plan)}, first_waits_.has_value(), now_)) {
        ++figures_.started;
        return true;
      }
      return false;
    }
    // It waits for its turn when it fits but is in the way of the first, else for what it lacks.
    // A node that is away may stay so: nobody else waits for it.
    const bool away = plan.pending_reason.starts_with("ReqNodeNotAvail");
    const bool blocked = plan.verdict == Verdict::now || (plan.verdict == Verdict::later && !away);
    const std::string word = plan.verdict == Verdict::now              ? "Priority"
                             : plan.verdict == Verdict::later && !away ? "Resources"
                             : plan.verdict == Verdict::never          ? "BadConstraints"
                             : plan.pending_reason.empty()             ? "Resources"
                                                                       : plan.pending_reason;
    // What is lacking is lacking for a shorter job too; only who is in the way may slip in shorter.
    const Time limit = plan.verdict == Verdict::now ? minutes_of(job) : 0;
    failed_[shape] = {word, plan.reasons.nearest_miss, limit, blocked};
    state_->set_reason(id, word, plan.reasons.nearest_miss, now_);
    if (!blocked) return false;
    if (first_waits_) {
      plan_later(job);
    } else {
      reserve(job);
    }
    return false;
  }

  void avoid(const std::set<cluster::NodeIndex>& nodes, request::Request& request) const {
    for (const cluster::NodeIndex node : nodes) {
      request.exclude.push_back(state_->cluster().nodes[node].name);
    }
  }

  /// A guess for a job behind the first: where it would start if those before it start as planned.
  /// Nodes are planned as a whole, and for no longer than the jobs on them may run.
  void plan_later(const Job& job) {
    if (plans_left_ == 0 || reserved_at_ == 0 || job.het || job.id == *first_waits_) return;
    --plans_left_;
    const Time limit = minutes_of(job) * 60;
    std::set<Time> moments{now_};
    for (const Planned& planned : plans_) moments.insert(planned.end);
    constexpr int kMostTries = 2;
    int tries = 0;
    for (const Time moment : moments) {
      if (++tries > kMostTries) break;
      request::Request request = job.what->request;
      for (const Planned& planned : plans_) {
        if (planned.end > moment) avoid(planned.nodes, request);
      }
      const job::Forecast forecast =
          job::earliest_start(state_->cluster(), state_->usage(),
                              {state_->jobs(), state_->holding()}, request, std::max(moment, now_));
      if (forecast.start == 0) continue;
      keep_plan(job, std::max(forecast.start, moment), forecast.allocation, limit);
      return;
    }
    state_->set_planned(job.id, 0, {});
  }

  void keep_plan(const Job& job, Time start, const cluster::Allocation& allocation, Time limit) {
    Planned planned;
    planned.end = start + limit;
    std::vector<std::string> names;
    for (const cluster::NodeShare& share : allocation.nodes) {
      planned.nodes.insert(share.node);
      names.push_back(state_->cluster().nodes[share.node].name);
    }
    const bool near = start <= now_ + Time{options_.backfill_window_minutes} * 60;
    if (near) planned_nodes_.insert(planned.nodes.begin(), planned.nodes.end());
    plans_.push_back(std::move(planned));
    state_->set_planned(job.id, near ? start : 0,
                        near ? text::compress_hostlist(names) : std::string());
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
    const job::Forecast forecast =
        job::earliest_start(state_->cluster(), state_->usage(), {state_->jobs(), state_->holding()},
                            job.what->request, now_);
    reserved_at_ = forecast.start;
    reserved_ = forecast.allocation;
    for (const cluster::NodeShare& share : reserved_.nodes) reserved_nodes_.insert(share.node);
    if (reserved_at_ > 0) {
      keep_plan(job, reserved_at_, reserved_, minutes_of(job) * 60);
    } else {
      state_->set_planned(job.id, 0, {});
    }
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
    for (const auto& [when, ending] :
         job::expected_ends({state_->jobs(), state_->holding()}, now_)) {
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
    Time limit = 0;        // minutes: a shorter job of the same shape may still slip in
    bool blocked = false;  // it waits for what others hold, and may be planned for
  };
  /// A job that waits, and the nodes it is going to have.
  struct Planned {
    Time end = 0;
    std::set<cluster::NodeIndex> nodes;
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
  std::vector<Planned> plans_;
  std::set<cluster::NodeIndex> planned_nodes_;
  std::size_t plans_left_ = 0;
};

Scheduler::Scheduler() = default;
Scheduler::~Scheduler() = default;

Figures Scheduler::run(job::State& state, job::Time now, const Options& options) {
  if (state.waits_for_completing(now)) return {};  // what woke it is kept
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
  const bool plan = now >= planned_at_ + options.plan_interval || now < planned_at_;
  if (plan) planned_at_ = now;
  return pass_->all(now, plan);
}

Figures run(job::State& state, job::Time now, const Options& options) {
  return Scheduler().run(state, now, options);
}

job::Time expected_start(const job::State& state, const request::Request& request, job::Time now,
                         place::JobPlan* plan) {
  const job::Forecast forecast = job::earliest_start(state.cluster(), state.usage(),
                                                     {state.jobs(), state.holding()}, request, now);
  if (plan != nullptr) plan->allocation = forecast.allocation;
  return forecast.start;
}

}  // namespace berth::schedule
