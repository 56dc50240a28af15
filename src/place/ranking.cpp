#include "place/ranking.h"

#include <algorithm>
#include <atomic>

#include "cluster/change_reader.h"

namespace berth::place {
namespace {

using cluster::Gres;
using cluster::Node;
using cluster::NodeIndex;
using cluster::NodeUsage;
using cluster::WeightedDemand;

/// Before jobs were seen, these many imagined ones stand for them; they count less with each real
/// one.
constexpr double kImaginedJobs = 32;
/// What is typical is learnt anew after so many jobs: at first often, then now and then, because
/// all that was remembered is forgotten with it.
constexpr std::uint64_t kFirstLesson = 16;
constexpr std::uint64_t kMostBetweenLessons = 1024;
/// Bins remembered at most.
constexpr std::size_t kMostBins = 200'000;

/// What jobs would ask for on nodes of this build: one GPU, two, four … up to all, each with its
/// part of the CPUs and the memory; small ones more often.
void imagine(const Node& node, double nodes, std::vector<WeightedDemand>& out) {
  const Gres* gpus = node.find_gres("gpu");
  const std::uint64_t count = gpus == nullptr ? 0 : gpus->total();
  const auto add = [&](std::uint64_t asked) {
    Demand demand;
    demand.gpus = static_cast<std::uint32_t>(asked);
    demand.cpu_milli = std::uint64_t{node.cpus()} * 1000 * asked / count * 3 / 4;
    demand.memory_mb = node.usable_memory_mb() * asked / count * 3 / 4;
    out.push_back({demand, nodes * static_cast<double>(count) / static_cast<double>(asked)});
  };
  for (std::uint64_t asked = 1; asked < count; asked *= 2) add(asked);
  if (count > 0) add(count);
}

std::vector<WeightedDemand> typical_of(const cluster::Cluster& cluster,
                                       const cluster::Usage& usage) {
  std::vector<double> nodes(usage.class_count(), 0);
  for (NodeIndex i = 0; i < cluster.nodes.size(); ++i) nodes[usage.class_of(i)] += 1;
  std::vector<WeightedDemand> out;
  for (std::uint32_t c = 0; c < usage.class_count(); ++c) imagine(usage.example(c), nodes[c], out);
  double sum = 0;
  for (const WeightedDemand& one : out) sum += one.weight;
  for (WeightedDemand& one : out) one.weight *= kImaginedJobs / sum;
  for (const WeightedDemand& one : usage.typical().demands()) out.push_back(one);
  return out;
}

/// Thousandths of a GPU that are free for shares, or for a job that wants it whole.
std::uint16_t free_milli(const Node& node, const NodeUsage& usage, std::size_t gpu_gres,
                         std::size_t device) {
  if (!usage.blocked[gpu_gres].test(device)) return kWholeGpu;
  if (usage.gres[gpu_gres][device] > 0) return 0;
  if (node.gpus_out.contains(static_cast<std::uint32_t>(device))) return 0;
  for (std::size_t g = 0; g < node.gres.size(); ++g) {
    const Gres& gres = node.gres[g];
    if (!gres.shares_gpu || device >= gres.devices.size() || usage.gres[g][device] == 0) continue;
    const std::uint64_t all = gres.devices[device].units;
    const std::uint64_t left = all - std::min(all, usage.gres[g][device]);
    // A GPU that is shared is not whole again before it is free of all shares.
    return static_cast<std::uint16_t>(std::min<std::uint64_t>(left * kWholeGpu / all, 999));
  }
  return 0;
}

}  // namespace

Bin bin_of(const Node& node, const NodeUsage& usage) {
  Bin bin;
  const cluster::Room room = cluster::room_of(node, usage);
  bin.cpu_milli = std::uint64_t{room.cores} * node.threads_per_core * 1000;
  bin.memory_mb = room.memory_mb;
  for (std::size_t g = 0; g < node.gres.size(); ++g) {
    const Gres& gres = node.gres[g];
    if (gres.shares_gpu) bin.shares_gpus = true;
    if (gres.name != "gpu") continue;
    if (gres.counted) {
      bin.gpus.assign(gres.total());
      for (std::size_t i = 0; i < room.gpus; ++i) bin.gpus[i] = kWholeGpu;
    } else {
      bin.gpus.assign(gres.devices.size());
      for (std::size_t d = 0; d < gres.devices.size(); ++d) {
        bin.gpus[d] = usage.closed ? std::uint16_t{0} : free_milli(node, usage, g, d);
      }
    }
    std::sort(bin.gpus.begin(), bin.gpus.end());
  }
  return bin;
}

class Ranking::Memory : public cluster::PolicyMemory {
 public:
  /// `notes`: it is the only one that looks at this usage, and may write on its nodes.
  Memory(const cluster::Cluster& cluster, const cluster::Usage& usage, bool notes)
      : engine(typical_of(cluster, usage)), notes_(notes), learnt_at_(usage.typical().noted()) {}

  void follow(const cluster::Cluster& cluster, const cluster::Usage& usage) {
    const std::uint64_t noted = usage.typical().noted();
    // A copy of the usage may know fewer jobs than the one that was learnt from.
    const std::uint64_t apart = noted > learnt_at_ ? noted - learnt_at_ : learnt_at_ - noted;
    const bool lesson = apart >= std::clamp(learnt_at_, kFirstLesson, kMostBetweenLessons);
    const bool full = engine.bins() > kMostBins;
    if (!lesson && !full) return;
    learnt_at_ = noted;
    changes_.forget();  // the same bins are worth something else now
    if (full) {
      engine = KeepWhole(typical_of(cluster, usage));
      ++generation;
    } else {
      engine.learn(typical_of(cluster, usage));
    }
  }

  /// Kept from decision to decision: only nodes that have changed are looked at.
  const KeepWhole::Supply& supply(const cluster::Cluster& cluster, const cluster::Usage& usage) {
    if (const auto changed = changes_.read(usage.changes())) {
      for (const NodeIndex node : *changed) count(cluster, usage, node);
    } else {
      supply_ = {};
      counted_.assign(cluster.nodes.size(), kNotCounted);
      for (NodeIndex i = 0; i < cluster.nodes.size(); ++i) count(cluster, usage, i);
    }
    return supply_;
  }

  /// The bin of a node as it is.
  KeepWhole::BinId bin_at(const cluster::Cluster& cluster, const cluster::Usage& usage,
                          NodeIndex node) {
    const NodeUsage& here = usage.at(node);
    if (notes_ && here.policy_mark >> 32U == generation) {
      return static_cast<std::uint32_t>(here.policy_mark);
    }
    const KeepWhole::BinId id = engine.bin(bin_of(cluster.nodes[node], here));
    if (notes_) here.policy_mark = std::uint64_t{generation} << 32U | id;
    return id;
  }

  KeepWhole engine;
  std::uint32_t generation = 1;  // bins of another generation mean nothing

 private:
  static constexpr KeepWhole::BinId kNotCounted = ~KeepWhole::BinId{0};

  void count(const cluster::Cluster& cluster, const cluster::Usage& usage, NodeIndex node) {
    const KeepWhole::BinId is =
        cluster.nodes[node].usable ? bin_at(cluster, usage, node) : kNotCounted;
    KeepWhole::BinId& was = counted_[node];
    if (is == was) return;
    if (was != kNotCounted) engine.add(supply_, was, -1);
    if (is != kNotCounted) engine.add(supply_, is, 1);
    was = is;
  }

  bool notes_;
  std::uint64_t learnt_at_;
  KeepWhole::Supply supply_;
  std::vector<KeepWhole::BinId> counted_;  // by node, as it is in supply_
  cluster::ChangeReader changes_;          // those that were counted
};

Ranking::Ranking(const cluster::Cluster& cluster, const cluster::UsageView& usage, const Ask& ask)
    : cluster_(cluster), usage_(usage), ask_(ask) {}

Ranking::~Ranking() {
  if (shared_) usage_.usage().policy().busy.clear(std::memory_order_release);
}

void Ranking::find_memory() {
  const cluster::Usage& usage = usage_.usage();
  cluster::PolicySlot& slot = usage.policy();
  shared_ = !slot.busy.test_and_set(std::memory_order_acquire);
  if (!shared_) {
    own_ = std::make_unique<Memory>(cluster_, usage, false);
    memory_ = own_.get();
    return;
  }
  if (!slot.memory) slot.memory = std::make_unique<Memory>(cluster_, usage, true);
  memory_ = static_cast<Memory*>(slot.memory.get());
  memory_->follow(cluster_, usage);
}

KeepWhole::BinId Ranking::bin_at(NodeIndex node) {
  if (usage_.as_is(node)) return memory_->bin_at(cluster_, usage_.usage(), node);
  return memory_->engine.bin(bin_of(cluster_.nodes[node], usage_.at(node)));
}

/// What the whole cluster has left makes places scarce, so all usable nodes count, as they are at
/// present: what is planned on some of them makes no difference.
void Ranking::find_prices() {
  prices_known_ = true;
  prices_ = memory_->engine.prices(memory_->supply(cluster_, usage_.usage()));
}

Demand Ranking::demand_of(const Taken& taken) const {
  const Node& node = cluster_.nodes[taken.node];
  Demand out;
  std::uint64_t share = 0;
  for (std::size_t i = 0; i < ask_.devices.size(); ++i) {
    const DeviceAsk& want = ask_.devices[i];
    if (want.is_gpu()) out.gpus += static_cast<std::uint32_t>(taken.devices[i]);
    if (!want.shares_gpu()) continue;
    const Gres* gres = node.find_gres(want.name);
    if (gres == nullptr || gres->devices.empty()) continue;
    const std::uint64_t all = std::max<std::uint64_t>(gres->devices.front().units, 1);
    share = std::max(share, (taken.devices[i] * kWholeGpu + all - 1) / all);
  }
  if (out.gpus == 0)
    out.share_milli = static_cast<std::uint32_t>(std::min<std::uint64_t>(share, kWholeGpu));
  const std::uint64_t threads = std::max(ask_.usable_threads(node), 1U);
  const std::uint64_t cores = (taken.cpus + threads - 1) / threads;
  out.cpu_milli = cores * node.threads_per_core * 1000;
  if (ask_.memory_counts) {
    out.memory_mb = ask_.memory_on(ask_.memory_limit(node), taken.cpus, out.gpus);
  }
  return out;
}

Ranking::Rank Ranking::of(const Taken& taken) {
  if (memory_ == nullptr) find_memory();
  if (!prices_known_) find_prices();
  KeepWhole& engine = memory_->engine;
  const KeepWhole::BinId id = bin_at(taken.node);
  const Bin& bin = engine.at(id);
  // The node was found to hold the job; where the amounts say otherwise (shares of several GPUs,
  // rounding), what is there counts.
  Demand demand = demand_of(taken);
  demand.cpu_milli = ask_.exclusive ? bin.cpu_milli : std::min(demand.cpu_milli, bin.cpu_milli);
  demand.memory_mb = std::min(demand.memory_mb, bin.memory_mb);
  demand.gpus = std::min(demand.gpus, bin.whole_gpus());
  if (!fits(bin, demand)) demand.share_milli = 0;
  return *engine.rank(id, engine.demand(demand), prices_);
}

}  // namespace berth::place
