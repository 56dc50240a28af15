#include "schedule/horizon.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

namespace berth::schedule {
namespace {

bool before(const Opening& a, const Opening& b) {
  return std::tie(a.at, a.node) < std::tie(b.at, b.node);
}

}  // namespace

std::optional<std::vector<NodeIndex>> Horizon::changed(const job::State& state) {
  const auto in_usage = usage_.read(state.usage().changes());
  const auto in_ends = ends_.read(state.ends_changed());
  if (!in_usage || !in_ends) return std::nullopt;
  std::vector<NodeIndex> out = drifting_;
  out.insert(out.end(), in_usage->begin(), in_usage->end());
  out.insert(out.end(), in_ends->begin(), in_ends->end());
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

void Horizon::look_at(const job::State& state, NodeIndex node, const Running& running,
                      std::vector<Opening>& out) {
  const cluster::Node& what = state.cluster().nodes[node];
  if (!what.usable) return;
  std::vector<Timeline::Use> uses = running(node);
  if (uses.empty()) return;
  std::ranges::stable_sort(uses, {}, [](const Timeline::Use& use) { return use.span.until; });
  Balance balance(what, state.usage().at(node));
  bool drifts = false;
  for (const Timeline::Use& use : uses) {
    balance.ends(*use.share, use.whole_node);
    out.push_back({use.span.until, node, balance.room()});
    drifts = drifts || state.find(use.job)->base == job::Base::suspended;
  }
  if (drifts) drifting_.push_back(node);
}

const std::vector<Opening>& Horizon::follow(const job::State& state, const Running& running) {
  const std::size_t nodes = state.cluster().nodes.size();
  std::optional<std::vector<NodeIndex>> news = changed(state);
  if (news && news->empty()) return all_;
  ++version_;
  if (!news) {
    all_.clear();
    news.emplace(nodes);
    std::iota(news->begin(), news->end(), NodeIndex{0});
  }
  std::vector<bool> again(nodes);
  for (const NodeIndex node : *news) again[node] = true;
  drifting_.clear();
  std::vector<Opening> fresh;
  for (const NodeIndex node : *news) look_at(state, node, running, fresh);
  std::ranges::stable_sort(fresh, before);
  std::erase_if(all_, [&](const Opening& one) { return again[one.node]; });
  spare_.clear();
  spare_.reserve(all_.size() + fresh.size());
  std::ranges::merge(all_, fresh, std::back_inserter(spare_), before);
  std::swap(all_, spare_);
  return all_;
}

}  // namespace berth::schedule
