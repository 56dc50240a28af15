#include "schedule/preempt.h"

#include <algorithm>
#include <set>

namespace berth::schedule {
namespace {

using job::Job;
using job::PreemptMode;
using job::State;
using place::JobPlan;

/// So many of those that were found are asked one by one whether it goes without them.
constexpr std::size_t kMostSpared = 64;

/// What a suspended job gives back of a node.
cluster::NodeShare cores_of(const cluster::NodeShare& share) {
  cluster::NodeShare out;
  out.node = share.node;
  out.cores = share.cores;
  return out;
}

const cluster::NodeShare* share_on(const Job& job, NodeIndex node) {
  const auto& shares = job.allocation.nodes;
  const auto at = std::ranges::lower_bound(shares, node, {}, &cluster::NodeShare::node);
  return at == shares.end() || at->node != node ? nullptr : &*at;
}

}  // namespace

Time exempt_until(const State& state, const Job& job) {
  return job.start_time + job.seconds_suspended + state.policy().preempt.exempt;
}

Stays stays(const State& state, const Wants& wants, const Job& other, Time now) {
  const job::PreemptPolicy& policy = state.policy().preempt;
  if (!other.running || other.flags.completing || other.gives_way()) return Stays::ends;
  if (state.tier_of(other.partition) >= wants.tier) return Stays::tier;
  const PreemptMode mode = state.preempt_mode(other);
  if (mode == PreemptMode::off) return Stays::mode_off;
  if (mode == PreemptMode::suspend && other.base != job::Base::running) return Stays::mode_off;
  if (policy.lower_priority_only && other.priority >= wants.job->priority) return Stays::priority;
  if (policy.min_exempt_priority && other.priority >= *policy.min_exempt_priority) {
    return Stays::exempt_priority;
  }
  if (wants.job->what->request.exclusive == request::Exclusive::user &&
      other.uid != wants.job->uid) {
    return Stays::other_user;
  }
  if (mode != PreemptMode::suspend && now < exempt_until(state, other)) return Stays::exempt;
  return Stays::no;
}

std::vector<std::pair<std::uint32_t, std::string>> tiers_of(const State& state, const Job& job) {
  std::vector<std::pair<std::uint32_t, std::string>> out;
  for (const std::string& name : job.what->request.partitions) {
    out.emplace_back(state.tier_of(name), name);
  }
  const cluster::Partition* standard = state.cluster().default_partition();
  if (out.empty() && standard != nullptr) {
    out.emplace_back(state.tier_of(standard->name), standard->name);
  }
  std::ranges::stable_sort(out, [](const auto& a, const auto& b) { return a.first > b.first; });
  return out;
}

Preemption::Preemption(const State& state, Calendar& calendar, Time now)
    : state_(&state), calendar_(&calendar), now_(now), overlay_(state.cluster().nodes.size()) {}

void Preemption::gather() {
  if (known_) return;
  known_ = true;
  candidates_.clear();
  for (const JobId id : state_->holding()) {
    const Job& job = *state_->find(id);
    if (job.het && job.het->leader != id) continue;  // with its leader
    const PreemptMode mode = state_->preempt_mode(job);
    if (!job.running || job.flags.completing || job.gives_way() || mode == PreemptMode::off) {
      continue;
    }
    Candidate one;
    one.leader = id;
    one.parts = job.het ? state_->records_of(job.het->leader) : std::vector<JobId>{id};
    one.start = job.start_time;
    one.suspends = mode == PreemptMode::suspend;
    const auto policy = state_->policy().partitions.find(job.partition);
    if (policy != state_->policy().partitions.end() && !one.suspends) {
      one.grace = policy->second.grace;
    }
    for (const JobId part_id : one.parts) {
      const Job& part = *state_->find(part_id);
      one.tier = std::max(one.tier, state_->tier_of(part.partition));
      for (const cluster::NodeShare& share : part.allocation.nodes) {
        one.cpus += share.cpus;
        one.gpus += share.gpus().count();
        one.nodes.push_back(share.node);
      }
    }
    candidates_.push_back(std::move(one));
  }
  const bool youngest = state_->policy().preempt.youngest_first;
  std::ranges::sort(candidates_, [&](const Candidate& a, const Candidate& b) {
    if (a.tier != b.tier) return a.tier < b.tier;
    if (youngest && a.start != b.start) return a.start > b.start;
    if (a.cpus != b.cpus) return a.cpus < b.cpus;
    if (a.start != b.start) return a.start > b.start;
    return a.leader > b.leader;
  });
  on_node_.assign(state_->cluster().nodes.size(), {});
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    for (const NodeIndex node : candidates_[i].nodes) {
      if (on_node_[node].empty() || on_node_[node].back() != i) on_node_[node].push_back(i);
    }
  }
}

std::vector<bool> Preemption::willing_to(const Job& job, std::uint32_t tier) {
  std::vector<bool> out(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size() && candidates_[i].tier < tier; ++i) {
    const Candidate& one = candidates_[i];
    const Job* other = state_->find(one.leader);
    // It may have ended since they were gathered.
    if (other == nullptr || !other->running || other->start_time != one.start) continue;
    const Stays why = stays(*state_, {&job, tier}, *other, now_);
    out[i] = why == Stays::no;
    if (why != Stays::exempt) continue;
    const Time until = exempt_until(*state_, *other);
    if (look_again_ == 0 || until < look_again_) look_again_ = until;
  }
  return out;
}

std::optional<GivingWay> Preemption::find(const Job& job, const place::Prepared& prepared,
                                          Time seconds, const std::vector<JobId>& must_go,
                                          Work& work) {
  gather();
  look_again_ = 0;
  const auto tiers = tiers_of(*state_, job);
  for (const auto& [tier, partition] : tiers) {
    Question question;
    question.seconds = seconds;
    question.work = &work;
    question.willing = willing_to(job, tier);
    work.looked_at += candidates_.size();
    for (std::size_t i = 0; i < candidates_.size() && !must_go.empty(); ++i) {
      if (!question.willing[i]) continue;
      const auto at = std::ranges::find(must_go, candidates_[i].leader);
      if (at != must_go.end()) question.must_go.push_back(i);
    }
    const bool any = std::ranges::find(question.willing, true) != question.willing.end();
    if (!any || question.must_go.size() < must_go.size()) continue;
    // In one partition at a time: what it may take depends on where it is going to run.
    request::Request alone = job.what->request;
    std::optional<place::Prepared> there;
    if (tiers.size() > 1) {
      alone.partitions = {partition};
      there.emplace(state_->cluster(), alone);
      if (!there->runnable()) continue;
    }
    question.prepared = there ? &*there : &prepared;
    if (auto found = find_in(question)) return found;
  }
  return std::nullopt;
}

std::vector<JobId> Preemption::holders_of_licenses(const Job& job) {
  gather();
  auto missing = state_->missing_licenses(job);
  const std::vector<bool> willing = willing_to(job, tiers_of(*state_, job).front().first);
  std::vector<JobId> out;
  for (std::size_t i = 0; i < candidates_.size() && !missing.empty(); ++i) {
    const Candidate& one = candidates_[i];
    if (!willing[i] || one.suspends) continue;
    const Job& other = *state_->find(one.leader);
    bool has = false;
    for (auto at = missing.begin(); at != missing.end();) {
      const std::uint64_t count = State::licenses_of(other, at->first);
      has = has || count > 0;
      at->second -= std::min(at->second, count);
      at = at->second == 0 ? missing.erase(at) : std::next(at);
    }
    if (has) out.push_back(one.leader);
  }
  return missing.empty() ? out : std::vector<JobId>();
}

std::optional<GivingWay> Preemption::find_in(Question& question) {
  const std::vector<Ranked> ranked = rank_nodes(question);
  const place::Prepared& prepared = *question.prepared;
  const std::size_t least = std::max<std::size_t>(prepared.min_nodes(), prepared.required().size());
  if (ranked.size() < least) return std::nullopt;
  // What is free already, and the cheapest nodes beside it; then more and more of them.
  const auto free = static_cast<std::size_t>(
      std::ranges::count_if(ranked, [](const Ranked& rank) { return rank.count == 0; }));
  std::size_t more = 1;
  for (std::size_t count = std::min(std::max(least, free + more), ranked.size());;
       count = std::min(count + more, ranked.size())) {
    more *= 2;
    std::set<NodeIndex> offer(prepared.required().begin(), prepared.required().end());
    for (std::size_t i = 0; i < count; ++i) offer.insert(ranked[i].node);
    const std::vector<NodeIndex> nodes(offer.begin(), offer.end());
    Positions all;
    std::set<std::size_t> seen;
    for (const NodeIndex node : nodes) {
      for (const std::size_t i : on_node_[node]) {
        if (question.willing[i] && seen.insert(i).second) all.push_back(i);
      }
    }
    if (const auto plan = place(question, all, nodes)) return fewest(question, nodes, *plan);
    if (count == ranked.size()) return std::nullopt;
  }
}

bool Preemption::may_use(const place::Prepared& prepared, NodeIndex node) const {
  return state_->cluster().nodes[node].usable && prepared.may_use(node) && calendar_->allows(node);
}

/// Nodes that could do when all who are willing were gone, in numbers; those that cost least first.
std::vector<Preemption::Ranked> Preemption::rank_nodes(const Question& question) const {
  const cluster::Cluster& cluster = state_->cluster();
  const cluster::Room& floor = question.prepared->floor();
  std::vector<Ranked> out;
  for (NodeIndex node = 0; node < cluster.nodes.size(); ++node) {
    if (!may_use(*question.prepared, node)) continue;
    ++question.work->looked_at;
    Balance balance(cluster.nodes[node], state_->usage().at(node));
    for (const JobId id : state_->node(node).jobs) {
      const Job* job = state_->find(id);
      const cluster::NodeShare* share = job == nullptr ? nullptr : share_on(*job, node);
      if (share != nullptr && (job->flags.completing || job->gives_way()) && !job->parked()) {
        balance.ends(*share, job->allocation.whole_nodes);
      }
    }
    Ranked rank{node, 0, 0, 0};
    bool enough = balance.room().holds(floor);
    for (const std::size_t i : on_node_[node]) {
      if (enough) break;
      if (!question.willing[i]) continue;
      const Candidate& one = candidates_[i];
      for (const JobId part : one.parts) {
        const Job& job = *state_->find(part);
        const cluster::NodeShare* share = share_on(job, node);
        if (share == nullptr) continue;
        balance.ends(one.suspends ? cores_of(*share) : *share, job.allocation.whole_nodes);
      }
      rank.worst_tier = std::max(rank.worst_tier, one.tier + 1);
      ++rank.count;
      rank.cpus += one.cpus;
      enough = balance.room().holds(floor);
    }
    if (enough) out.push_back(rank);
  }
  std::ranges::sort(out, [](const Ranked& a, const Ranked& b) {
    if (a.worst_tier != b.worst_tier) return a.worst_tier < b.worst_tier;
    if (a.count != b.count) return a.count < b.count;
    return a.cpus != b.cpus ? a.cpus < b.cpus : a.node < b.node;
  });
  return out;
}

std::optional<JobPlan> Preemption::place(const Question& question, const Positions& gone,
                                         const std::vector<NodeIndex>& nodes) {
  Gone away;
  Time last = now_ + 1;
  std::set<NodeIndex> offered(nodes.begin(), nodes.end());
  const auto add = [&](std::size_t position) {
    const Candidate& one = candidates_[position];
    (one.suspends ? away.suspended : away.jobs).insert(one.parts.begin(), one.parts.end());
    last = std::max(last, now_ + one.grace);
    // What it leaves elsewhere can be had as well.
    for (const NodeIndex node : one.nodes) {
      if (may_use(*question.prepared, node)) offered.insert(node);
    }
  };
  for (const std::size_t position : gone) add(position);
  for (const std::size_t position : question.must_go) add(position);
  // Those that end for this one are over a moment from now.
  const Span span{now_ + 1, last + question.seconds};
  overlay_.clear();
  std::vector<NodeIndex> usable;
  for (const NodeIndex node : offered) {
    cluster::NodeUsage usage = calendar_->usage_over(node, span, &away);
    if (!cluster::room_of(state_->cluster().nodes[node], usage).holds(question.prepared->floor())) {
      continue;
    }
    overlay_.put(node) = std::move(usage);
    usable.push_back(node);
  }
  question.work->looked_at += offered.size();
  if (usable.size() < question.prepared->min_nodes()) return std::nullopt;
  ++question.work->placed;
  return question.prepared->now(cluster::UsageView(state_->usage(), overlay_), usable);
}

GivingWay Preemption::fewest(const Question& question, const std::vector<NodeIndex>& nodes,
                             const JobPlan& plan) {
  std::set<std::size_t> here;
  for (const NodeIndex node : nodes) {
    for (const std::size_t i : on_node_[node]) {
      if (question.willing[i]) here.insert(i);
    }
  }
  Positions order(here.begin(), here.end());
  Choice best = first_of(question, nodes, order, plan);
  if (best.gone.size() > 1 && !state_->policy().preempt.youngest_first) {
    // One large job in place of several small ones.
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const Candidate& x = candidates_[a];
      const Candidate& y = candidates_[b];
      if (x.tier != y.tier) return x.tier < y.tier;
      return x.gpus != y.gpus ? x.gpus > y.gpus : x.cpus > y.cpus;
    });
    Choice other = first_of(question, nodes, order, plan);
    if (cheaper(other.gone, best.gone)) best = std::move(other);
  }
  std::set<std::size_t> all(best.gone.begin(), best.gone.end());
  all.insert(question.must_go.begin(), question.must_go.end());
  GivingWay out;
  out.start = now_ + 1;
  for (const std::size_t position : all) {
    out.jobs.push_back(candidates_[position].leader);
    out.start = std::max(out.start, now_ + candidates_[position].grace);
  }
  out.plan = std::move(best.plan);
  return out;
}

bool Preemption::cheaper(const Positions& a, const Positions& b) const {
  const auto worst = [&](const Positions& some) {
    std::uint32_t tier = 0;
    for (const std::size_t position : some) tier = std::max(tier, candidates_[position].tier);
    return tier;
  };
  return worst(a) != worst(b) ? worst(a) < worst(b) : a.size() < b.size();
}

Preemption::Choice Preemption::first_of(const Question& question,
                                        const std::vector<NodeIndex>& nodes, const Positions& order,
                                        const JobPlan& plan) {
  Choice out{order, plan};
  std::size_t least = 0;
  std::size_t most = order.size();  // does
  while (least < most) {
    const std::size_t middle = least + (most - least) / 2;
    Positions some(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(middle));
    if (auto found = place(question, some, nodes)) {
      most = middle;
      out = {std::move(some), std::move(*found)};
    } else {
      least = middle + 1;
    }
  }
  spare(question, nodes, out.gone, out.plan);
  return out;
}

/// Who is not needed after all stays, those first that are worth most.
void Preemption::spare(const Question& question, const std::vector<NodeIndex>& nodes,
                       Positions& gone, JobPlan& plan) {
  const auto in_the_way = [&](std::size_t position) {
    return std::ranges::any_of(candidates_[position].nodes, [&](NodeIndex node) {
      return std::ranges::any_of(plan.allocation.nodes, [&](const cluster::NodeShare& share) {
        return share.node == node;
      });
    });
  };
  std::erase_if(gone, [&](std::size_t position) { return !in_the_way(position); });
  std::size_t asked = 0;
  for (std::size_t i = gone.size(); i-- > 0 && asked < kMostSpared; ++asked) {
    Positions others = gone;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (auto found = place(question, others, nodes)) {
      gone = std::move(others);
      plan = std::move(*found);
    }
  }
}

}  // namespace berth::schedule
