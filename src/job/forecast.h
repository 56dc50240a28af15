// When a job would start if nothing else came: what is free once running jobs have reached their
// limits.
#pragma once

#include <map>
#include <set>

#include "cluster/usage.h"
#include "job/types.h"

namespace berth::job {

struct Forecast {
  Time start = 0;  // 0 = not known: it would not fit when all running jobs had ended
  cluster::Allocation allocation;
};

/// Jobs that hold nodes, among all.
struct Holders {
  const std::map<JobId, Job>& jobs;
  const std::set<JobId>& holding;
};

/// Their ends, soonest first: (time, job).
std::vector<std::pair<Time, const Job*>> expected_ends(const Holders& holders, Time now);

Forecast earliest_start(const cluster::Cluster& cluster, const cluster::Usage& usage,
                        const Holders& holders, const request::Request& request, Time now);

}  // namespace berth::job
