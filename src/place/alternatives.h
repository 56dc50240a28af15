// "a100|h100": GPUs of either model, but all of a job of the same one.
#pragma once

#include <vector>

#include "cluster/usage.h"
#include "request/counts.h"

namespace berth::place {

/// The counts with one model for each choice, in the order in which they are named; the counts
/// themselves where there is none.
std::vector<request::Counts> alternatives(const request::Counts& counts);

/// What is wrong with a choice that cannot be meant ("a100|", or more of them than make sense), or
/// "".
std::string fault_in_alternatives(const request::Counts& counts);

/// The allocation has devices of the models that these counts name, and no other.
bool made_of(const cluster::Cluster& cluster, const cluster::Allocation& allocation,
             const request::Counts& counts);

}  // namespace berth::place
