// The Priority* keys of slurm.conf: what the order of the queue is made from.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conf/lines.h"

namespace berth::conf {

struct PriorityKeys {
  std::string type = "priority/multifactor";
  std::uint32_t weight_age = 0;
  std::uint32_t weight_assoc = 0;
  std::uint32_t weight_fair_share = 0;
  std::uint32_t weight_job_size = 0;
  std::uint32_t weight_partition = 0;
  std::uint32_t weight_qos = 0;
  /// PriorityWeightTRES: "cpu", "mem", "node", "gres/gpu", "gres/gpu:a100", "license/x"; lower
  /// case.
  std::vector<std::pair<std::string, double>> weight_tres;
  std::uint32_t max_age_seconds = 7 * 24 * 3600;
  std::uint32_t calc_period_seconds = 300;
  bool favor_small = false;
  std::vector<std::string> flags;  // upper case, as PriorityFlags has them
};

/// Takes one global key. False when it is none of these.
bool apply_priority_pair(const Pair& pair, PriorityKeys& keys, Complaints& complaints);

}  // namespace berth::conf
