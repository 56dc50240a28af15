#include "controller/info_priority.h"

#include <algorithm>

namespace berth::controller {
namespace {

wire::PriorityParts weights_of(const job::PriorityPolicy& policy) {
  wire::PriorityParts out;
  out.set_site(1);
  out.set_age(policy.weight_age);
  out.set_assoc(policy.weight_assoc);
  out.set_fair_share(policy.weight_fair_share);
  out.set_size(policy.weight_size);
  out.set_partition(policy.weight_partition);
  out.set_qos(policy.weight_qos);
  for (const auto& [name, weight] : policy.weight_tres) out.add_tres(weight);
  return out;
}

wire::PriorityParts parts_of(const job::PriorityFactors& factors) {
  wire::PriorityParts out;
  out.set_site(factors.site);
  out.set_age(factors.age);
  out.set_assoc(factors.assoc);
  out.set_fair_share(factors.fair_share);
  out.set_size(factors.size);
  out.set_partition(factors.partition);
  out.set_qos(factors.qos);
  for (const double share : factors.tres) out.add_tres(share);
  return out;
}

}  // namespace

wire::PrioritiesReply priorities_reply(const PrioritySite& site,
                                       const std::vector<std::shared_ptr<const JobView>>& jobs,
                                       const wire::ListPriorities& ask, Users& users,
                                       job::Time worked_out) {
  wire::PrioritiesReply reply;
  const job::PriorityPolicy& policy = site.policy;
  const cluster::Cluster& cluster = site.site->cluster;
  reply.set_type(policy.multifactor ? "priority/multifactor" : "priority/basic");
  reply.set_cluster_name(site.site->cluster_name);
  for (const auto& [name, weight] : policy.weight_tres) reply.add_tres(name);
  *reply.mutable_weights() = weights_of(policy);
  if (!policy.multifactor) return reply;
  for (const auto& view : jobs) {
    if (!view->waits) continue;
    const PriorityView& job = *view->waits;
    const auto names = job::partitions_asked(cluster, *job.what);
    for (const std::string& name : names) {
      const auto& wanted = ask.partitions();
      if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
      job::PriorityFactors factors;
      factors.tres.resize(policy.weight_tres.size());
      std::uint32_t priority = view->priority;
      if (!job.fixed) {
        const job::PriorityAsk asks = job::priority_ask(cluster, policy, *job.what,
                                                        cluster.find_partition(name), job.minutes);
        factors = job::priority_factors(policy, site.totals, asks, name);
        const job::Time at = std::max(worked_out, job.accrual.since);  // when it came, if later
        factors.age = job::age_factor(policy, job::waited(policy, job.accrual, at));
        // Of several partitions each has its own; the queue goes by the best.
        if (names.size() > 1)
          priority = job::priority_of(job::weighted_sum(policy, factors), job.nice);
      }
      wire::JobPriority& row = *reply.add_jobs();
      row.set_id(view->id);
      row.set_partition(name);
      row.set_user(users.name_of(view->uid));
      row.set_account(job.what->account);
      row.set_qos(job.what->qos);
      row.set_priority(priority);
      row.set_nice(job.nice);
      *row.mutable_factors() = parts_of(factors);
    }
  }
  return reply;
}

}  // namespace berth::controller
