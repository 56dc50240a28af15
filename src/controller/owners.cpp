#include "controller/owners.h"

#include <algorithm>

namespace berth::controller {

void Owners::own_job(job::JobId job, Peer peer) {
  forget_job(job);
  jobs_[job] = peer;
  peers_[peer].jobs.insert(job);
}

void Owners::await_owner(job::JobId job, Moment until) {
  forget_job(job);
  awaited_jobs_[job] = until;
}

void Owners::forget_job(job::JobId job) {
  awaited_jobs_.erase(job);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  const auto peer = peers_.find(found->second);
  if (peer != peers_.end()) peer->second.jobs.erase(job);
  jobs_.erase(found);
}

std::optional<Peer> Owners::owner(job::JobId job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return std::nullopt;
  return found->second;
}

std::uint64_t Owners::ask_step(AskedStep step) {
  const std::uint64_t key = ++last_key_;
  peers_[step.peer].asked.insert(key);
  asked_.emplace(key, std::move(step));
  return key;
}

const AskedStep* Owners::asked_step(std::uint64_t key) const {
  const auto found = asked_.find(key);
  return found == asked_.end() ? nullptr : &found->second;
}

void Owners::forget_asked(std::uint64_t key) {
  const auto found = asked_.find(key);
  if (found == asked_.end()) return;
  const auto peer = peers_.find(found->second.peer);
  if (peer != peers_.end()) peer->second.asked.erase(key);
  asked_.erase(found);
}

std::vector<std::uint64_t> Owners::asked_keys() const {
  std::vector<std::uint64_t> keys;
  for (const auto& [key, step] : asked_) keys.push_back(key);
  return keys;
}

void Owners::own_step(StepName step, Peer peer) {
  forget_step(step);
  steps_[step] = peer;
  peers_[peer].steps.insert(step);
}

void Owners::await_step_owner(StepName step, Moment until) {
  if (!steps_.contains(step)) awaited_steps_.try_emplace(step, until);
}

void Owners::forget_step(StepName step) {
  awaited_steps_.erase(step);
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  const auto peer = peers_.find(found->second);
  if (peer != peers_.end()) peer->second.steps.erase(step);
  steps_.erase(found);
}

void Owners::forget_steps_of(job::JobId job) {
  std::vector<StepName> steps;
  for (auto i = steps_.lower_bound({job, 0}); i != steps_.end() && i->first.first == job; ++i) {
    steps.push_back(i->first);
  }
  for (auto i = awaited_steps_.lower_bound({job, 0});
       i != awaited_steps_.end() && i->first.first == job; ++i) {
    steps.push_back(i->first);
  }
  for (const StepName& step : steps) forget_step(step);
}

std::set<Peer> Owners::step_peers(job::JobId job) const {
  std::set<Peer> peers;
  for (auto i = steps_.lower_bound({job, 0}); i != steps_.end() && i->first.first == job; ++i) {
    peers.insert(i->second);
  }
  return peers;
}

void Owners::wait_for(job::JobId job, Peer peer) {
  waiters_[job].insert(peer);
  peers_[peer].waits.insert(job);
}

std::vector<Peer> Owners::take_waiters(job::JobId job) {
  const auto found = waiters_.find(job);
  if (found == waiters_.end()) return {};
  std::vector<Peer> peers(found->second.begin(), found->second.end());
  for (const Peer peer : peers) {
    const auto belongings = peers_.find(peer);
    if (belongings != peers_.end()) belongings->second.waits.erase(job);
  }
  waiters_.erase(found);
  return peers;
}

Owners::Left Owners::lost(Peer peer) {
  Left left;
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return left;
  const Belongings had = std::move(found->second);
  peers_.erase(found);
  left.jobs.assign(had.jobs.begin(), had.jobs.end());
  left.steps.assign(had.steps.begin(), had.steps.end());
  left.asked.assign(had.asked.begin(), had.asked.end());
  for (const job::JobId job : had.jobs) jobs_.erase(job);
  for (const StepName& step : had.steps) steps_.erase(step);
  for (const std::uint64_t key : had.asked) asked_.erase(key);
  for (const job::JobId job : had.waits) {
    const auto waiters = waiters_.find(job);
    if (waiters == waiters_.end()) continue;
    waiters->second.erase(peer);
    if (waiters->second.empty()) waiters_.erase(waiters);
  }
  return left;
}

Owners::Left Owners::expired(Moment now) {
  Left left;
  for (const auto& [job, until] : awaited_jobs_) {
    if (until <= now) left.jobs.push_back(job);
  }
  for (const auto& [step, until] : awaited_steps_) {
    if (until <= now) left.steps.push_back(step);
  }
  for (const job::JobId job : left.jobs) awaited_jobs_.erase(job);
  for (const StepName& step : left.steps) awaited_steps_.erase(step);
  return left;
}

std::optional<Moment> Owners::next_deadline() const {
  std::optional<Moment> next;
  const auto sooner = [&](Moment moment) {
    if (!next || moment < *next) next = moment;
  };
  for (const auto& [job, until] : awaited_jobs_) sooner(until);
  for (const auto& [step, until] : awaited_steps_) sooner(until);
  return next;
}

}  // namespace berth::controller
