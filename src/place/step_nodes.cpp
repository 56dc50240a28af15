#include "place/step_nodes.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace berth::place {
namespace {

using request::GresAsk;

/// CPUs of a node that nobody else in the job reduces: what the rule for equal nodes compares.
std::uint32_t job_cpus_on(const StepRoom& room) {
  return room.job->usable_cpus;
}

class NodeChooser {
 public:
  NodeChooser(const StepAsk& ask, std::span<const StepRoom> rooms, std::size_t rotation,
              std::uint32_t count)
      : ask_(ask), rooms_(rooms), rotation_(rotation), allowed_(rooms.size(), true), count_(count) {
    for (std::size_t i = 0; i < rooms.size(); ++i) allowed_[i] = rooms[i].candidate();
    for (const std::size_t p : ask.barred) allowed_[p] = false;
  }

  Result<NodeChoice> choose() {
    if (auto ok = settle_count(); !ok) return pass(ok.error());
    if (auto ok = check_devices(); !ok) return pass(ok.error());
    if (auto ok = take_listed(); !ok) return pass(ok.error());
    if (ask_.relative) {
      std::fill_n(allowed_.begin(), std::min(*ask_.relative, allowed_.size()), false);
      rotation_ = 0;
    }
    if (auto ok = reduce_to_gpu_nodes(); !ok) return pass(ok.error());
    if (picked_.size() < count_) {
      // Idle nodes first; busy ones only when the idle ones do not do.
      if (!fill(true) && !fill(false)) return fail(shortage(), {});
    }
    std::ranges::sort(picked_);
    std::uint64_t cpus = 0;
    for (const std::size_t p : picked_) cpus += rooms_[p].usable;
    if (cpus < wanted()) return fail(Code::too_many_cpus, {});
    return NodeChoice{picked_, rotation_};
  }

 private:
  [[nodiscard]] std::uint64_t wanted() const { return ask_.cpus.value_or(1); }

  /// Equal nodes: enough of them for the CPUs; pack wants no more than that.
  Result<void> settle_count() {
    if (rooms_.empty()) return fail(Code::node_config_unavailable, {});
    const std::uint32_t cpus = job_cpus_on(rooms_.front());
    const bool equal = std::ranges::all_of(
        rooms_, [&](const StepRoom& room) { return job_cpus_on(room) == cpus; });
    if (!equal || cpus == 0) return {};
    const std::uint64_t least = std::max<std::uint64_t>(ceil_div(wanted(), cpus), 1);
    const std::uint64_t most = ask_.fewest_nodes ? rooms_.size() : count_;
    if (least > most) return fail(Code::too_many_cpus, {});
    if (ask_.fewest_nodes) count_ = static_cast<std::uint32_t>(least);
    return {};
  }

  Result<void> check_devices() const {
    const auto without = std::ranges::count_if(
        rooms_, [](const StepRoom& room) { return room.obstacle == StepObstacle::gres; });
    if (static_cast<std::size_t>(without) + count_ > rooms_.size()) {
      return fail(Code::invalid_gres, {});
    }
    return {};
  }

  Result<void> take_listed() {
    if (ask_.listed.empty()) return {};
    for (const std::size_t p : ask_.listed) {
      if (!allowed_[p]) return fail(shortage_of(rooms_[p]), {});
    }
    if (ask_.listed.size() <= count_) {
      picked_ = ask_.listed;
      return {};
    }
    std::vector<char> only(rooms_.size(), false);
    for (const std::size_t p : ask_.listed) only[p] = true;
    allowed_ = only;
    return {};
  }

  /// --gpus: only nodes stay that together have them, those with an even share first.
  Result<void> reduce_to_gpu_nodes() {
    for (const GresAsk& ask : ask_.step_gpus) {
      std::uint64_t bar = 0;
      for (const StepRoom& room : rooms_) bar = std::max(bar, room.free_of(ask.name, ask.type));
      bar = std::min(bar, ceil_div(ask.count, count_));
      std::vector<std::size_t> kept = nodes_with(ask, bar);
      while (kept.empty() && bar > 0) kept = nodes_with(ask, --bar);
      if (kept.empty()) return fail(Code::invalid_gres, {});
      std::vector<char> only(rooms_.size(), false);
      for (const std::size_t p : kept) only[p] = allowed_[p];
      for (const std::size_t p : picked_) only[p] = true;
      allowed_ = only;
    }
    return {};
  }

  /// The first nodes with at least `bar` GPUs each, until there are enough of both; else none.
  [[nodiscard]] std::vector<std::size_t> nodes_with(const GresAsk& ask, std::uint64_t bar) const {
    std::vector<std::size_t> kept = picked_;
    std::uint64_t gpus = 0;
    for (const std::size_t p : kept) gpus += rooms_[p].free_of(ask.name, ask.type);
    for (std::size_t p = 0; p < rooms_.size(); ++p) {
      if (kept.size() >= count_ && gpus >= ask.count) break;
      if (!allowed_[p] || std::ranges::find(picked_, p) != picked_.end()) continue;
      const std::uint64_t free = rooms_[p].free_of(ask.name, ask.type);
      if (free < bar) continue;
      kept.push_back(p);
      gpus += free;
    }
    if (kept.size() != count_ || gpus < ask.count) kept.clear();
    return kept;
  }

  /// Completes `picked_` from idle candidates, or from all; false leaves everything as it was.
  bool fill(bool idle_only) {
    const auto suits = [&](std::size_t p) {
      return allowed_[p] && (!idle_only || rooms_[p].idle) &&
             std::ranges::find(picked_, p) == picked_.end();
    };
    const std::size_t missing = count_ - picked_.size();
    std::uint64_t have = 0;
    for (const std::size_t p : picked_) have += rooms_[p].usable;
    const std::uint64_t cpus = wanted() - std::min(wanted(), have);
    const std::uint64_t target = cpus <= missing ? 1 : ceil_div(cpus, missing);

    std::vector<std::size_t> found;
    std::vector<std::size_t> smaller;
    std::uint64_t found_cpus = 0;
    std::size_t looked = 0;
    for (; looked < rooms_.size(); ++looked) {
      if (found.size() == missing && found_cpus >= cpus) break;
      const std::size_t p = (rotation_ + looked) % rooms_.size();
      if (!suits(p)) continue;
      if (rooms_[p].usable < target) {
        smaller.push_back(p);
      } else if (found.size() < missing) {
        found.push_back(p);
        found_cpus += rooms_[p].usable;
      }
    }
    // Larger ones first; of equal ones those that the walk met first.
    const auto met = [&](std::size_t p) { return (p + rooms_.size() - rotation_) % rooms_.size(); };
    std::ranges::sort(smaller, [&](std::size_t a, std::size_t b) {
      return std::pair(rooms_[b].usable, met(a)) < std::pair(rooms_[a].usable, met(b));
    });
    for (const std::size_t p : smaller) {
      if (found.size() == missing) break;
      found.push_back(p);
      found_cpus += rooms_[p].usable;
    }
    if (found.size() < missing || found_cpus < cpus) return false;
    picked_.insert(picked_.end(), found.begin(), found.end());
    rotation_ = (rotation_ + looked) % rooms_.size();
    return true;
  }

  static Code shortage_of(const StepRoom& room) {
    switch (room.obstacle) {
      case StepObstacle::memory:
        return Code::memory_unavailable;
      case StepObstacle::gres:
        return Code::invalid_gres;
      case StepObstacle::node_down:
        return Code::node_config_unavailable;
      default:
        return Code::too_many_cpus;
    }
  }

  /// Memory is named when without it there would have been nodes enough.
  [[nodiscard]] Code shortage() const {
    const auto memory = std::ranges::count(rooms_, StepObstacle::memory, &StepRoom::obstacle);
    return static_cast<std::size_t>(memory) + count_ > rooms_.size() ? Code::memory_unavailable
                                                                     : Code::too_many_cpus;
  }

  const StepAsk& ask_;
  std::span<const StepRoom> rooms_;
  std::size_t rotation_;
  std::vector<char> allowed_;
  std::vector<std::size_t> picked_;
  std::uint32_t count_;
};

}  // namespace

Result<NodeChoice> choose_nodes(const StepAsk& ask, std::span<const StepRoom> rooms,
                                std::size_t rotation) {
  const std::size_t start = rooms.empty() ? 0 : rotation % rooms.size();
  Result<NodeChoice> choice = NodeChooser(ask, rooms, start, ask.max_nodes).choose();
  if (ask.fewest_nodes) return choice;
  // A range (-N2-4) is met with as many nodes as can be had.
  for (std::uint32_t count = ask.max_nodes; !choice && count > std::max(ask.min_nodes, 1U);) {
    choice = NodeChooser(ask, rooms, start, --count).choose();
  }
  return choice;
}

std::uint32_t tasks_that_fit(const StepAsk& ask, std::span<const StepRoom> rooms) {
  std::vector<std::uint32_t> cpus;
  for (const StepRoom& room : rooms) {
    if (room.candidate() && room.idle) cpus.push_back(room.usable);
  }
  std::ranges::sort(cpus, std::greater<>());
  if (cpus.size() > ask.max_nodes) cpus.resize(ask.max_nodes);
  std::uint64_t tasks = 0;
  for (const std::uint32_t count : cpus) tasks += count / ask.task_cpus();
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(tasks, UINT32_MAX));
}

}  // namespace berth::place
