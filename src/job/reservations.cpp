// Reservations come, are in force, and go: what that does to jobs and nodes.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"
#include "text/words.h"

namespace berth::job {

using reservation::Flag;
using reservation::Reservation;

const std::map<std::string, Reservation>& State::reservations() const {
  return m_->reservations;
}

const Reservation* State::find_reservation(std::string_view name) const {
  const auto at = m_->reservations.find(std::string(name));
  return at == m_->reservations.end() ? nullptr : &at->second;
}

std::uint64_t State::reservation_round() const {
  return m_->reservation_round;
}

const View& State::view(std::uint32_t number) const {
  return m_->views[number];
}

std::vector<JobId> State::jobs_in(std::string_view reservation) const {
  std::vector<JobId> out;
  for (const JobId id : m_->holding) {
    if (m_->jobs.at(id).reservation == reservation) out.push_back(id);
  }
  return out;
}

std::string State::free_reservation_name(std::string_view user) const {
  for (std::uint32_t number = m_->last_reservation + 1;; ++number) {
    std::string name = fmt::format("{}_{}", user, number);
    if (!m_->reservations.contains(name)) return name;
  }
}

void State::keep_reservation(Reservation reservation, Time now) {
  Memory& m = *m_;
  if (reservation.number == 0) reservation.number = ++m.last_reservation;
  const std::string name = reservation.name;
  m.reservations.insert_or_assign(name, std::move(reservation));
  m.dirty_reservations.insert(name);
  m.sync = true;
  m.reservations_changed(now);
}

Result<void> State::drop_reservation(std::string_view name, Time now) {
  Memory& m = *m_;
  const std::vector<JobId> running = jobs_in(name);
  if (!running.empty()) {
    return fail(Code::nodes_busy, "Requested reservation is in use",
                fmt::format("job {} runs in it", m.jobs.at(running.front()).shown()));
  }
  m.forget_reservation(std::string(name), now);
  m.reservations_changed(now);
  return {};
}

bool State::take_reserved_nodes_lost() {
  return std::exchange(m_->reserved_nodes_lost, false);
}

Result<void> State::skip_reservation(std::string_view name, Time now) {
  Memory& m = *m_;
  Reservation& one = m.reservations.at(std::string(name));
  if (!one.recurs()) {
    return fail(Code::bad_value, "Requested reservation is invalid",
                fmt::format("{} does not recur: delete it, or change its times", name));
  }
  m.end_occurrence(one, now);
  m.reservations_changed(now);
  return {};
}

Result<void> State::Memory::check_reservation(std::string_view names,
                                              const reservation::User& user) const {
  if (names.empty()) return {};
  for (const std::string_view name : text::split(names, ',')) {
    const auto at = reservations.find(std::string(name));
    if (at == reservations.end()) {
      return fail(Code::bad_value, "Requested reservation is invalid",
                  fmt::format("there is no reservation {}", name));
    }
    if (!reservation::may_use(at->second, user)) {
      return fail(Code::bad_value, "Access denied to requested reservation",
                  fmt::format("who may use it: scontrol show reservation {}", name));
    }
  }
  return {};
}

void State::Memory::set_view(Job& job) {
  job.view = 0;
  const std::string_view asked = job.asked_reservation();
  if (reservations.empty() && asked.empty()) return;
  View view;
  view.only = !asked.empty();
  reservation::User user{job.uid, job.gid, job.what->account, job.what->qos};
  if (view.only) {
    user.privileged = job.uid == 0 || policy.admins.contains(job.uid);
    for (const std::string_view name : text::split(asked, ',')) {
      const auto at = reservations.find(std::string(name));
      if (at != reservations.end() && reservation::may_use(at->second, user)) {
        view.names.emplace_back(name);
      }
    }
  } else {
    for (const auto& [name, one] : reservations) {
      if (one.flags.has(Flag::magnetic) && reservation::may_use(one, user)) {
        view.names.push_back(name);
      }
    }
    if (view.names.empty()) return;
  }
  const std::string key = fmt::format("{}{}", view.only ? '=' : '~', fmt::join(view.names, ","));
  const auto [at, fresh] = view_numbers.emplace(key, views.size());
  if (fresh) views.push_back(std::move(view));
  job.view = at->second;
}

void State::Memory::reservations_changed(Time now) {
  ++reservation_round;
  for (auto& [id, job] : jobs) {
    if (job.pending()) set_view(job);
  }
  mark_reserved_nodes(now);
  arm_reservations(now);
  wake_all();
  ++version;
}

void State::Memory::move_reservations(const cluster::Cluster& before) {
  for (auto& [name, one] : reservations) {
    std::vector<cluster::NodeShare> kept;
    const cluster::Partition* partition = cluster.find_partition(one.partition);
    if (one.flags.has(Flag::part_nodes) && partition != nullptr && one.allocation.whole_nodes) {
      for (const cluster::NodeIndex index : partition->nodes) {
        const cluster::Node& node = cluster.nodes[index];
        cluster::NodeShare& share = kept.emplace_back();
        share.node = index;
        share.cores = Bits::first_n(node.cores()) - node.reserved_cores;
        share.cpus = static_cast<std::uint32_t>(share.cores.count()) * node.threads_per_core;
      }
    } else {
      for (cluster::NodeShare& share : one.allocation.nodes) {
        const auto index = cluster.find_node(before.nodes[share.node].name);
        if (!index) continue;
        share.node = *index;
        kept.push_back(std::move(share));
      }
    }
    std::ranges::sort(kept, {}, &cluster::NodeShare::node);
    one.allocation.nodes = std::move(kept);
    dirty_reservations.insert(name);
  }
}

std::uint64_t State::Memory::licenses_kept(const std::string& name, const Job& job,
                                           Time now) const {
  std::uint64_t kept = 0;
  const Time seconds = job.time_limit_minutes ? Time{*job.time_limit_minutes} * 60 : Time{1} << 32U;
  for (const auto& [other, one] : reservations) {
    const auto count = one.licenses.find(name);
    if (count == one.licenses.end() || !one.first_meeting({now, now + seconds}, now)) continue;
    if (std::ranges::find(views[job.view].names, other) != views[job.view].names.end()) continue;
    std::uint64_t used = 0;
    for (const JobId id : holding) {
      const Job& running = jobs.at(id);
      if (running.reservation != other) continue;
      const auto counts = license_counts(running.what->licenses);
      if (const auto at = counts.find(name); at != counts.end()) used += at->second;
    }
    kept += count->second - std::min(count->second, used);
  }
  return kept;
}

}  // namespace berth::job
