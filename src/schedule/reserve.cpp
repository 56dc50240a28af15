#include "schedule/reserve.h"

#include <fmt/format.h>

#include <algorithm>

#include "place/prepared.h"
#include "schedule/reserve_check.h"
#include "schedule/reserve_nodes.h"

namespace berth::schedule {
namespace {

using cluster::NodeShare;
using cluster::NodeUsage;
using reservation::Ask;
using reservation::Flag;
using reservation::Tres;
using reservation::Window;

class Chooser {
 public:
  Chooser(const job::State& state, Time now, Reservation& out)
      : state_(state), now_(now), out_(out), span_(out.window(now)) {}

  Result<void> run(const Ask& ask) {
    if (out_.flags.has(Flag::license_only) || out_.flags.has(Flag::any_nodes)) {
      if (!ask.resources()) return only_licenses();
    }
    Tres tres;
    for (const auto* text : {&ask.tres, &ask.tres_per_node}) {
      if (!*text) continue;
      auto read = reservation::read_tres(**text);
      if (!read) return pass(std::move(read.error()));
      tres.cpus += read->cpus;
      tres.nodes += read->nodes;
      tres.gres.insert(tres.gres.end(), read->gres.begin(), read->gres.end());
      for (const auto& [name, count] : read->licenses) out_.licenses[name] += count;
    }
    out_.tres = ask.tres.value_or("");
    out_.tres_per_node = ask.tres_per_node.value_or("");
    out_.node_count = ask.node_count.value_or(tres.nodes);
    out_.core_count = ask.core_count.value_or(0);
    auto candidates = candidate_nodes(state_, ask, out_);
    if (!candidates) return pass(std::move(candidates.error()));
    candidates_ = std::move(*candidates);
    const bool parts = out_.core_count > 0 || tres.cpus > 0 || !tres.gres.empty();
    if (!parts && out_.node_count == 0 && !ask.nodes) {
      if (!out_.licenses.empty()) return only_licenses();
      return fail(Code::invalid_node_count, std::string(slurm_text(Code::invalid_node_count)),
                  "say what to reserve: Nodes=, NodeCnt=, CoreCnt=, TRES= or Licenses=");
    }
    if (!tres.gres.empty()) return take_devices(tres, ask.tres_per_node.has_value());
    if (parts) return take_cores(tres);
    if (out_.node_count > 0) return take_count();
    return take_named();
  }

  /// Some of what it has is another's in its time.
  Result<void> check() const {
    for (const NodeShare& share : out_.allocation.nodes) {
      if (auto done = check_share(state_, now_, out_, share); !done) return done;
    }
    return {};
  }

  /// Whole nodes that it could have besides those it has.
  std::vector<NodeIndex> spare() {
    auto out = candidate_nodes(state_, {}, out_);
    if (!out) return {};
    std::erase_if(*out, [&](NodeIndex node) {
      return out_.share_of(node) != nullptr ||
             !check_share(state_, now_, out_, whole_node(state_.cluster(), node));
    });
    return std::move(*out);
  }

 private:
  Result<void> only_licenses() {
    if (out_.licenses.empty()) {
      return fail(Code::bad_value, "Invalid license specification",
                  "ANY_NODES and LICENSE_ONLY reserve licences: say Licenses=");
    }
    out_.flags.put(Flag::any_nodes);
    out_.allocation = {};
    return {};
  }

  /// Its partition, or one that has all of these nodes.
  [[nodiscard]] std::string partition_of_candidates() const {
    if (!out_.partition.empty()) return out_.partition;
    std::vector<NodeIndex> sorted = candidates_;
    std::ranges::sort(sorted);
    for (const cluster::Partition& partition : state_.cluster().partitions) {
      if (std::ranges::includes(partition.nodes, sorted)) return partition.name;
    }
    return {};
  }

  Result<void> take_named() {
    out_.allocation = {};
    out_.allocation.whole_nodes = true;
    std::ranges::sort(candidates_);
    for (const NodeIndex node : candidates_)
      out_.allocation.nodes.push_back(whole_node(state_.cluster(), node));
    return check();
  }

  Result<void> take_count() {
    out_.allocation = {};
    out_.allocation.whole_nodes = true;
    std::string why;
    std::vector<NodeShare> nodes;
    for (const NodeIndex node : candidates_) {
      if (nodes.size() == out_.node_count) break;
      NodeShare share = whole_node(state_.cluster(), node);
      if (auto free = check_share(state_, now_, out_, share)) {
        nodes.push_back(std::move(share));
      } else {
        why = free.error().hint;
      }
    }
    if (nodes.size() < out_.node_count) {
      if (candidates_.size() < out_.node_count) {
        return fail(Code::node_config_unavailable,
                    std::string(slurm_text(Code::node_config_unavailable)),
                    fmt::format("{} nodes of partition {} could do, {} are asked for",
                                candidates_.size(), out_.partition, out_.node_count));
      }
      return nodes_busy(
          fmt::format("{} of {} nodes are free then: {}", nodes.size(), out_.node_count, why));
    }
    std::ranges::sort(nodes, {}, &NodeShare::node);
    out_.allocation.nodes = std::move(nodes);
    if (!out_.flags.has(Flag::static_alloc) && !out_.flags.has(Flag::replace)) {
      out_.flags.put(Flag::replace_down);
    }
    return {};
  }

  /// What is taken of the node at any time that it wants it.
  NodeUsage usage(NodeIndex node) {
    if (out_.flags.has(Flag::ignore_jobs)) {
      return state_.usage().pristine(state_.usage().class_of(node));
    }
    if (!calendar_) {
      calendar_.emplace(state_);
      calendar_->begin(now_);
      if (const Reservation* known = state_.find_reservation(out_.name)) {
        own_ = *known;
        own_->flags.put(Flag::flex);  // what it has is not in its way, nor is it bound to that
      }
    }
    const Calendar::Inside look(*calendar_, own_ ? &*own_ : nullptr);
    return calendar_->usage_over(node, {span_.from, span_.until});
  }

  Result<void> take_cores(const Tres& tres) {
    out_.allocation = {};
    std::uint64_t missing = out_.core_count;
    for (const NodeIndex index : candidates_) {
      const cluster::Node& node = state_.cluster().nodes[index];
      if (missing == 0 && out_.core_count == 0 && tres.cpus > 0 && out_.allocation.nodes.empty()) {
        missing = (tres.cpus + node.threads_per_core - 1) / node.threads_per_core;
      }
      if (missing == 0) break;
      const NodeUsage used = usage(index);
      if (used.closed) continue;
      const Bits free = Bits::first_n(node.cores()) - node.reserved_cores - used.cores;
      NodeShare share;
      share.node = index;
      free.each([&](std::size_t core) {
        if (missing == 0) return;
        share.cores.set(core);
        --missing;
      });
      if (share.cores.empty()) continue;
      share.cpus = static_cast<std::uint32_t>(share.cores.count()) * node.threads_per_core;
      out_.allocation.nodes.push_back(std::move(share));
    }
    if (missing > 0)
      return nodes_busy(fmt::format("{} cores more are needed than are free then", missing));
    std::ranges::sort(out_.allocation.nodes, {}, &NodeShare::node);
    return {};
  }

  /// Devices come with the cores beside them: as large a part of the node's as of its devices.
  Result<void> take_devices(const Tres& tres, bool per_node) {
    const cluster::Cluster& cluster = state_.cluster();
    request::Request request;
    if (const std::string partition = partition_of_candidates(); !partition.empty()) {
      request.partitions = {partition};
    }
    if (out_.node_count > 0) {
      request.nodes = request::NodeCount{out_.node_count, out_.node_count, false, {}};
    } else if (per_node) {
      const auto count = static_cast<std::uint32_t>(std::max<std::size_t>(candidates_.size(), 1));
      request.nodes = request::NodeCount{count, count, false, {}};
    }
    std::uint32_t cpus_per_gpu = 0;
    for (const Tres::Gres& gres : tres.gres) {
      auto& list = per_node ? request.gres_per_node : request.gres_per_job;
      list.push_back({gres.name, gres.type, gres.count});
      for (const NodeIndex index : candidates_) {
        const cluster::Node& node = cluster.nodes[index];
        const cluster::Gres* here = node.find_gres("gpu");
        if (gres.name != "gpu" || here == nullptr || here->devices.empty()) continue;
        const auto cores = static_cast<std::uint32_t>(node.cores() - node.reserved_cores.count());
        const std::uint32_t part = cores / static_cast<std::uint32_t>(here->devices.size());
        const std::uint32_t cpus = std::max(part, 1U) * node.threads_per_core;
        cpus_per_gpu = cpus_per_gpu == 0 ? cpus : std::min(cpus_per_gpu, cpus);
      }
      if (gres.name == "gpu" && tres.cpus > 0 && !per_node) {
        cpus_per_gpu =
            static_cast<std::uint32_t>(std::max<std::uint64_t>(tres.cpus / gres.count, 1));
      }
    }
    if (cpus_per_gpu > 0) request.cpus_per_gpu = cpus_per_gpu;
    request.memory = request::Memory{request::MemoryPer::node, 1};
    const place::Prepared prepared(cluster, request);
    cluster::Overlay overlay(cluster.nodes.size());
    std::vector<NodeIndex> nodes = candidates_;
    std::ranges::sort(nodes);
    for (const NodeIndex node : nodes) overlay.put(node) = usage(node);
    auto plan = prepared.runnable() && !nodes.empty()
                    ? prepared.now(cluster::UsageView(state_.usage(), overlay), nodes)
                    : std::nullopt;
    if (!plan) {
      return nodes_busy("not so many devices are free then on nodes that could do");
    }
    out_.allocation = std::move(plan->allocation);
    out_.allocation.whole_nodes = false;
    for (NodeShare& share : out_.allocation.nodes) {
      share.memory_mb = 0;
      share.tasks = 0;
    }
    return {};
  }

  const job::State& state_;
  Time now_;
  Reservation& out_;
  Window span_;
  std::vector<NodeIndex> candidates_;
  std::optional<Calendar> calendar_;
  std::optional<Reservation> own_;
};

}  // namespace

Result<void> choose_resources(const job::State& state, const Ask& ask, Time now,
                              Reservation& reservation) {
  return Chooser(state, now, reservation).run(ask);
}

Result<void> check_resources(const job::State& state, Time now, const Reservation& reservation) {
  Reservation copy = reservation;
  return Chooser(state, now, copy).check();
}

bool replace_nodes(const job::State& state, Time now, Reservation& reservation) {
  const bool busy_ones = reservation.flags.has(Flag::replace);
  if (!busy_ones && !reservation.flags.has(Flag::replace_down)) return false;
  if (!reservation.allocation.whole_nodes || reservation.node_count == 0) return false;
  std::vector<NodeShare> kept;
  for (const NodeShare& share : reservation.allocation.nodes) {
    const bool taken = busy_ones && !state.node(share.node).jobs.empty();
    if (state.cluster().nodes[share.node].usable && !taken) kept.push_back(share);
  }
  if (kept.size() == reservation.allocation.nodes.size()) return false;
  Chooser chooser(state, now, reservation);
  bool changed = false;
  for (const NodeIndex node : chooser.spare()) {
    if (kept.size() == reservation.allocation.nodes.size()) break;
    if (busy_ones && !state.node(node).jobs.empty()) continue;
    kept.push_back(whole_node(state.cluster(), node));
    changed = true;
  }
  if (!changed) return false;
  // What could not be replaced stays.
  for (const NodeShare& share : reservation.allocation.nodes) {
    if (kept.size() == reservation.allocation.nodes.size()) break;
    if (std::ranges::find(kept, share.node, &NodeShare::node) == kept.end()) kept.push_back(share);
  }
  std::ranges::sort(kept, {}, &NodeShare::node);
  reservation.allocation.nodes = std::move(kept);
  return true;
}

}  // namespace berth::schedule
