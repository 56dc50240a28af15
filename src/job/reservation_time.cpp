// Reservations as time passes: they begin, come again, and are over.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"
#include "text/words.h"

namespace berth::job {

using reservation::Flag;
using reservation::Reservation;
using reservation::Window;

void State::Memory::mark_reserved_nodes(Time now) {
  std::map<cluster::NodeIndex, const Reservation*> marked;
  in_force.clear();
  for (const auto& [name, one] : reservations) {
    if (one.active(now)) in_force.insert(name);
    if (!one.active(now) || !one.allocation.whole_nodes) continue;
    for (const cluster::NodeShare& share : one.allocation.nodes) {
      const Reservation*& here = marked[share.node];
      if (here == nullptr || one.flags.has(Flag::maint)) here = &one;
    }
  }
  const auto mark = [&](cluster::NodeIndex index, const Reservation* by) {
    NodeState& node = nodes[index];
    const std::string name = by == nullptr ? "" : by->name;
    const bool maintenance = by != nullptr && by->flags.has(Flag::maint);
    if (node.reservation == name && node.maintenance == maintenance) return;
    node.reservation = name;
    node.maintenance = maintenance;
    changed_nodes.insert(cluster.nodes[index].name);
  };
  for (const cluster::NodeIndex index : reserved_nodes) {
    if (!marked.contains(index)) mark(index, nullptr);
  }
  reserved_nodes.clear();
  for (const auto& [index, by] : marked) {
    mark(index, by);
    reserved_nodes.insert(index);
  }
}

void State::Memory::arm_reservations(Time now) {
  reservation_due.reset();
  const auto at = [&](Time when) {
    if (when > now) reservation_due = std::min(reservation_due.value_or(when), when);
  };
  for (const auto& [name, one] : reservations) {
    if (one.flags.has(Flag::time_float)) continue;
    at(one.start);
    at(one.end);
    if (!one.flags.has(Flag::purge_comp) || !one.active(now)) continue;
    // Jobs that wait for it may leave the queue any time: looked at as often as it could be over.
    at((one.idle_since > 0 ? one.idle_since : now) + std::max<Time>(one.purge_after, 1));
  }
}

void State::Memory::reservations_tick(Time now) {
  const auto used = [&](const std::string& name) {
    return std::ranges::any_of(jobs, [&](const auto& entry) {
      const Job& job = entry.second;
      if (job.running) return job.reservation == name;
      if (!job.pending()) return false;
      const auto names = text::split(job.asked_reservation(), ',');
      return std::ranges::find(names, name) != names.end();
    });
  };
  const auto runs_in = [&](const std::string& name) {
    return std::ranges::any_of(holding, [&](JobId id) { return jobs.at(id).reservation == name; });
  };
  std::vector<std::string> over;
  bool changed = false;
  for (auto& [name, one] : reservations) {
    if (one.flags.has(Flag::time_float)) continue;
    if (one.flags.has(Flag::purge_comp) && one.active(now)) {
      const bool idle = !used(name);
      const Time since = !idle ? 0 : one.idle_since > 0 ? one.idle_since : now;
      if (since != one.idle_since) dirty_reservations.insert(name);
      one.idle_since = since;
      if (idle && now >= since + one.purge_after) {
        if (!one.recurs()) {
          over.push_back(name);
          continue;
        }
        end_occurrence(one, now);
        changed = true;
      }
    }
    if (one.end > now) continue;
    // Those that still run have a little more time; the others are for what comes next.
    if (!one.flags.has(Flag::flex) && policy.reservation_overrun_minutes) {
      for (const JobId id : holding) {
        Job& job = jobs.at(id);
        if (job.reservation != name || job.reservation_over > 0 || job.flags.completing) continue;
        job.reservation_over = one.end + Time{*policy.reservation_overrun_minutes} * 60;
        arm(job);
        touch(job);
      }
    }
    if (one.recurs()) {
      end_occurrence(one, now);
      changed = true;
    } else if (!runs_in(name)) {
      over.push_back(name);
    }
  }
  for (const std::string& name : over) forget_reservation(name, now);
  changed = changed || !over.empty();
  for (const auto& [name, one] : reservations) {
    changed = changed || one.active(now) != in_force.contains(name);
  }
  if (changed) {
    reservations_changed(now);
  } else {
    arm_reservations(now);
  }
}

void State::Memory::end_occurrence(Reservation& one, Time now) {
  constexpr int kMost = 100000;  // a controller that was away for years catches up
  Window at{one.start, one.end};
  for (int i = 0; i < kMost; ++i) {
    at = reservation::next_occurrence(one.flags, at);
    if (at.until > now) break;
  }
  one.start = at.from;
  one.end = at.until;
  one.idle_since = 0;
  dirty_reservations.insert(one.name);
  sync = true;
}

void State::Memory::forget_reservation(const std::string& name, Time now) {
  const auto at = reservations.find(name);
  if (at == reservations.end()) return;
  const bool holds = !at->second.flags.has(Flag::no_hold_jobs_after);
  reservations.erase(at);
  dirty_reservations.insert(name);
  sync = true;
  for (auto& [id, job] : jobs) {
    if (!job.pending() || job.asked_reservation().empty()) continue;
    const auto names = text::split(job.asked_reservation(), ',');
    if (std::ranges::find(names, name) == names.end()) continue;
    if (std::ranges::any_of(names, [&](std::string_view other) {
          return reservations.contains(std::string(other));
        })) {
      continue;
    }
    job.reservation_gone = true;
    if (holds && !job.held) {
      job.held = true;
      job.priority = 0;
      drop_plan(job);
      set_reason(job, "ReservationDeleted",
                 fmt::format("reservation {} is over or deleted; `scontrol release {}` lets the "
                             "job run without it",
                             name, job.shown()));
    }
    requeue_place(job, now);
    touch(job);
  }
}

}  // namespace berth::job
