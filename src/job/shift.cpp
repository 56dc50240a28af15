// The cluster's clock is set: what is a length stays as long as it was (moments.h).
#include "job/moments.h"
#include "job/record.h"

namespace berth::job {

bool Job::over() const {
  return ended(base) && !flags.completing && !running;
}

Time State::adopted() const {
  return m_->adopted;
}

void State::shift(Time by, Time now) {
  if (by == 0) return;
  Memory& m = *m_;
  const auto moved = [by](std::string_view /*name*/, Sense sense, Time& moment) {
    move(sense, by, moment);
  };
  m.adopted += by;
  moments_of(m, moved);
  if (m.leases_rest_until != 0) m.dirty_leases_rest = m.sync = true;
  m.power.due.clear();
  for (cluster::NodeIndex i = 0; i < m.power.due_of.size(); ++i) {
    if (m.power.due_of[i] != 0) m.power.due.emplace(m.power.due_of[i], i);
  }
  for (cluster::NodeIndex i = 0; i < m.nodes.size(); ++i) {
    moments_of(m.nodes[i], moved);
    if (m.nodes[i].last_busy != 0 || m.nodes[i].power.since != 0) m.touch_node(i);
  }
  for (auto& [name, one] : m.reservations) {
    moments_of(one, moved);
    if (one.idle_since != 0) m.dirty_reservations.insert(name);
  }
  for (auto& [id, job] : m.jobs) {
    if (job.over()) {
      job.clock_moved += by;
    } else {
      moments_of(job, moved);
      m.touch(job);
    }
  }
  std::set<QueueKey> queue;
  for (auto& [id, key] : m.keys) {
    key.submit += by;
    queue.insert(key);
  }
  m.queue.swap(queue);
  for (auto& [id, job] : m.jobs) {
    // Who asked for a time of day may have to wait for it once more; or it is due now: its timer.
    if (m.keys.contains(id) && m.not_before(job) > now) m.requeue_place(job, now);
    if (m.timer_of.contains(id)) {
      m.arm(job);
    } else {
      m.note_end(job);
    }
  }
  if (!m.reservations.empty()) {
    m.reservations_changed(now);
    m.reservation_due = now;
  }
  m.sync = true;
  ++m.version;
  m.wake_all();
}

}  // namespace berth::job
