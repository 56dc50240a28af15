#include "net/quota.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::net {

QuotaLimits QuotaLimits::of_descriptors(std::size_t descriptors) {
  QuotaLimits limits;
  limits.all_connections = std::max<std::size_t>(16, descriptors / 2);
  limits.user_connections = std::max<std::size_t>(8, descriptors / 8);
  limits.unknown_connections = std::clamp<std::size_t>(descriptors / 16, 8, 512);
  limits.node_connections = std::clamp<std::size_t>(descriptors / 16, 8, 128);
  return limits;
}

void Quota::count(Account account, User& user, std::ptrdiff_t change) {
  if (!user.certificate.empty()) {
    user.connections += static_cast<std::size_t>(change);
    return;
  }
  by_connections_.erase({user.connections, account});
  user.connections += static_cast<std::size_t>(change);
  connections_ += static_cast<std::size_t>(change);
  if (user.connections > 0) by_connections_.insert({user.connections, account});
}

Quota::Admission Quota::enter(Guest guest, std::uint32_t uid, bool free) {
  Admission out;
  if (free) {
    leave(guest);
    guests_[guest] = {.kind = Kind::free};
    return out;
  }
  User& user = users_[uid];
  if (user.connections >= limits_.user_connections) {
    out.admitted = false;
    out.why = fmt::format("user {} has {} connections, the most is {}", uid, user.connections,
                          limits_.user_connections);
    return out;
  }
  if (connections_ >= limits_.all_connections) {
    // Who has most gives one up; a newcomer who has as many himself does not get in.
    const auto [most, greedy] = *by_connections_.rbegin();
    const std::list<Guest>& silent = users_.at(greedy).silent;
    if (user.connections + 1 >= most || silent.empty()) {
      out.admitted = false;
      out.why = fmt::format("users have {} connections, the most is {}", connections_,
                            limits_.all_connections);
      return out;
    }
    out.evict = silent.front();
    out.why_evicted =
        fmt::format("user {} has {} connections, more than others, and others wait", greedy, most);
  }
  leave(guest);
  User& host = users_[uid];  // leave() may have forgotten a user without connections
  count(uid, host, 1);
  Entry entry{.kind = Kind::user, .account = uid};
  entry.order = host.silent.insert(host.silent.end(), guest);
  entry.in_order = true;
  guests_[guest] = std::move(entry);
  return out;
}

Quota::Admission Quota::enter_node(Guest guest, const std::string& certificate) {
  Admission out;
  const auto known = nodes_.find(certificate);
  if (known != nodes_.end() && users_.at(known->second).connections >= limits_.node_connections) {
    out.admitted = false;
    out.why = fmt::format("{} connections show this certificate, the most is {}",
                          users_.at(known->second).connections, limits_.node_connections);
    return out;
  }
  leave(guest);
  const auto [place, added] = nodes_.try_emplace(certificate, 0);
  if (added) place->second = ++last_node_;
  User& node = users_[place->second];
  node.certificate = certificate;
  count(place->second, node, 1);
  guests_[guest] = {.kind = Kind::node, .account = place->second};
  return out;
}

Quota::Admission Quota::enter_unknown(Guest guest, const std::string& source, QuotaTime now) {
  Admission out;
  if (unknown_connections_ >= limits_.unknown_connections) {
    const auto& [most, greedy] = *by_unknown_.rbegin();
    out.evict = unknown_.at(greedy).front();
    out.why_evicted = fmt::format(
        "{} connections have not said whose they are, the most is {}; {} of them from {}",
        unknown_connections_, limits_.unknown_connections, most, greedy);
  }
  std::list<Guest>& others = unknown_[source];
  by_unknown_.erase({others.size(), source});
  Entry entry{.source = source};
  entry.order = others.insert(others.end(), guest);
  entry.in_order = true;
  by_unknown_.insert({others.size(), source});
  ++unknown_connections_;
  guests_[guest] = std::move(entry);
  set_deadline(guest, now + limits_.handshake);
  return out;
}

void Quota::forget_unknown(const Entry& entry) {
  std::list<Guest>& others = unknown_.at(entry.source);
  by_unknown_.erase({others.size(), entry.source});
  others.erase(entry.order);
  --unknown_connections_;
  if (others.empty()) {
    unknown_.erase(entry.source);
  } else {
    by_unknown_.insert({others.size(), entry.source});
  }
}

void Quota::leave(Guest guest) {
  const auto found = guests_.find(guest);
  if (found == guests_.end()) return;
  set_deadline(guest, std::nullopt);
  Entry& entry = found->second;
  if (entry.kind == Kind::unknown) forget_unknown(entry);
  if (is_counted(entry)) {
    User& user = users_.at(entry.account);
    let_go(entry);
    while (!entry.work.empty()) end_work(guest);
    if (entry.in_order) user.silent.erase(entry.order);
    count(entry.account, user, -1);
    // What he has asked for in the last seconds is remembered: nobody fills his bucket by leaving.
    if (user.connections == 0 && !user.bucket) {
      if (!user.certificate.empty()) nodes_.erase(user.certificate);
      users_.erase(entry.account);
    }
  }
  guests_.erase(found);
}

void Quota::heard(Guest guest) {
  const auto found = guests_.find(guest);
  if (found == guests_.end() || !found->second.in_order || !is_counted(found->second)) return;
  std::list<Guest>& silent = users_.at(found->second.account).silent;
  silent.splice(silent.end(), silent, found->second.order);
}

void Quota::keep(Guest guest) {
  const auto found = guests_.find(guest);
  if (found == guests_.end() || !found->second.in_order || !is_counted(found->second)) return;
  users_.at(found->second.account).silent.erase(found->second.order);
  found->second.in_order = false;
}

std::chrono::nanoseconds Quota::Bucket::take(double per_second, double burst, QuotaTime now) {
  const std::chrono::duration<double> passed = now - refilled;
  tokens = std::min(burst, tokens + passed.count() * per_second) - 1;
  refilled = now;
  if (tokens >= 0) return {};
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(-tokens / per_second));
}

std::chrono::nanoseconds Quota::wait_for_request(Guest guest, QuotaTime now) {
  const auto found = guests_.find(guest);
  if (found == guests_.end()) return {};
  if (found->second.kind == Kind::unknown) return wait_of_unknown(found->second.source, now);
  if (!is_counted(found->second)) return {};
  std::optional<Bucket>& bucket = users_.at(found->second.account).bucket;
  if (!bucket) bucket = Bucket{limits_.user_burst, now};
  return bucket->take(limits_.user_requests_per_second, limits_.user_burst, now);
}

std::chrono::nanoseconds Quota::wait_of_unknown(const std::string& source, QuotaTime now) {
  const double rate = limits_.unknown_requests_per_second;
  const double burst = limits_.unknown_burst;
  // Addresses are many: those that have asked for nothing of late are forgotten.
  constexpr std::size_t kMostSources = 4096;
  if (asked_.size() >= kMostSources) {
    const auto full = std::chrono::duration<double>(2 * burst / rate);
    std::erase_if(asked_, [&](const auto& one) { return one.second.refilled + full < now; });
    if (asked_.size() >= kMostSources) asked_.clear();
  }
  return asked_.try_emplace(source, Bucket{burst, now}).first->second.take(rate, burst, now);
}

bool Quota::may_work(Guest guest, std::size_t bytes) const {
  const auto found = guests_.find(guest);
  if (found == guests_.end() || !is_counted(found->second)) return true;
  const User& user = users_.at(found->second.account);
  return user.working == 0 || (user.working < limits_.user_working &&
                               user.working_bytes + bytes <= limits_.user_working_bytes);
}

void Quota::begin_work(Guest guest, std::size_t bytes) {
  const auto found = guests_.find(guest);
  if (found == guests_.end() || !is_counted(found->second)) return;
  User& user = users_.at(found->second.account);
  found->second.work.push_back(bytes);
  ++user.working;
  user.working_bytes += bytes;
}

void Quota::end_work(Guest guest) {
  const auto found = guests_.find(guest);
  if (found == guests_.end() || found->second.work.empty()) return;
  User& user = users_.at(found->second.account);
  --user.working;
  user.working_bytes -= found->second.work.front();
  found->second.work.erase(found->second.work.begin());
}

void Quota::let_go(Entry& entry) {
  User& user = users_.at(entry.account);
  user.held -= entry.held;
  if (entry.kind == Kind::user) held_ -= entry.held;
  entry.held = 0;
  if (entry.holding) user.holders.erase(entry.holder);
  entry.holding = false;
}

Quota::Hold Quota::hold(Guest guest, std::size_t bytes) {
  const auto found = guests_.find(guest);
  if (found == guests_.end() || !is_counted(found->second)) return Hold::go_on;
  Entry& entry = found->second;
  if (bytes == 0) {
    let_go(entry);
    return Hold::go_on;
  }
  User& user = users_.at(entry.account);
  if (!entry.holding) entry.holder = user.holders.insert(user.holders.end(), guest);
  entry.holding = true;
  user.held = user.held - entry.held + bytes;
  if (entry.kind == Kind::user) held_ = held_ - entry.held + bytes;
  entry.held = bytes;
  if (user.holders.front() == guest) return Hold::go_on;
  // Nodes have nothing to do with what users take, nor with each other.
  const bool too_much = entry.kind == Kind::user && held_ > limits_.all_held_bytes;
  if (user.held > 2 * limits_.user_held_bytes || too_much) return Hold::drop;
  return user.held > limits_.user_held_bytes ? Hold::wait : Hold::go_on;
}

void Quota::set_deadline(Guest guest, std::optional<QuotaTime> at) {
  const auto found = guests_.find(guest);
  if (found == guests_.end()) return;
  if (found->second.deadline) deadlines_.erase({*found->second.deadline, guest});
  found->second.deadline = at;
  if (at) deadlines_.insert({*at, guest});
}

std::optional<QuotaTime> Quota::deadline(Guest guest) const {
  const auto found = guests_.find(guest);
  return found == guests_.end() ? std::nullopt : found->second.deadline;
}

std::chrono::nanoseconds Quota::frame_patience(std::size_t frame_bytes) const {
  return limits_.frame_patience +
         std::chrono::seconds(frame_bytes / limits_.frame_bytes_per_second);
}

std::chrono::nanoseconds Quota::answer_patience(std::size_t bytes) const {
  return limits_.answer_patience + std::chrono::seconds(bytes / limits_.frame_bytes_per_second);
}

std::vector<Guest> Quota::expired(QuotaTime now) {
  std::vector<Guest> out;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    out.push_back(deadlines_.begin()->second);
    set_deadline(out.back(), std::nullopt);
  }
  return out;
}

Account Quota::account(Guest guest) const {
  const auto found = guests_.find(guest);
  return found == guests_.end() ? 0 : found->second.account;
}

std::size_t Quota::connections(Account account) const {
  const auto found = users_.find(account);
  return found == users_.end() ? 0 : found->second.connections;
}

}  // namespace berth::net
