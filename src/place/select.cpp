#include "place/select.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <span>

#include "place/network.h"
#include "place/runs.h"
#include "place/sets.h"
#include "place/state_slots.h"

namespace berth::place {
namespace {

using cluster::NodeIndex;

/// Offers by node state: nodes in the same state get the same answer, computed once.
class OfferBook {
 public:
  OfferBook(const SelectInput& in, Pass pass)
      : in_(in),
        pass_(pass),
        exam_(in.ask, in.pool_shares),
        slots_(in.usage.state_count(), in.candidates.size()) {}

  /// The offer of a node for the present gathering; valid until start() is called again.
  const Offer& of(NodeIndex node) {
    std::int32_t& slot = slots_.of(in_.usage.state_of(node));
    if (slot == StateSlots::kUnseen) {
      const std::uint32_t hardware = in_.usage.class_of(node);
      const cluster::Node& example = in_.usage.example(hardware);
      const cluster::NodeUsage& usage = in_.usage.at(node);
      if (exam_.hopeless(example, hardware, usage)) {
        slot = kHopeless;
      } else {
        slot = static_cast<std::int32_t>(offers_.size());
        offers_.push_back(exam_.examine(example, hardware, usage, gathered_, pass_));
        if (!offers_.back().usable()) {
          offers_.pop_back();
          slot = kHopeless;
        }
      }
    }
    return slot == kHopeless ? none_ : offers_[static_cast<std::size_t>(slot)];
  }

  void start(Gathered gathered) {
    gathered_ = std::move(gathered);
    offers_.clear();
    slots_.clear();
    none_.cause = Cause::cpus;
    none_.devices.assign(in_.ask.devices.size());
  }

 private:
  static constexpr std::int32_t kHopeless = -2;

  const SelectInput& in_;
  Pass pass_;
  Examination exam_;
  Gathered gathered_;
  StateSlots slots_;  // position in offers_, or kHopeless
  std::deque<Offer> offers_;
  Offer none_;  // stands for every node that cannot be used
};

/// Ranks by node state, as OfferBook has offers.
class RankBook {
 public:
  explicit RankBook(const SelectInput& in)
      : usage_(in.usage), slots_(in.usage.state_count(), in.candidates.size()) {}

  template <class Find>
  Ranking::Rank of(NodeIndex node, Find find) {
    std::int32_t& slot = slots_.of(usage_.state_of(node));
    if (slot == StateSlots::kUnseen) {
      slot = static_cast<std::int32_t>(ranks_.size());
      ranks_.push_back(find());
    }
    return ranks_[static_cast<std::size_t>(slot)];
  }

 private:
  const cluster::UsageView& usage_;
  StateSlots slots_;
  std::vector<Ranking::Rank> ranks_;
};

/// By weight; then, where a partition wants it, by the free share of the cores.
std::vector<NodeIndex> emptiest_first(const SelectInput& in, std::vector<NodeIndex> nodes) {
  const auto key = [&](NodeIndex n) {
    const cluster::Node& node = in.cluster.nodes[n];
    const std::uint64_t used = in.ask.least_loaded ? in.usage.at(n).cores.count() : 0;
    return std::pair(node.order(), used * 1000000 / node.cores());
  };
  // Equal ones stay as they are: in the order they are to be looked at.
  if (!std::ranges::is_sorted(nodes, {}, key)) std::ranges::stable_sort(nodes, {}, key);
  return nodes;
}

/// One attempt to gather nodes with a fixed set of candidates and one pass.
class Gathering {
 public:
  Gathering(const SelectInput& in, const std::vector<NodeIndex>& candidates, Pass pass,
            Ranking* ranking = nullptr)
      : in_(in), ask_(in.ask), candidates_(candidates), ranking_(ranking), book_(in, pass) {
    wanted_cpus_ = ceiling_ = static_cast<std::int64_t>(ask_.total_cpus);
    wanted_nodes_ = ask_.desired_nodes;
    min_missing_ = ask_.min_nodes;
    if (ask_.tasks && ask_.per_node_tasks && *ask_.per_node_tasks > 0) {
      const std::uint32_t least = (*ask_.tasks + *ask_.per_node_tasks - 1) / *ask_.per_node_tasks;
      min_missing_ = std::max<std::int64_t>(min_missing_, least);
    }
    nodes_left_ = ask_.max_nodes ? std::int64_t{*ask_.max_nodes} : std::int64_t{1} << 40;
    if (ask_.tasks && !ask_.per_node_tasks) {
      nodes_left_ =
          std::min<std::int64_t>(nodes_left_, std::max<std::int64_t>(*ask_.tasks, min_missing_));
    }
    // Every node gets a device of each job total, so there cannot be more nodes than devices.
    for (const DeviceAsk& want : ask_.devices) {
      if (want.per_job > 0 && want.per_job < static_cast<std::uint64_t>(nodes_left_)) {
        nodes_left_ = static_cast<std::int64_t>(want.per_job);
      }
    }
    tasks_left_ = ask_.tasks.value_or(0);
    gathered_.assign(ask_.devices.size(), 0);
  }

  std::optional<std::vector<Taken>> run() {
    if (!take_required()) return std::nullopt;
    if (!satisfied()) {
      restart_book();
      if (ask_.spread) {
        take_spread();
      } else if (ask_.least_loaded) {
        take_least_loaded();
      } else if (ranking_ != nullptr) {
        take_ranked();
      } else {
        take_runs();
      }
    }
    if (!enough()) return std::nullopt;
    std::ranges::sort(taken_, {}, &Taken::node);
    return std::move(taken_);
  }

  /// How good the node is for what would be taken of it now.
  [[nodiscard]] Ranking::Rank rank(NodeIndex node, const Offer& offer) const {
    std::int64_t tasks_here = 0;
    return ranking_->of(part_of(node, offer, tasks_here));
  }

 private:
  [[nodiscard]] bool devices_gathered() const {
    for (std::size_t i = 0; i < gathered_.size(); ++i) {
      if (gathered_[i] < ask_.devices[i].per_job) return false;
    }
    return true;
  }
  [[nodiscard]] bool satisfied() const {
    return wanted_nodes_ <= 0 && wanted_cpus_ <= 0 && devices_gathered();
  }
  [[nodiscard]] bool enough() const {
    return wanted_cpus_ <= 0 && min_missing_ <= 0 && devices_gathered() && !taken_.empty();
  }

  void restart_book() {
    book_.start({gathered_, static_cast<std::uint32_t>(std::max<std::int64_t>(min_missing_, 1))});
  }

  bool take_required() {
    for (NodeIndex node : in_.required) {
      restart_book();
      const Offer offer = book_.of(node);
      if (!offer.usable() || nodes_left_ <= 0) return false;
      take(node, offer);
    }
    return true;
  }

  /// CPUs taken here: what is left of the ceiling less one core for each node that must still come.
  [[nodiscard]] std::uint32_t share_of(NodeIndex node, const Offer& offer) const {
    if (ask_.exclusive) return offer.cpus;
    const cluster::Node& n = in_.cluster.nodes[node];
    const std::int64_t threads = ask_.usable_threads(n);
    std::int64_t share = ceiling_ - threads * std::max<std::int64_t>(min_missing_ - 1, 0);
    share = std::max<std::int64_t>(share, ask_.min_cpus_per_node);
    if (!ask_.arbitrary.empty()) {
      const auto at = ask_.arbitrary.find(n.name);
      const std::int64_t listed = at == ask_.arbitrary.end() ? 1 : at->second;
      share = std::max<std::int64_t>(listed * ask_.cpus_per_task, ask_.min_cpus_per_node);
    }
    if (ask_.cpus_per_gpu) share = std::max(share, gpu_cpu_minimum(offer));
    return static_cast<std::uint32_t>(std::min<std::int64_t>(share, offer.cpus));
  }

  [[nodiscard]] std::int64_t gpu_cpu_minimum(const Offer& offer) const {
    std::uint64_t gpus = 0;
    for (std::size_t i = 0; i < ask_.devices.size(); ++i) {
      const DeviceAsk& want = ask_.devices[i];
      if (!want.is_gpu()) continue;
      gpus += want.per_node > 0
                  ? want.per_node
                  : std::min(offer.devices[i], want.per_job - std::min(want.per_job, gathered_[i]));
    }
    return static_cast<std::int64_t>(gpus * *ask_.cpus_per_gpu);
  }

  /// What would be taken of a node now, and the tasks that come with it.
  [[nodiscard]] Taken part_of(NodeIndex node, const Offer& offer, std::int64_t& tasks_here) const {
    Taken taken{node, share_of(node, offer), {}, offer};
    tasks_here = 0;
    if (ask_.tasks) {
      const std::int64_t spare = tasks_left_ - std::max<std::int64_t>(min_missing_ - 1, 0);
      const std::int64_t fit = ask_.overcommit ? spare : taken.cpus / ask_.cpus_per_task;
      tasks_here = std::clamp<std::int64_t>(spare, 1, std::max<std::int64_t>(fit, 1));
      if (ask_.per_node_tasks)
        tasks_here = std::min<std::int64_t>(tasks_here, *ask_.per_node_tasks);
    }
    for (std::size_t i = 0; i < ask_.devices.size(); ++i) {
      if (ask_.devices[i].per_task == 0 || !ask_.tasks) continue;
      const auto fit = static_cast<std::int64_t>(offer.devices[i] / ask_.devices[i].per_task);
      tasks_here = std::min(tasks_here, std::max<std::int64_t>(fit, 1));
    }
    taken.devices.resize(ask_.devices.size());
    for (std::size_t i = 0; i < ask_.devices.size(); ++i) {
      const DeviceAsk& want = ask_.devices[i];
      std::uint64_t units = offer.devices[i];
      if (want.per_task > 0 && ask_.tasks) {
        units = std::min(units, static_cast<std::uint64_t>(tasks_here) * want.per_task);
      } else if (want.per_job > 0) {
        const std::uint64_t rest = want.per_job - std::min(want.per_job, gathered_[i]);
        units = std::min(units, std::max(rest, std::max<std::uint64_t>(want.per_node, 1)));
      }
      if (want.per_node > 0) units = want.per_node;
      taken.devices[i] = units;
    }
    return taken;
  }

  void take(NodeIndex node, const Offer& offer) {
    std::int64_t tasks_here = 0;
    Taken taken = part_of(node, offer, tasks_here);
    for (std::size_t i = 0; i < taken.devices.size(); ++i) gathered_[i] += taken.devices[i];
    wanted_cpus_ -= taken.cpus;
    ceiling_ -= taken.cpus;
    tasks_left_ -= tasks_here;
    --wanted_nodes_;
    --min_missing_;
    --nodes_left_;
    taken_.push_back(std::move(taken));
  }

  [[nodiscard]] bool has_enough_devices(const Offer& offer) const {
    for (std::size_t i = 0; i < gathered_.size(); ++i) {
      const std::uint64_t want = ask_.devices[i].per_job;
      if (want > gathered_[i] && offer.devices[i] < want - gathered_[i]) return false;
    }
    return true;
  }

  void take_runs() {
    RunTable table = find_runs(in_.cluster, candidates_, in_.required, ask_.contiguous,
                               [&](NodeIndex n) -> const Offer& { return book_.of(n); });
    if (ask_.contiguous) {
      take_window(table);
      return;
    }
    while (!table.runs.empty() && !satisfied() && nodes_left_ > 0) {
      const std::size_t best = best_run(table.runs, current_need());
      const Run run = table.runs[best];
      table.runs.erase(table.runs.begin() + static_cast<std::ptrdiff_t>(best));
      take_from(run, table.nodes_of(run));
    }
  }

  /// --contiguous: the first neighbours, in the best run that has them, that hold the whole job.
  void take_window(RunTable& table) {
    while (!table.runs.empty()) {
      const std::size_t best = best_run(table.runs, current_need());
      const Run run = table.runs[best];
      table.runs.erase(table.runs.begin() + static_cast<std::ptrdiff_t>(best));
      const std::span<const NodeIndex> nodes = table.nodes_of(run);
      for (std::int64_t wanted :
           {std::max<std::int64_t>(wanted_nodes_, 1), std::max<std::int64_t>(min_missing_, 1)}) {
        for (std::size_t first = 0; first < nodes.size(); ++first) {
          const std::size_t count = window_from(nodes.subspan(first), wanted);
          if (count == 0 || !touches_required(nodes.subspan(first, count))) continue;
          for (NodeIndex node : nodes.subspan(first, count)) take(node, book_.of(node));
          return;
        }
      }
    }
  }

  /// How many nodes from the first on hold what is missing; 0 when they do not.
  std::size_t window_from(std::span<const NodeIndex> nodes, std::int64_t wanted) {
    const Need need = current_need();
    std::int64_t cpus = 0;
    SmallVector<std::uint64_t, 2> devices(need.devices.size());
    for (std::size_t n = 0; n < nodes.size() && static_cast<std::int64_t>(n) < nodes_left_; ++n) {
      const Offer& offer = book_.of(nodes[n]);
      cpus += offer.cpus;
      bool enough = cpus >= need.cpus && static_cast<std::int64_t>(n) + 1 >= wanted;
      for (std::size_t d = 0; d < devices.size(); ++d) {
        devices[d] += offer.devices[d];
        enough = enough && devices[d] >= need.devices[d];
      }
      if (enough) return n + 1;
    }
    return 0;
  }

  /// Whether the window and the required nodes lie side by side.
  [[nodiscard]] bool touches_required(std::span<const NodeIndex> window) const {
    std::vector<NodeIndex> all(window.begin(), window.end());
    all.insert(all.end(), in_.required.begin(), in_.required.end());
    std::ranges::sort(all);
    return all.back() - all.front() + 1 == all.size();
  }

  [[nodiscard]] Need current_need() const {
    Need need;
    need.cpus = wanted_cpus_;
    need.nodes = ask_.nodes_range ? std::max<std::int64_t>(min_missing_, 0) : wanted_nodes_;
    need.devices.assign(gathered_.size());
    for (std::size_t i = 0; i < gathered_.size(); ++i) {
      need.devices[i] = ask_.devices[i].per_job - std::min(ask_.devices[i].per_job, gathered_[i]);
    }
    return need;
  }

  void take_from(const Run& run, std::span<const NodeIndex> nodes) {
    if (run.first_required) {
      take_around(*run.first_required, nodes);
      return;
    }
    if (wanted_nodes_ <= 1 && min_missing_ <= 1 && take_best_single(nodes)) return;
    for (NodeIndex node : nodes) {
      if (satisfied() || nodes_left_ <= 0) return;
      const Offer& offer = book_.of(node);
      if (nodes_left_ == 1 && offer.cpus < wanted_cpus_) continue;
      take(node, offer);
    }
  }

  /// Upwards from the first required node, then downwards from it.
  void take_around(NodeIndex required, std::span<const NodeIndex> nodes) {
    const auto middle = std::ranges::lower_bound(nodes, required);
    for (auto at = middle; at != nodes.end(); ++at) {
      if (satisfied() || nodes_left_ <= 0) return;
      take(*at, book_.of(*at));
    }
    for (auto at = middle; at != nodes.begin();) {
      --at;
      if (satisfied() || nodes_left_ <= 0) return;
      take(*at, book_.of(*at));
    }
  }

  /// Berth's own order: by weight, then the best ranked; one node that holds all first.
  void take_ranked() {
    struct Entry {
      std::uint64_t order;
      Ranking::Rank rank;
      NodeIndex node;
    };
    std::vector<Entry> order;
    RankBook ranks(in_);
    for (NodeIndex node : candidates_) {
      if (std::ranges::binary_search(in_.required, node)) continue;
      const Offer& offer = book_.of(node);
      if (!offer.usable()) continue;
      order.push_back({in_.cluster.nodes[node].order(),
                       ranks.of(node, [&] { return rank(node, offer); }), node});
    }
    std::sort(order.begin(), order.end(), [](const Entry& a, const Entry& b) {
      if (a.order != b.order) return a.order < b.order;
      return a.rank != b.rank ? a.rank < b.rank : a.node < b.node;
    });
    if (wanted_nodes_ <= 1 && min_missing_ <= 1 && nodes_left_ > 0) {
      for (const Entry& entry : order) {
        const Offer& offer = book_.of(entry.node);
        if (offer.cpus < wanted_cpus_ || !has_enough_devices(offer)) continue;
        take(entry.node, offer);
        return;
      }
    }
    for (const Entry& entry : order) {
      if (satisfied() || nodes_left_ <= 0) return;
      const Offer& offer = book_.of(entry.node);
      if (nodes_left_ == 1 && offer.cpus < wanted_cpus_) continue;
      take(entry.node, offer);
    }
  }

  bool take_best_single(std::span<const NodeIndex> nodes) {
    std::optional<NodeIndex> best;
    for (NodeIndex node : nodes) {
      const Offer& offer = book_.of(node);
      if (offer.cpus < wanted_cpus_ || !has_enough_devices(offer)) continue;
      if (!best || offer.cpus < book_.of(*best).cpus) best = node;
    }
    if (!best) return false;
    take(*best, book_.of(*best));
    return true;
  }

  /// LLN: by weight, then the nodes with the largest free share of their cores.
  void take_least_loaded() {
    for (NodeIndex node : emptiest_first(in_, candidates_)) {
      if (satisfied() || nodes_left_ <= 0) return;
      if (std::ranges::binary_search(in_.required, node)) continue;
      const Offer& offer = book_.of(node);
      if (!offer.usable() || (nodes_left_ == 1 && offer.cpus < wanted_cpus_)) continue;
      take(node, offer);
    }
  }

  /// --spread-job: as many nodes as wanted with one task's CPUs each, then further rounds.
  void take_spread() {
    std::vector<NodeIndex> order;
    for (NodeIndex node : candidates_) {
      if (std::ranges::binary_search(in_.required, node)) continue;
      if (book_.of(node).usable()) order.push_back(node);
    }
    std::ranges::stable_sort(order, {}, [&](NodeIndex n) { return in_.cluster.nodes[n].order(); });
    std::int64_t most = ask_.max_nodes ? nodes_left_ : std::int64_t{ask_.tasks.value_or(1)};
    most = std::min<std::int64_t>(most, nodes_left_);
    std::vector<NodeIndex> chosen;
    std::int64_t cpus = 0;
    for (NodeIndex node : order) {
      if (static_cast<std::int64_t>(chosen.size()) >= most && cpus >= wanted_cpus_) break;
      if (static_cast<std::int64_t>(chosen.size()) >= nodes_left_) break;
      chosen.push_back(node);
      cpus += book_.of(node).cpus;
    }
    std::ranges::sort(chosen);
    std::vector<std::int64_t> share(chosen.size(), 0);
    std::int64_t left =
        std::max<std::int64_t>(wanted_cpus_, static_cast<std::int64_t>(chosen.size()));
    for (bool gave = true; left > 0 && gave;) {
      gave = false;
      for (std::size_t i = 0; i < chosen.size() && left > 0; ++i) {
        if (share[i] + ask_.cpus_per_task > book_.of(chosen[i]).cpus) continue;
        share[i] += ask_.cpus_per_task;
        left -= ask_.cpus_per_task;
        gave = true;
      }
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      Offer offer = book_.of(chosen[i]);
      offer.cpus =
          static_cast<std::uint32_t>(std::max<std::int64_t>(share[i], ask_.min_cpus_per_node));
      take(chosen[i], offer);
    }
  }

  const SelectInput& in_;
  const Ask& ask_;
  const std::vector<NodeIndex>& candidates_;
  Ranking* ranking_;
  OfferBook book_;
  std::int64_t wanted_cpus_ = 0;   // W
  std::int64_t ceiling_ = 0;       // C
  std::int64_t wanted_nodes_ = 0;  // D
  std::int64_t min_missing_ = 0;   // M
  std::int64_t nodes_left_ = 0;    // X
  std::int64_t tasks_left_ = 0;
  std::vector<std::uint64_t> gathered_;
  std::vector<Taken> taken_;
};

/// At most one node: the first that offers everything, by weight, rank and index.
std::optional<std::vector<Taken>> select_single(const SelectInput& in, Pass pass, Ranking* ranking,
                                                const std::vector<NodeIndex>& candidates) {
  if (in.required.size() > 1) return std::nullopt;
  const std::vector<NodeIndex> order =
      emptiest_first(in, in.required.empty() ? candidates : in.required);
  OfferBook book(in, pass);
  book.start({std::vector<std::uint64_t>(in.ask.devices.size(), 0), 1});
  const Gathering nothing_yet(in, order, pass, ranking);
  std::optional<RankBook> ranks;
  if (ranking != nullptr) ranks.emplace(in);
  std::optional<NodeIndex> best;
  Ranking::Rank best_rank;
  for (NodeIndex node : order) {
    // The order is by weight: a heavier node is not looked at once a lighter one will do.
    if (best && in.cluster.nodes[*best].order() != in.cluster.nodes[node].order()) break;
    const Offer& offer = book.of(node);
    if (!offer.usable() || offer.cpus < in.ask.total_cpus) continue;
    bool fits = true;
    for (std::size_t i = 0; i < in.ask.devices.size(); ++i) {
      fits = fits && offer.devices[i] >= in.ask.devices[i].per_job;
    }
    if (!fits) continue;
    if (!ranks) {
      best = node;
      break;
    }
    const Ranking::Rank rank = ranks->of(node, [&] { return nothing_yet.rank(node, offer); });
    if (best && rank >= best_rank) continue;
    best = node;
    best_rank = rank;
  }
  if (!best) return std::nullopt;
  const std::vector<NodeIndex> only{*best};
  SelectInput one{in.cluster, in.usage, in.ask, only, only, in.pool_shares};
  return Gathering(one, only, pass).run();
}

/// The usable candidates with what each could give if it came first.
std::vector<Taken> offers_of(const SelectInput& in, const std::vector<NodeIndex>& candidates) {
  OfferBook book(in, Pass::any);
  book.start({std::vector<std::uint64_t>(in.ask.devices.size(), 0), 1});
  std::vector<Taken> out;
  for (NodeIndex node : candidates) {
    const Offer& offer = book.of(node);
    if (!offer.usable()) continue;
    out.push_back({node, offer.cpus, {offer.devices.begin(), offer.devices.end()}, offer});
  }
  return out;
}

/// The candidates that may be dropped, weakest first: fewest CPUs (times GPUs for GPU jobs), then
/// lowest index.
std::vector<NodeIndex> weakest_first(const SelectInput& in, const std::vector<Taken>& offers) {
  std::map<NodeIndex, std::uint64_t> worth;
  for (const Taken& node : offers) {
    std::uint64_t gpus = 0;
    for (std::size_t i = 0; i < node.devices.size(); ++i) {
      if (in.ask.devices[i].is_gpu()) gpus += node.devices[i];
    }
    worth[node.node] = node.cpus * (in.ask.wants_gpu() ? gpus : 1);
  }
  std::vector<NodeIndex> out;
  for (NodeIndex node : in.candidates) {
    if (!std::ranges::binary_search(in.required, node)) out.push_back(node);
  }
  std::sort(out.begin(), out.end(), [&](NodeIndex a, NodeIndex b) {
    return worth[a] != worth[b] ? worth[a] < worth[b] : a < b;
  });
  return out;
}

std::optional<std::vector<Taken>> gather(const SelectInput& in,
                                         const std::vector<NodeIndex>& candidates,
                                         Ranking* ranking = nullptr) {
  for (Pass pass : {Pass::near, Pass::any}) {
    if (pass == Pass::any && in.ask.devices.empty()) continue;  // the same as the first pass
    if (ranking != nullptr) {
      if (auto taken = Gathering(in, candidates, pass, ranking).run()) return taken;
    }
    if (auto taken = Gathering(in, candidates, pass).run()) return taken;
  }
  return std::nullopt;
}

}  // namespace

/// Berth's own order is for real choices among free nodes: not for "could it ever run", not where
/// the job or its partition say which nodes come first.
bool uses_ranking(const SelectInput& in) {
  return in.cluster.settings.placement == cluster::Placement::keep_whole && !in.pool_shares &&
         !in.ask.contiguous && !in.ask.spread && !in.ask.least_loaded && in.ask.arbitrary.empty();
}

void each_offer(const SelectInput& in,
                const std::function<void(cluster::NodeIndex, const Offer&)>& take) {
  OfferBook book(in, Pass::any);
  book.start({std::vector<std::uint64_t>(in.ask.devices.size(), 0), 1});
  for (NodeIndex node : in.candidates) {
    const Offer& offer = book.of(node);
    if (offer.usable()) take(node, offer);
  }
}

std::optional<std::vector<Taken>> select_anywhere(const SelectInput& in,
                                                  const std::vector<NodeIndex>* first) {
  std::optional<Ranking> ranking;
  if (in.ranking == nullptr && uses_ranking(in)) ranking.emplace(in.cluster, in.usage, in.ask);
  Ranking* const preference = ranking ? &*ranking : in.ranking;
  if (in.ask.max_nodes == 1U) {
    const std::vector<NodeIndex>& order = first != nullptr ? *first : in.candidates;
    if (auto taken = select_single(in, Pass::near, preference, order)) return taken;
    return in.near_only ? std::nullopt : select_single(in, Pass::any, preference, order);
  }
  if (auto taken = gather(in, in.candidates, preference)) return taken;
  const std::vector<Taken> offers = offers_of(in, in.candidates);
  if (!could_hold(in.ask, offers)) return std::nullopt;
  // Without the weakest nodes the gathering may come out better. On large clusters several go at
  // once, so that the number of attempts stays small.
  std::vector<NodeIndex> candidates = in.candidates;
  const std::vector<NodeIndex> order = weakest_first(in, offers);
  const std::size_t at_once = std::max<std::size_t>(candidates.size() / 256, 1);
  for (std::size_t at = 0; at < order.size() && in.ask.max_nodes; at += at_once) {
    if (*in.ask.max_nodes >= candidates.size()) break;
    for (std::size_t i = at; i < std::min(at + at_once, order.size()); ++i) {
      std::erase(candidates, order[i]);
    }
    if (candidates.size() < in.ask.min_nodes) break;
    if (auto taken = gather(in, candidates)) return taken;
  }
  return find_set(in.ask, offers, in.required);
}

std::optional<std::vector<Taken>> select_nodes(const SelectInput& in) {
  if (in.candidates.empty()) return std::nullopt;
  const bool near = network_counts(in.cluster, in.ask);
  if (in.ask.sizes.empty()) return near ? select_near(in) : select_anywhere(in);
  // A list of sizes: the largest first, each as a fixed count.
  for (auto size = in.ask.sizes.rbegin(); size != in.ask.sizes.rend(); ++size) {
    if (*size > in.candidates.size() || *size < in.ask.min_nodes) continue;
    if (in.ask.max_nodes && *size > *in.ask.max_nodes) continue;
    Ask fixed = in.ask;
    fixed.sizes.clear();
    fixed.min_nodes = *size;
    fixed.max_nodes = *size;
    fixed.desired_nodes = *size;
    fixed.nodes_range = false;
    if (!fixed.tasks)
      fixed.total_cpus =
          std::max<std::uint64_t>(fixed.total_cpus, std::uint64_t{*size} * fixed.cpus_per_task);
    SelectInput one{in.cluster, in.usage, fixed, in.candidates, in.required, in.pool_shares};
    one.max_leaves = in.max_leaves;
    if (auto taken = near ? select_near(one) : select_anywhere(one)) return taken;
  }
  return std::nullopt;
}

}  // namespace berth::place
