// Whose job may be where: the one rule for submissions and for all that changes jobs afterwards.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"
#include "text/words.h"

namespace berth::job {
namespace {

bool among(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

Result<void> may_be_in(const PartitionPolicy& policy, std::string_view name, const Submission& what,
                       const reservation::User& who) {
  const auto denied = [](std::string hint) {
    return fail(Code::bad_value, "Access/permission denied", std::move(hint));
  };
  if ((policy.root_only && !who.privileged) || (policy.disable_root && who.uid == 0)) {
    return denied(fmt::format("partition {} is not open to you", name));
  }
  if (policy.members && !who.privileged && !policy.members->gids.contains(who.gid) &&
      !policy.members->uids.contains(who.uid)) {
    return fail(Code::bad_value, "User's group not permitted to use this partition",
                fmt::format("see AllowGroups: scontrol show partition {}", name));
  }
  if (policy.require_reservation && what.reservation.empty()) {
    return denied(fmt::format("partition {} is for jobs with --reservation", name));
  }
  if (!policy.alloc_nodes.empty() && !among(policy.alloc_nodes, what.host)) {
    return denied(fmt::format("partition {} takes no jobs from {}", name, what.host));
  }
  if ((!policy.allow_qos.empty() && !among(policy.allow_qos, what.qos)) ||
      among(policy.deny_qos, what.qos)) {
    return fail(Code::bad_value, "Invalid qos specification",
                fmt::format("partition {} is not open to QOS \"{}\"", name, what.qos));
  }
  if ((!policy.allow_accounts.empty() && !among(policy.allow_accounts, what.account)) ||
      among(policy.deny_accounts, what.account)) {
    return fail(Code::bad_value, "Invalid account or account/partition combination specified",
                fmt::format("partition {} is not open to account \"{}\"", name, what.account));
  }
  return {};
}

Result<void> licenses_exist(const Policy& policy, const std::string& licenses) {
  const auto choices = parse_license_choices(licenses);
  if (!choices) return pass(choices.error());
  for (const LicenseCounts& counts : *choices) {
    for (const auto& [name, count] : counts) {
      const auto total = policy.licenses.find(name);
      if (total != policy.licenses.end() && count <= total->second) continue;
      return fail(Code::bad_value, "Invalid license specification",
                  fmt::format("{} of {} asked, Licenses= in slurm.conf has {}", count, name,
                              total == policy.licenses.end() ? 0 : total->second));
    }
  }
  return {};
}

}  // namespace

std::string partition_text(const cluster::Cluster& cluster, const Submission& what) {
  if (!what.request.partitions.empty()) {
    return fmt::format("{}", fmt::join(what.request.partitions, ","));
  }
  const cluster::Partition* standard = cluster.default_partition();
  return standard == nullptr ? "" : standard->name;
}

Result<void> State::Memory::check_access(const Submission& what, std::string_view partitions,
                                         const reservation::User& who) const {
  for (const std::string_view name : text::split(partitions, ',')) {
    const auto at = policy.partitions.find(std::string(name));
    if (at == policy.partitions.end()) continue;
    if (auto may = may_be_in(at->second, name, what, who); !may) return may;
  }
  if (auto may = check_reservation(what.reservation, who); !may) return may;
  return licenses_exist(policy, what.licenses);
}

Result<void> State::Memory::check_moved(const Job& job, const Submission& what,
                                        std::string_view partitions, const Caller& caller) const {
  const Submission& before = *job.what;
  const bool same = what.request.partitions == before.request.partitions &&
                    what.account == before.account && what.qos == before.qos &&
                    what.reservation == before.reservation && what.licenses == before.licenses;
  if (same) return {};
  const reservation::User who{job.uid, job.gid, what.account, what.qos, caller.privileged};
  if (auto may = check_access(what, partitions, who); !may) return may;
  if (caller.privileged || what.request.partitions == before.request.partitions) return {};
  const auto refused = [](std::string hint) {
    return fail(Code::invalid_time_limit, std::string(slurm_text(Code::invalid_time_limit)),
                std::move(hint));
  };
  if (job.gpu_idle_decided) {
    auto beyond = gpu_idle_beyond(policy, partitions, job.gpu_idle_seconds);
    if (!beyond.empty()) return refused(std::move(beyond));
  }
  // Placement reads the limit that was submitted; this one was given since.
  if (!job.time_limit_decided || what.request.time_limit == job.time_limit_minutes) return {};
  for (const std::string_view name : text::split(partitions, ',')) {
    const cluster::Partition* one = cluster.find_partition(name);
    const auto most = one == nullptr ? std::nullopt : one->max_time_minutes;
    if (most && (!job.time_limit_minutes || *job.time_limit_minutes > *most)) {
      return refused(fmt::format("partition {} has MaxTime={} minutes", name, *most));
    }
  }
  return {};
}

}  // namespace berth::job
