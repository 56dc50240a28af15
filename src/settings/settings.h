// From a configuration to what jobs and the scheduler live by: one reading for the controller and
// for the simulator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conf/config.h"
#include "job/types.h"
#include "schedule/schedule.h"

namespace berth::settings {

/// Who is in one of these groups. Names are looked up by the caller: this module opens nothing.
using FindMembers =
    std::function<job::PartitionPolicy::Members(const std::vector<std::string>& groups)>;

/// What policy reads of a PartitionName line. Without `find_members` AllowGroups bars nobody.
job::PartitionPolicy partition_policy(const conf::PartitionRules& rules,
                                      const FindMembers& find_members);

/// `conf_path` is what jobs are told.
job::Policy policy_of(const conf::Config& config, const std::string& conf_path, bool emulated,
                      const FindMembers& find_members);

/// What SchedulerParameters and its like say.
schedule::Options schedule_of(const conf::DaemonKeys& keys);

}  // namespace berth::settings
