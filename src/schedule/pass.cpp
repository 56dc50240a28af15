#include "schedule/pass.h"

#include <algorithm>

#include "place/refusal.h"

namespace berth::schedule {
namespace {

using job::Job;
using job::State;
using place::JobPlan;
using place::Verdict;

/// A placement costs about as much as a look at so many nodes.
constexpr std::size_t kPlacementWork = 50;
/// So does a job in its turn: its record and all that is known of it are to be found.
constexpr std::size_t kTurnWork = 40;

}  // namespace

Pass::Pass(State& state, Knowledge& knowledge, Kind kind, Time now, const Options& options)
    : state_(&state),
      known_(&knowledge),
      kind_(kind),
      now_(now),
      options_(options),
      each_one_(state.queue().size() <= options.each_one),
      earliest_(state, knowledge.calendar, now),
      licenses_(state, knowledge.calendar, now),
      preempts_(state.policy().preempt.by_tier) {
  knowledge.calendar.begin(now);
  // On a large cluster only the first that waits gets a plan in between.
  const bool many = kind == Kind::plan || small(state, options);
  const bool first = kind == Kind::freed && known_->calendar.plans().empty();
  plans_left_ = many ? options.planned : first ? 1 : 0;
  if (kind != Kind::arrivals) grown_ = state.take_grown_nodes();
  if (kind == Kind::plan) {
    old_ = known_->calendar.take_plans();
    known_->waits.clear();
    known_->planned_waits.clear();
  } else {
    // Who left the queue needs no place any more.
    std::vector<JobId> gone;
    for (const auto& [id, planned] : known_->calendar.plans()) {
      if (!state.key_of(id)) gone.push_back(id);
    }
    for (const JobId id : gone) give_up(id);
    const std::size_t kept = known_->calendar.plans().size();
    plans_left_ -= std::min(plans_left_, kind == Kind::arrivals ? kept : std::size_t{0});
    somebody_waits_ = kind == Kind::arrivals && kept > 0;
  }
  if (!state.parked().empty()) gather_parked();
  std::ranges::sort(grown_);
  grown_.erase(std::ranges::unique(grown_).begin(), grown_.end());
}

/// What was planned for it is for others: as if these nodes had more room.
void Pass::give_up(JobId id) {
  const auto [first, last] = known_->calendar.plans().equal_range(id);
  for (auto at = first; at != last; ++at) {
    for (const cluster::NodeShare& share : at->second.allocation.nodes) {
      grown_.push_back(share.node);
    }
  }
  known_->calendar.remove(id);
  known_->planned_waits.erase(id);
}

void Pass::take_all() {
  known_->groups.tidy();
  for (const auto& [group, members] : known_->groups.all()) {
    if (const auto key = known_->groups.first(*state_, group)) turns_.push({*key, group});
  }
}

void Pass::take(const std::vector<JobId>& jobs) {
  for (const JobId id : jobs) {
    const auto key = state_->key_of(id);
    const Job* job = key ? state_->find(id) : nullptr;
    if (job != nullptr) turns_.push({*key, group_of(*job)});
  }
}

bool Pass::go_on(std::size_t work) {
  const auto done = [&] { return work_.looked_at + work_.placed * kPlacementWork; };
  const std::size_t until = done() + work;
  known_->calendar.go_on();
  while (!turns_.empty()) {
    if (work > 0 && done() >= until) return false;
    const Turn turn = turns_.top();
    turns_.pop();
    const auto key = state_->key_of(turn.key.id);
    const Job* job = key ? state_->find(turn.key.id) : nullptr;
    if (resumed_ < parked_.size()) resume_down_to(turn.key.tier);
    if (job != nullptr) {
      work_.looked_at += kTurnWork;
      const Outcome outcome = consider(*job, turn.group);
      const Known& known = groups_[turn.group];
      const bool hopeless = outcome == Outcome::waits && known.failed &&
                            (!preempts_ || known.nobody_gives_way) &&
                            (!known.plannable || known.planless || plans_left_ == 0);
      if (hopeless && !each_one_ && kind_ != Kind::arrivals) continue;
    }
    if (kind_ == Kind::arrivals) continue;
    if (const auto next = known_->groups.next(*state_, turn.group, turn.key)) {
      turns_.push({*next, turn.group});
    }
  }
  end();
  return true;
}

Figures Pass::take_figures() {
  Figures out = figures_;
  out.placed = work_.placed - placed_told_;
  placed_told_ = work_.placed;
  figures_ = {};
  return out;
}

void Pass::end() {
  resume_down_to(0);
  give_cores_up();
  figures_.backfill = kind_ == Kind::plan;
  std::set<NodeIndex> nodes;
  const Time far = now_ + Time{options_.backfill_window_minutes} * 60;
  for (const auto& [id, planned] : known_->calendar.plans()) {
    if (planned.span.from > far) continue;
    for (const cluster::NodeShare& share : planned.allocation.nodes) nodes.insert(share.node);
  }
  state_->set_planned_nodes(nodes);
}

Pass::Outcome Pass::consider(const Job& job, const GroupKey& group) {
  // An array starts element by element; each start may be the last that fits.
  const JobId id = job.id;
  const Job* at = &job;
  while (at != nullptr && at->pending()) {
    ++figures_.examined;
    std::string reason;
    const bool may = state_->eligible(*at, now_, reason);
    if (may ? !licensed(*at) : reason == "Licenses") {
      if (preempts_ && !may && takes_licenses(*at)) {
        state_->set_reason(id, reason, {}, now_);
        return Outcome::waits;
      }
      wait_for_licenses(*at);
      return Outcome::passed_over;
    }
    if (!may) {
      if (!reason.empty()) state_->set_reason(id, reason, {}, now_);
      give_up(id);
      return Outcome::passed_over;
    }
    const bool array = at->is_array_rest();
    const Outcome outcome = at->het ? try_het(*at) : try_job(*at, group);
    if (outcome != Outcome::started || !array) return outcome;
    at = state_->find(id);
  }
  return Outcome::started;
}

Pass::Outcome Pass::try_job(const Job& job, const GroupKey& group) {
  Known& known = groups_[group];
  Shape& shape = known_->shapes.of(*state_, job);
  const place::Prepared& prepared = shape.prepared;
  const bool claims = !known_->claims.empty() && known_->claims.contains(job.id);
  bool tried = kind_ == Kind::plan;
  if ((!known.failed || claims) && (claims || !still_waits(job, group, prepared, known))) {
    tried = true;
    // What is planned for it is not in its own way.
    std::vector<Planned> own = known_->calendar.take(job.id);
    std::optional<JobPlan> plan;
    bool in_the_way = false;  // it might fit, were it not for the plans of others
    if (prepared.runnable() && !must_queue(job)) {
      plan = start_in_one(job, prepared, own, in_the_way);
    }
    if (plan) {
      for (Planned& planned : own) known_->calendar.add(std::move(planned));
      std::vector<JobPlan> plans;
      plans.push_back(std::move(*plan));
      return start(job, std::move(plans)) ? Outcome::started : Outcome::passed_over;
    }
    find_reason(job, shape, in_the_way, known);
    if (known.plannable && wants_few_switches(job)) {
      if (std::string words = short_of_switches(job, prepared); !words.empty()) {
        known.word = "Resources";
        known.text = std::move(words);
      }
    }
    // An own place that is kept says nothing about others of the group.
    known.failed = (own.empty() && !claims) || kind_ != Kind::freed;
    if (own.empty()) {
      known_->waits[group] = known;
    } else {
      known_->planned_waits[job.id] = known;
    }
    for (Planned& planned : own) known_->calendar.add(std::move(planned));
  }
  tell(job, known);
  if (known.plannable) {
    somebody_waits_ = true;
    const Outcome taken = preempts_ ? takes_a_place(job, known, tried) : Outcome::passed_over;
    if (taken == Outcome::started) return taken;
    if (taken == Outcome::passed_over) plan(job, group, known);
    for (const std::string& name : partitions(job)) ++waiting_in_[name];
  }
  return Outcome::waits;
}

bool Pass::still_waits(const Job& job, const GroupKey& group, const place::Prepared& prepared,
                       Known& known) {
  if (kind_ == Kind::plan || !options_.backfill || job.interactive) return false;
  if (job.what->request.switches) return false;  // time alone may help it
  const Knowledge::Waits* before = nullptr;
  const bool planned = known_->calendar.has(job.id);
  if (planned) {
    const auto at = known_->planned_waits.find(job.id);
    if (at != known_->planned_waits.end()) before = &at->second;
  } else if (const auto at = known_->waits.find(group); at != known_->waits.end()) {
    before = &at->second;
  }
  if (before == nullptr || !before->plannable) return false;
  const cluster::RoomTree& rooms = state_->usage().rooms();
  const bool helps = std::ranges::any_of(grown_, [&](NodeIndex node) {
    return rooms.at(node).holds(prepared.floor()) && prepared.may_use(node);
  });
  if (helps) return false;
  static_cast<Knowledge::Waits&>(known) = *before;
  known.failed = !planned;  // what is planned for one says nothing about others of the group
  return true;
}

/// Its time has come, and what was kept for it is there: were it to take other nodes, cores or GPUs
/// now, it would be in the way of those who have their places around it.
std::optional<JobPlan> Pass::as_promised(const Job& job, const place::Prepared& prepared,
                                         const std::vector<Planned>& own) {
  const auto before = old_.find(job.id);
  const Planned* promised = !own.empty()           ? &own.front()
                            : before != old_.end() ? &before->second
                                                   : nullptr;
  if (promised == nullptr || promised->span.from > now_) return std::nullopt;
  const Reservation* inside = known_->calendar.inside();
  if (promised->reservation != (inside == nullptr ? std::string() : inside->name)) {
    return std::nullopt;
  }
  if (promised->shape != job.what->shape) return std::nullopt;  // scontrol update
  const Time until = now_ + seconds_of(job, prepared) + earliest_.wake_of(promised->allocation);
  ++work_.placed;
  if (!known_->calendar.is_free(
          {job.id, {now_, until}, promised->allocation, promised->reservation})) {
    return std::nullopt;
  }
  return prepared.as_planned(promised->partition, promised->allocation);
}

std::optional<JobPlan> Pass::shortened(const Job& job, const place::Prepared& prepared) {
  const auto least = job.what->request.time_min;
  if (!least) return std::nullopt;
  const Time seconds = seconds_of(job, prepared);
  auto plan = earliest_.now(prepared, Time{*least} * 60, work_);
  if (!plan) return std::nullopt;
  // As long as nobody else's time on these nodes has come.
  Time until = now_ + seconds;
  for (const cluster::NodeShare& share : plan->allocation.nodes) {
    const Time taken = known_->calendar.next_planned_start(share.node, now_);
    if (taken > 0) until = std::min(until, taken);
  }
  const Time minutes = std::max<Time>((until - now_) / 60, Time{*least});
  plan->shortened_to_minutes = static_cast<std::uint32_t>(minutes);
  return plan;
}

bool Pass::start(const Job& job, std::vector<JobPlan> plans) {
  give_up(job.id);
  if (!state_->start(job.id, plans, somebody_waits_, now_)) return false;
  for (const JobPlan& plan : plans) {
    licenses_.started();
    known_->calendar.started(plan.allocation);
    earliest_.started(plan.allocation);
  }
  known_->claims.erase(job.id);
  ++figures_.started;
  return true;
}

void Pass::find_reason(const Job& job, Shape& shape, bool in_the_way, Known& known) {
  known.plannable = false;
  known.text.clear();
  if (!shape.prepared.runnable() || shape.holds == false) {
    never_now(shape, known);
    return;
  }
  known.word = place::unavailable_reason(state_->cluster(), job.what->request);
  if (!known.word.empty()) return;  // a node that is away may stay so: nobody else waits for it
  known.plannable = true;
  known.word = "Resources";
  if (reservation_is_why(job, shape.prepared, known)) return;
  if (job.interactive) {
    JobPlan plan = shape.prepared.plan(state_->usage(), place::Detail::full);
    known.text = plan.reasons.nearest_miss;
    if (plan.verdict == Verdict::now) known.word = "Priority";
    return;
  }
  if (must_queue(job)) {
    known.word = "Priority";
    return;
  }
  if (!in_the_way || !earliest_.room_now(shape.prepared, work_)) return;
  // It waits for its turn when it fits but is in the way of another, else for what it lacks. In a
  // long queue, to fit in numbers is enough to say so.
  if (each_one_) ++work_.placed;
  if (!each_one_ || shape.prepared.now({state_->usage(), false})) known.word = "Priority";
}

/// It would not run if nothing else did: a limit of its partition, or nothing here could hold it.
void Pass::never_now(Shape& shape, Known& known) {
  if (!shape.holds) {
    ++work_.placed;
    shape.answer = shape.prepared.plan(state_->usage(), place::Detail::verdict);
    shape.holds = shape.answer.verdict == Verdict::now || shape.answer.verdict == Verdict::later;
  }
  if (*shape.holds) return;
  known.plannable = false;
  known.word = shape.answer.verdict == Verdict::never ? "BadConstraints"
               : shape.answer.pending_reason.empty()  ? "Resources"
                                                      : shape.answer.pending_reason;
  known.text = shape.answer.reasons.nearest_miss;
}

void Pass::tell(const Job& job, const Known& known) {
  if (job.reason == known.word && job.reason_text == known.text && !each_one_) return;
  state_->set_reason(job.id, known.word, known.text, now_);
}

std::vector<std::string> Pass::partitions(const Job& job) const {
  if (!job.what->request.partitions.empty()) return job.what->request.partitions;
  const cluster::Partition* standard = state_->cluster().default_partition();
  return {standard == nullptr ? std::string() : standard->name};
}

bool Pass::must_queue(const Job& job) const {
  return !options_.backfill && std::ranges::any_of(partitions(job), [&](const std::string& name) {
    return waiting_in_.contains(name);
  });
}

std::vector<const Job*> Pass::components(const Job& job) const {
  std::vector<const Job*> out;
  for (const JobId id : state_->records_of(job.het->leader)) out.push_back(state_->find(id));
  return out;
}

Pass::Outcome Pass::try_het(const Job& job) {
  const std::vector<const Job*> parts = components(job);
  known_->calendar.remove(job.id);
  // All in the same reservation.
  const Reservation* reserved = places_of(*state_, job).front();
  const Calendar::Inside look(known_->calendar, reserved);
  // Each component takes its place before the next one is looked at.
  std::vector<JobPlan> plans;
  for (const Job* part : parts) {
    const place::Prepared& prepared = known_->shapes.of(*state_, *part).prepared;
    const Time seconds = seconds_of(*part, prepared);
    auto plan = prepared.runnable() ? earliest_.now(prepared, seconds, work_) : std::nullopt;
    if (!plan) break;
    if (reserved != nullptr) plan->reservation = reserved->name;
    keep(job, now_, seconds, *plan);
    plans.push_back(std::move(*plan));
  }
  known_->calendar.remove(job.id);
  if (plans.size() == parts.size()) {
    return start(job, std::move(plans)) ? Outcome::started : Outcome::passed_over;
  }
  state_->set_reason(job.id, "Resources", {}, now_);
  somebody_waits_ = true;
  if (may_plan(job)) plan_het(job);
  return Outcome::waits;
}

}  // namespace berth::schedule
