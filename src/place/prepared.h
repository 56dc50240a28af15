// A request made ready for one cluster: counts, names and defaults worked out once, so that a
// scheduler can ask again and again where it would go. place_job() is this with one question.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cluster/usage.h"
#include "place/ask.h"
#include "place/names.h"
#include "place/place.h"

namespace berth::place {

struct Trial;

class Prepared {
 public:
  /// Both must outlive it. Nodes may change their state meanwhile, nothing else of the cluster may.
  /// `equal_weights`: no node is to be used before another, as far as is known.
  Prepared(const cluster::Cluster& cluster, const request::Request& request,
           bool equal_weights = false);

  /// The whole answer, with reasons.
  [[nodiscard]] JobPlan plan(const cluster::Usage& usage, Detail detail) const;
  /// Where it starts with what is free in this view; of these nodes (ascending) where they are
  /// given; with `few_switches` on no more switches than --switches names.
  [[nodiscard]] std::optional<JobPlan> now(
      const cluster::UsageView& usage,
      std::optional<std::span<const cluster::NodeIndex>> within = std::nullopt,
      bool near_only = false, bool few_switches = false) const;
  /// It takes exactly this, which was found for it before; nullopt: not in this partition.
  [[nodiscard]] std::optional<JobPlan> as_planned(const std::string& partition,
                                                  const cluster::Allocation& allocation) const;
  /// True when of several nodes the lowest in order is taken that has free cores near the devices:
  /// then nodes can be offered a few at a time, with `near_only`.
  [[nodiscard]] bool takes_the_first() const { return takes_the_first_; }

  /// The network has a say in where it goes: a few of many nodes do not stand for all.
  [[nodiscard]] bool asks_network() const { return asks_network_; }

  /// False: refused, or a limit of every partition keeps it, whatever is free.
  [[nodiscard]] bool runnable() const { return runnable_; }
  /// What every node it runs on must have free at least.
  [[nodiscard]] const cluster::Room& floor() const { return floor_; }
  [[nodiscard]] std::uint32_t min_nodes() const { return min_nodes_; }
  /// The limit its partition gives where it has none of its own; unset = unlimited.
  [[nodiscard]] std::optional<std::uint32_t> time_limit_minutes() const;
  [[nodiscard]] bool single_node() const { return single_node_; }
  /// Nodes it must have (-w), ascending.
  [[nodiscard]] const std::vector<cluster::NodeIndex>& required() const { return required_; }
  /// False when the node's build, partition or features, -x or -w rule it out.
  [[nodiscard]] bool may_use(cluster::NodeIndex node) const;

 private:
  /// One partition it may run in, with one choice of models.
  struct Part {
    const cluster::Partition* partition = nullptr;
    std::size_t choice = 0;  // of choices_
    Ask ask;
    std::optional<std::uint32_t> time_limit_minutes;
    std::string hold;     // the limit that keeps it, or ""
    bool closed = false;  // takes no new jobs
  };
  [[nodiscard]] JobPlan begin(const Part& part) const;
  [[nodiscard]] JobPlan plan_in(const Part& part, const cluster::Usage& usage, Detail detail) const;
  [[nodiscard]] bool refused_by_network(const Trial& t, const cluster::Usage& usage) const;
  void find_lists();
  void find_floor(bool equal_weights);

  const cluster::Cluster* cluster_;
  const request::Request* request_;
  request::Counts counts_;
  std::vector<request::Counts> choices_;  // of GPU models
  std::optional<Error> error_;
  FeatureAsk features_;
  std::vector<Part> parts_;
  bool runnable_ = false;
  cluster::Room floor_;
  std::uint32_t min_nodes_ = 1;
  bool single_node_ = false;
  bool takes_the_first_ = false;
  bool asks_network_ = false;
  std::vector<cluster::NodeIndex> required_;
  std::vector<cluster::NodeIndex> excluded_;
  std::vector<cluster::NodeIndex> only_;  // -w that names more nodes than needed: one of these
};

}  // namespace berth::place
