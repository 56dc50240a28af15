// slurm.conf as `scontrol show config` lists it: every key with its value or default, in Slurm's
// order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "conf/slurm_conf.h"

namespace berth::conf {

/// What only a running controller knows.
struct ListedFacts {
  std::string boot_time;  // 2026-11-15T07:50:15
  std::string next_job_id;
  std::string conf_path;
  std::string version;
  std::string slurm_user;  // "root(0)"
  std::string slurmd_user;
  std::string controller_host;
};

std::vector<std::pair<std::string, std::string>> config_listing(const SlurmConf& conf,
                                                                const ListedFacts& facts);

}  // namespace berth::conf
