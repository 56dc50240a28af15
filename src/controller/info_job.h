// Jobs and steps of the state as messages: what squeue, scontrol and sacct print. Every word here
// is compared with recordings of `scontrol show job`.
#pragma once

#include "cluster/cluster.h"
#include "controller/info_tres.h"
#include "controller/users.h"
#include "job/state.h"
#include "wire/info.pb.h"

namespace berth::controller {

/// What is shown does not depend on the job alone.
struct InfoSite {
  const cluster::Cluster& cluster;
  const TrackedTres& tracked;
  Users& users;
  std::uint32_t max_switch_wait = job::Policy{}.max_switch_wait;  // SchedulerParameters
};

/// With detail (allocation by node).
wire::JobInfo job_info(const InfoSite& site, const job::Job& job, job::Time now);
wire::StepInfo step_info(const InfoSite& site, const job::Job& job, const job::Step& step);

}  // namespace berth::controller
