#include "schedule/groups.h"

namespace berth::schedule {
namespace {

bool same(const job::QueueKey& a, const job::QueueKey& b) {
  return !(a < b) && !(b < a);
}

}  // namespace

GroupKey group_of(const job::Job& job) {
  constexpr std::uint64_t kUndecided = ~std::uint64_t{0};
  constexpr std::uint64_t kUnlimited = kUndecided - 1;
  const std::uint64_t minutes = !job.time_limit_decided  ? kUndecided
                                : job.time_limit_minutes ? *job.time_limit_minutes
                                                         : kUnlimited;
  std::uint64_t shape = job.what->shape;
  // How long each of these has waited for few switches decides what will do.
  if (job.what->request.switches) shape ^= (job.id + 1) * 0xd6e8feb86659fd93ULL;
  return {shape, minutes, job.view};
}

std::optional<job::QueueKey> Groups::living(const job::State& state, Members& members,
                                            Members::iterator at, const GroupKey& group) {
  while (at != members.end()) {
    const auto key = state.key_of(at->id);
    const job::Job* job = key ? state.find(at->id) : nullptr;
    if (job != nullptr && same(*key, *at) && group_of(*job) == group) return *at;
    at = members.erase(at);
  }
  return std::nullopt;
}

std::optional<job::QueueKey> Groups::first(const job::State& state, const GroupKey& group) {
  Members& members = groups_[group];
  return living(state, members, members.begin(), group);
}

std::optional<job::QueueKey> Groups::next(const job::State& state, const GroupKey& group,
                                          const job::QueueKey& after) {
  Members& members = groups_[group];
  return living(state, members, members.upper_bound(after), group);
}

void Groups::tidy() {
  std::erase_if(groups_, [](const auto& group) { return group.second.empty(); });
}

}  // namespace berth::schedule
