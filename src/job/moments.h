// Every moment that State remembers, and what becomes of it when the cluster's clock is set: the
// one table. A row is (name, sense, the moment); 0 is not a moment.
//
// docs/design/controller.md (Time) has the same names; moments_test.cpp compares them, and looks
// into types.h for moments that have no row.
#pragma once

#include <cstdint>
#include <string_view>

#include "job/memory.h"

namespace berth::job {

enum class Sense : std::uint8_t {
  /// What counts is how long ago it was, or how long it is until then: it moves with the clock.
  length,
  /// A time of day that somebody named: it stays what was named.
  promise,
  /// It is only shown, or is history: it stays as it was written.
  record,
  /// Follows from the others, and is worked out again.
  derived,
};

template <class At>
void moments_of(Step& step, Sense past, At&& at) {
  at("Step.start", past, step.start);
  if (step.limit_at) at("Step.limit_at", past, *step.limit_at);
}

template <class At>
void moments_of(GpuIdleClock& clock, Sense past, At&& at) {
  at("GpuIdleClock.counts_from", past, clock.counts_from);
  at("GpuIdleClock.idle_since", past, clock.idle_since);
  at("GpuIdleClock.last_warning", past, clock.last_warning);
  at("GpuIdleClock.told_since", past, clock.told_since);
  for (GpuIdleClock::Pause& pause : clock.pauses) {
    at("GpuIdleClock.from", past, pause.from);
    at("GpuIdleClock.to", past, pause.to);
  }
}

template <class At>
void moments_of(Running& running, Sense past, At&& at) {
  at("Running.boot_until", past, running.boot_until);
  at("Running.known_end", Sense::derived, running.known_end);
  moments_of(running.gpu_idle, past, at);
  for (auto& [id, step] : running.open_steps) moments_of(step, past, at);
}

/// Of a job that is over all are history.
template <class At>
void moments_of(Job& job, At&& at) {
  const Sense past = job.over() ? Sense::record : Sense::length;
  const auto named = [&](bool as_length) { return as_length ? past : Sense::promise; };
  at("Job.submit_time", past, job.submit_time);
  at("Job.begin_time", named(job.begin_is_length), job.begin_time);
  at("Job.deadline", named(job.deadline_is_length), job.deadline);
  at("Job.eligible_time", past, job.eligible_time);
  at("Job.start_time", past, job.start_time);
  at("Job.end_time", past, job.end_time);
  at("Job.suspend_time", past, job.suspend_time);
  at("Job.accrue_since", past, job.accrue_since);
  at("Job.switch_wait_since", past, job.switch_wait_since);
  at("Job.last_evaluation", past, job.last_evaluation);
  at("Job.planned_start", past, job.planned_start);
  at("Job.reservation_over", Sense::promise, job.reservation_over);
  at("Job.waits", past, job.waits.since());
  for (auto& [node, until] : job.may_run_on) at("Job.may_run_on", past, until);
  if (job.gpu_uses) at("GpuUses.stored", past, job.gpu_uses->stored);
  if (job.preempted) {
    at("Preempted.at", past, job.preempted->at);
    at("Preempted.until", past, job.preempted->until);
  }
  if (job.running) moments_of(*job.running, past, at);
  if (!job.late) return;
  for (auto& [id, step] : job.late->steps) moments_of(step, past, at);
}

template <class At>
void moments_of(NodeState& node, At&& at) {
  at("NodeState.silent_since", Sense::length, node.silent_since);
  at("NodeState.last_busy", Sense::length, node.last_busy);
  at("NodePower.since", Sense::length, node.power.since);
  at("NodeState.reason_time", Sense::record, node.reason_time);
  at("NodeState.boot_time", Sense::record, node.boot_time);
  at("NodeState.agent_started", Sense::record, node.agent_started);
}

template <class At>
void moments_of(reservation::Reservation& one, At&& at) {
  // With TIME_FLOAT it is no moment but a length, which stays as well.
  at("Reservation.start", Sense::promise, one.start);
  at("Reservation.end", Sense::promise, one.end);
  at("Reservation.idle_since", Sense::length, one.idle_since);
}

/// What is neither a job's nor a node's.
template <class At>
void moments_of(State::Memory& m, At&& at) {
  const auto maybe = [&](std::string_view name, Sense sense, std::optional<Time>& when) {
    if (when) at(name, sense, *when);
  };
  at("Memory.leases_rest_until", Sense::length, m.leases_rest_until);
  at("Memory.priorities_at", Sense::length, m.priorities_at);
  maybe("Memory.priority_due", Sense::length, m.priority_due);
  maybe("Memory.found_due", Sense::length, m.found_due);
  maybe("Memory.look_at", Sense::length, m.look_at);
  maybe("Memory.reservation_due", Sense::derived, m.reservation_due);
  for (auto& [node, when] : m.node_timers) at("Memory.node_timers", Sense::length, when);
  for (Time& when : m.power.due_of) at("Memory.power.due_of", Sense::length, when);
  at("Memory.power.up_rate", Sense::length, m.power.up_rate.minute());
  at("Memory.power.down_rate", Sense::length, m.power.down_rate.minute());
}

/// A moment by that sense when the clock is set by so many seconds.
inline void move(Sense sense, Time by, Time& moment) {
  if (sense == Sense::length && moment != 0) moment += by;
}

}  // namespace berth::job
