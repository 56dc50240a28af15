#include "schedule/schedule.h"

#include <algorithm>

#include "schedule/pass.h"
#include "schedule/reserve.h"
#include "schedule/why.h"

namespace berth::schedule {

bool small(const job::State& state, const Options& options) {
  return state.cluster().nodes.size() + state.queue().size() <= options.small;
}

struct Scheduler::Memory {
  explicit Memory(const job::State& state)
      : known(state),
        configuration(state.configuration()),
        order(state.priority_round()),
        reservations(state.reservation_round()) {
    fill(state);
  }

  /// The queue as it stands.
  void fill(const job::State& state) {
    known.groups.clear();
    for (const job::QueueKey& key : state.queue()) known.groups.add(*state.find(key.id), key);
  }

  Knowledge known;
  std::uint64_t configuration;
  std::uint64_t order;
  std::uint64_t reservations;
  std::unique_ptr<Pass> pass;  // one that is not done yet
  job::Time planned_at = 0;
};

Scheduler::Scheduler() = default;
Scheduler::~Scheduler() = default;
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;

namespace {

/// The first job that has a plan, in the order of the queue.
std::optional<job::QueueKey> first_planned(const job::State& state, const Calendar& calendar) {
  std::optional<job::QueueKey> first;
  for (const auto& [id, planned] : calendar.plans()) {
    const auto key = state.key_of(id);
    if (key && (!first || *key < *first)) first = key;
  }
  return first;
}

/// Somebody should have started by now and has not.
bool overdue(const job::State& state, const Calendar& calendar, job::Time now) {
  return std::ranges::any_of(calendar.plans(), [&](const auto& plan) {
    return plan.second.span.from <= now && state.key_of(plan.first);
  });
}

}  // namespace

namespace {

/// Reservations whose nodes went away get others.
void mend_reservations(job::State& state, job::Time now) {
  std::vector<reservation::Reservation> mended;
  for (const auto& [name, one] : state.reservations()) {
    reservation::Reservation copy = one;
    if (replace_nodes(state, now, copy)) mended.push_back(std::move(copy));
  }
  for (reservation::Reservation& one : mended) state.keep_reservation(std::move(one), now);
}

}  // namespace

Figures Scheduler::run(job::State& state, job::Time now, const Options& options) {
  if (state.take_reserved_nodes_lost()) mend_reservations(state, now);
  if (memory_ && memory_->configuration != state.configuration()) memory_.reset();
  const bool fresh = !memory_;
  if (fresh) memory_ = std::make_unique<Memory>(state);
  Memory& m = *memory_;
  const auto finish = [&] {
    const bool done = m.pass->go_on(options.slice);
    Figures figures = m.pass->take_figures();
    figures.unfinished = !done;
    if (done) m.pass.reset();
    return figures;
  };
  if (m.pass) return finish();
  if (state.waits_for_completing(now)) return {};  // what woke it is kept
  const job::Wake wake = state.take_wake();
  if (!wake.any() && !fresh) return {};
  if (m.order != state.priority_round()) {
    m.order = state.priority_round();
    m.fill(state);
  }
  // What jobs may use of reservations is another: who could not start is asked again.
  const bool rearranged = m.reservations != state.reservation_round();
  if (rearranged) {
    m.reservations = state.reservation_round();
    m.fill(state);
  }
  bool everything = wake.everything || fresh;
  bool overtaken = false;
  const auto first = first_planned(state, m.known.calendar);
  for (const JobId id : wake.arrived) {
    const auto key = state.key_of(id);
    if (!key) continue;
    m.known.groups.add(*state.find(id), *key);
    overtaken = overtaken || (first && *key < *first);
  }
  const bool due = now >= m.planned_at + options.plan_interval || now < m.planned_at;
  const bool plan = fresh || rearranged || (everything && (due || small(state, options))) ||
                    (overtaken && (now > m.planned_at || small(state, options))) ||
                    (everything && overdue(state, m.known.calendar, now) && now > m.planned_at);
  // The first that waits is the first to get a plan: it need not be one that has just come.
  everything = everything || overtaken || m.known.calendar.plans().empty();
  if (plan) m.planned_at = now;
  const Pass::Kind kind = plan         ? Pass::Kind::plan
                          : everything ? Pass::Kind::freed
                                       : Pass::Kind::arrivals;
  m.pass = std::make_unique<Pass>(state, m.known, kind, now, options);
  if (kind == Pass::Kind::arrivals) {
    m.pass->take(wake.arrived);
  } else {
    m.pass->take_all();
  }
  return finish();
}

Why Scheduler::why(job::State& state, const job::Job& job, job::Time now) {
  if (!memory_ || memory_->configuration != state.configuration()) {
    memory_ = std::make_unique<Memory>(state);
  }
  if (memory_->pass) {
    memory_->known.calendar.go_on();
  } else {
    memory_->known.calendar.begin(now);
  }
  return schedule::why(state, memory_->known, job, now);
}

Figures run(job::State& state, job::Time now, const Options& options) {
  return Scheduler().run(state, now, options);
}

}  // namespace berth::schedule
