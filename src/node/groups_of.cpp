// What groups_of.h promises.
#include "node/groups_of.h"

#include <chrono>

#include "node/steps.h"
#include "step/container.h"

namespace berth::node {

bool drop_groups(Surroundings& here, const GroupsOf& groups) {
  bool gone = groups.cgroup.empty() || step::clear_cgroup(groups.cgroup);
  if (here.fencing.active()) {
    gone = here.fencing.clear([&](std::uint32_t job, const std::string& name) {
      return job == groups.job && name == groups.name;
    }) && gone;
  }
  if (gone) tidy_groups(here, groups);
  return gone;
}

/// Others (an exporter) may be in the job's group for a moment; it must not stay for them.
void tidy_groups(Surroundings& here, const GroupsOf& groups) {
  bool gone = groups.cgroup.empty() || here.cgroups.tidy(groups.cgroup);
  if (here.fencing.active()) gone = here.fencing.tidy(groups.uid, groups.job) && gone;
  if (gone) return;
  here.loop.after(std::chrono::seconds(1), [&here, groups] { tidy_groups(here, groups); });
}

}  // namespace berth::node
