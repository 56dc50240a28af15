// What `berth up` is going to start, and the configuration files for it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/cluster.h"
#include "command/up_home.h"

namespace berth::command {

struct UpPlan {
  bool emulated = false;
  bool asked_for_emulation = false;
  std::string copied_from;  // slurm.conf of --emulate DIR, a real path; "" = files were generated
  std::map<std::string, std::string> files;  // name in D → text
  cluster::Cluster cluster;
  std::vector<std::string> notes;
};

/// `listen`: other machines may join.
Result<UpPlan> plan_machine(bool listen);
/// SPEC or DIR.
Result<UpPlan> plan_emulated(const std::string& text);

/// Whether the files of the plan are those that are there.
bool same_conf(const ClusterHome& home, const UpPlan& plan);
/// Writes the files; a slurm.conf that the user put there is kept, and the plan changed to what it
/// says.
Result<void> put_conf(const ClusterHome& home, UpPlan& plan);

}  // namespace berth::command
