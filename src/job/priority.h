// Multifactor priority: pure arithmetic over what a job asks for and how long it has waited.
//
//   P = site + Wage·age + Wassoc·assoc + Wfs·fairshare + Wsize·size + Wpart·part + Wqos·qos
//       + Σ Wtres·tres − nice, from 1 to 2³²−1
//
// Only age changes by itself, so a job keeps the rest as one number (Job::priority_base) and the
// recalculation of a long queue is an addition for each job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "job/types.h"

namespace berth::job {

/// What shares are shares of; made once for a configuration.
struct PriorityTotals {
  struct Partition {
    std::uint32_t job_factor = 1;
    std::vector<double> tres;  // in the order of PriorityPolicy::weight_tres
  };
  double nodes = 0;
  double cpus = 0;
  std::uint32_t highest_job_factor = 1;
  std::map<std::string, Partition, std::less<>> partitions;
};
PriorityTotals priority_totals(const cluster::Cluster& cluster, const Policy& policy);

/// What a job asks for, as far as priority counts it.
struct PriorityAsk {
  double nodes = 1;
  double cpus = 1;
  std::optional<std::uint32_t> minutes;  // unset = no limit
  std::vector<double> tres;              // in the order of PriorityPolicy::weight_tres
};
/// `minutes` is the job's own time limit; the partition's stands in where it has none.
PriorityAsk priority_ask(const cluster::Cluster& cluster, const PriorityPolicy& policy,
                         const Submission& what, const cluster::Partition* partition,
                         std::optional<std::uint32_t> minutes);

/// Each 0 … 1 unless PriorityFlags say otherwise.
struct PriorityFactors {
  double site = 0;  // no plugin sets it
  double age = 0;
  double assoc = 0;
  double fair_share = 0;
  double size = 0;
  double partition = 0;
  double qos = 0;
  std::vector<double> tres;  // in the order of PriorityPolicy::weight_tres
};
PriorityFactors priority_factors(const PriorityPolicy& policy, const PriorityTotals& totals,
                                 const PriorityAsk& ask, std::string_view partition);
/// `waited`: seconds in which nothing but the queue kept it waiting.
double age_factor(const PriorityPolicy& policy, Time waited);
/// The sum of all factors by their weights, without nice.
double weighted_sum(const PriorityPolicy& policy, const PriorityFactors& factors);
/// The priority of a sum: whole, at least 1.
std::uint32_t priority_of(double sum, std::int32_t nice);

/// Seconds that count as age.
struct Accrual {
  Time submitted = 0;
  Time since = 0;   // Job::accrue_since
  Time before = 0;  // Job::accrued
};
Time waited(const PriorityPolicy& policy, const Accrual& accrual, Time now);

/// The partitions a pending job may run in: those it names, or the default one.
std::vector<std::string> partitions_asked(const cluster::Cluster& cluster, const Submission& what);

}  // namespace berth::job
