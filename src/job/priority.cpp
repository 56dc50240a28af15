#include "job/priority.h"

#include <algorithm>
#include <cmath>

#include "job/asked_size.h"
#include "job/memory.h"

namespace berth::job {
namespace {

/// "gres/gpu:a100" → "gpu", "a100".
std::pair<std::string_view, std::string_view> gres_name(std::string_view tres) {
  tres.remove_prefix(std::string_view("gres/").size());
  const std::size_t colon = tres.find(':');
  return {tres.substr(0, colon), colon == tres.npos ? std::string_view() : tres.substr(colon + 1)};
}

bool is_gres(std::string_view tres) {
  return tres.starts_with("gres/");
}

double held_by(const cluster::Node& node, std::string_view tres) {
  if (tres == "cpu" || tres == "billing") return node.cpus();
  if (tres == "mem") return static_cast<double>(node.memory_mb);
  if (tres == "node") return 1;
  if (!is_gres(tres)) return 0;
  const auto [name, type] = gres_name(tres);
  const cluster::Gres* gres = node.find_gres(name);
  return gres == nullptr ? 0 : static_cast<double>(gres->total_of(type));
}

std::uint64_t licenses_in(const std::map<std::string, std::uint64_t>& counts,
                          std::string_view tres) {
  const auto at = counts.find(std::string(tres.substr(std::string_view("license/").size())));
  return at == counts.end() ? 0 : at->second;
}

double asked_of(std::string_view tres, const AskedSize& size, const Submission& what) {
  if (tres == "cpu" || tres == "billing") return static_cast<double>(size.cpus);
  if (tres == "mem") return static_cast<double>(size.memory_mb);
  if (tres == "node") return size.nodes;
  if (tres.starts_with("license/")) {
    const auto choices = license_choices(what.licenses);
    return choices.empty() ? 0 : static_cast<double>(licenses_in(choices.front(), tres));
  }
  if (!is_gres(tres)) return 0;
  const auto [name, type] = gres_name(tres);
  double sum = 0;
  for (const request::GresAsk& ask : gres_asked(size)) {
    if (ask.name == name && (type.empty() || ask.type == type))
      sum += static_cast<double>(ask.count);
  }
  return sum;
}

/// Part of the whole, 0 … 1.
double share(double part, double whole) {
  return whole <= 0 ? 0 : std::clamp(part / whole, 0.0, 1.0);
}

double size_factor(const PriorityPolicy& policy, const PriorityTotals& totals,
                   const PriorityAsk& ask) {
  double factor = 0;
  if (policy.size_over_time) {
    constexpr double kYear = 365 * 24 * 60;
    const double minutes = ask.minutes ? std::max<double>(1, *ask.minutes) : kYear;
    factor = share(ask.cpus / minutes, totals.cpus);
  } else {
    factor = (share(ask.nodes, totals.nodes) + share(ask.cpus, totals.cpus)) / 2;
  }
  return policy.favor_small ? 1 - factor : factor;
}

}  // namespace

PriorityTotals priority_totals(const cluster::Cluster& cluster, const Policy& policy) {
  PriorityTotals out;
  out.nodes = static_cast<double>(cluster.nodes.size());
  for (const cluster::Node& node : cluster.nodes) out.cpus += node.cpus();
  const auto& weights = policy.priority.weight_tres;
  for (const cluster::Partition& partition : cluster.partitions) {
    PriorityTotals::Partition& one = out.partitions[partition.name];
    const auto rules = policy.partitions.find(partition.name);
    if (rules != policy.partitions.end()) one.job_factor = rules->second.priority_job_factor;
    out.highest_job_factor = std::max(out.highest_job_factor, one.job_factor);
    for (const auto& [tres, weight] : weights) {
      double sum = 0;
      if (tres.starts_with("license/")) {
        sum = static_cast<double>(licenses_in(policy.licenses, tres));
      } else {
        for (const cluster::NodeIndex node : partition.nodes) {
          sum += held_by(cluster.nodes[node], tres);
        }
      }
      one.tres.push_back(sum);
    }
  }
  return out;
}

PriorityAsk priority_ask(const cluster::Cluster& cluster, const PriorityPolicy& policy,
                         const Submission& what, const cluster::Partition* partition,
                         std::optional<std::uint32_t> minutes) {
  PriorityAsk out;
  if (policy.weight_size == 0 && policy.weight_tres.empty()) return out;  // nobody looks at it
  const AskedSize size = asked_size(cluster, what.request, partition);
  out.nodes = size.nodes;
  out.cpus = static_cast<double>(size.cpus);
  out.minutes = minutes;
  if (!minutes && partition != nullptr && !what.request.time_limit) {
    out.minutes = partition->default_time_minutes ? partition->default_time_minutes
                                                  : partition->max_time_minutes;
  }
  for (const auto& [tres, weight] : policy.weight_tres) {
    out.tres.push_back(asked_of(tres, size, what));
  }
  return out;
}

PriorityFactors priority_factors(const PriorityPolicy& policy, const PriorityTotals& totals,
                                 const PriorityAsk& ask, std::string_view partition) {
  PriorityFactors out;
  out.size = size_factor(policy, totals, ask);
  const auto at = totals.partitions.find(partition);
  if (at == totals.partitions.end()) {
    out.tres.resize(policy.weight_tres.size());
    return out;
  }
  const double factor = at->second.job_factor;
  out.partition = policy.raw_partition ? factor : share(factor, totals.highest_job_factor);
  for (std::size_t i = 0; i < policy.weight_tres.size(); ++i) {
    const double asked = i < ask.tres.size() ? ask.tres[i] : 0;
    out.tres.push_back(policy.raw_tres ? asked : share(asked, at->second.tres[i]));
  }
  return out;
}

double age_factor(const PriorityPolicy& policy, Time waited) {
  return share(static_cast<double>(waited), static_cast<double>(policy.max_age));
}

double weighted_sum(const PriorityPolicy& policy, const PriorityFactors& factors) {
  double sum = factors.site + policy.weight_age * factors.age +
               policy.weight_assoc * factors.assoc + policy.weight_fair_share * factors.fair_share +
               policy.weight_size * factors.size + policy.weight_partition * factors.partition +
               policy.weight_qos * factors.qos;
  for (std::size_t i = 0; i < policy.weight_tres.size() && i < factors.tres.size(); ++i) {
    sum += policy.weight_tres[i].second * factors.tres[i];
  }
  return sum;
}

std::uint32_t priority_of(double sum, std::int32_t nice) {
  constexpr double kMost = UINT32_MAX;
  constexpr double kRounding = 1e-6;  // 0.35 / 2 × 10000 is 1750
  return static_cast<std::uint32_t>(std::clamp(std::floor(sum + kRounding) - nice, 1.0, kMost));
}

Time waited(const PriorityPolicy& policy, const Accrual& accrual, Time now) {
  if (policy.accrue_always) return std::max<Time>(0, now - accrual.submitted);
  return accrual.before + (accrual.since == 0 ? 0 : std::max<Time>(0, now - accrual.since));
}

std::vector<std::string> partitions_asked(const cluster::Cluster& cluster, const Submission& what) {
  if (!what.request.partitions.empty()) return what.request.partitions;
  const cluster::Partition* standard = cluster.default_partition();
  return standard == nullptr ? std::vector<std::string>() : std::vector{standard->name};
}

}  // namespace berth::job
