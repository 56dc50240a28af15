#include "controller/setup.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>

#include "controller/users.h"
#include "site/site.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::controller {
namespace {

/// The file named by -f takes the place of slurm.conf whatever it is called.
class ConfSource : public conf::DirectorySource {
 public:
  explicit ConfSource(const std::filesystem::path& file)
      : DirectorySource(file.parent_path()), file_(file.filename()) {}
  Result<std::optional<std::string>> read(std::string_view name) const override {
    return DirectorySource::read(name == "slurm.conf" ? std::string_view(file_) : name);
  }

 private:
  std::string file_;
};

bool holds(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::vector<std::string> names_in(const conf::Maybe<std::string>& list) {
  std::vector<std::string> names;
  if (!list || text::equal_ignoring_case(list->value, "ALL")) return names;
  for (const std::string_view name : text::split(list->value, ',')) {
    if (!text::trim(name).empty()) names.emplace_back(text::trim(name));
  }
  return names;
}

/// Who is in one of the groups: by their own group, or as a member.
job::PartitionPolicy::Members members_of(const std::vector<std::string>& groups) {
  job::PartitionPolicy::Members out;
  for (const std::string& name : groups) {
    const group* known = ::getgrnam(name.c_str());
    if (known == nullptr) continue;
    out.gids.insert(known->gr_gid);
    for (char** member = known->gr_mem; *member != nullptr; ++member) {
      if (const passwd* user = ::getpwnam(*member)) out.uids.insert(user->pw_uid);
    }
  }
  return out;
}

}  // namespace

job::PartitionPolicy partition_policy(const conf::PartitionRules& rules) {
  job::PartitionPolicy policy;
  if (rules.priority_tier) policy.priority_tier = rules.priority_tier->value;
  if (rules.priority_job_factor) policy.priority_job_factor = rules.priority_job_factor->value;
  if (rules.over_time_limit_minutes) {
    policy.over_time_minutes = rules.over_time_limit_minutes->value;
  }
  if (rules.root_only) policy.root_only = rules.root_only->value;
  if (rules.disable_root_jobs) policy.disable_root = rules.disable_root_jobs->value;
  policy.allow_accounts = names_in(rules.allow_accounts);
  policy.deny_accounts = names_in(rules.deny_accounts);
  policy.allow_qos = names_in(rules.allow_qos);
  policy.deny_qos = names_in(rules.deny_qos);
  if (rules.require_reservation) policy.require_reservation = rules.require_reservation->value;
  if (rules.alloc_nodes) {
    if (auto hosts = text::expand_hostlist(rules.alloc_nodes->value)) {
      policy.alloc_nodes = std::move(*hosts);
    }
  }
  if (rules.allow_groups) policy.members = members_of(names_in(rules.allow_groups));
  return policy;
}

namespace {

/// "matlab:10,ansys": how many there are of each.
std::map<std::string, std::uint64_t> licenses_in(std::string_view text) {
  std::map<std::string, std::uint64_t> out;
  for (const std::string_view item : text::split(text, ',')) {
    const std::string_view word = text::trim(item);
    if (word.empty()) continue;
    const std::size_t colon = word.find_first_of(":*");
    std::uint64_t count = 1;
    if (colon != std::string_view::npos) {
      std::from_chars(word.data() + colon + 1, word.data() + word.size(), count);
    }
    out[std::string(word.substr(0, colon))] += count;
  }
  return out;
}

/// The slurm.conf that jobs are told in SLURM_CONF: this one, or the one that `berth up --emulate
/// DIR` copied it from, whose path it left beside the copy.
std::string told_conf(const std::string& conf_path) {
  std::ifstream file(std::filesystem::path(conf_path).parent_path() / "copied-from");
  std::string original;
  return std::getline(file, original) && original.starts_with('/') ? original : conf_path;
}

job::Policy policy_of(const conf::Config& config, const std::string& conf_path, bool emulated) {
  const conf::DaemonKeys& keys = config.slurm.daemon;
  job::Policy policy;
  if (config.slurm.cluster_name) policy.cluster_name = config.slurm.cluster_name->value;
  policy.conf_path = conf_path;
  policy.kill_wait = keys.kill_wait_seconds;
  policy.min_job_age = keys.min_job_age_seconds;
  policy.first_job_id = keys.first_job_id;
  policy.max_job_id = keys.max_job_id;
  policy.max_job_count = keys.max_job_count;
  policy.inactive_limit = keys.inactive_seconds;
  policy.job_requeue = keys.job_requeue;
  policy.max_batch_requeue = keys.max_batch_requeue;
  policy.slurmd_timeout = keys.node_timeout_seconds;
  policy.return_to_service = keys.return_to_service;
  policy.over_time_minutes =
      keys.over_time_limit_minutes.value_or(std::numeric_limits<std::uint32_t>::max());
  policy.complete_wait = keys.complete_wait_seconds;
  policy.max_step_count = keys.max_step_count;
  policy.requeue_exit = keys.requeue_exit;
  policy.requeue_exit_hold = keys.requeue_exit_hold;
  policy.config_overrides = keys.config_overrides();
  policy.kill_invalid_depend = keys.dependency.contains("kill_invalid_depend") ||
                               keys.scheduler.contains("kill_invalid_depend");
  policy.job_file_append = keys.job_file_append;
  policy.emulated = emulated;
  policy.licenses = licenses_in(keys.licenses);
  for (const conf::PartitionLine& line : config.slurm.partitions) {
    policy.partitions[line.name] = partition_policy(line.rules);
    if (keys.disable_root_jobs && !line.rules.disable_root_jobs) {
      policy.partitions[line.name].disable_root = true;
    }
  }
  return policy;
}

wire::NodeConfig node_config_of(const conf::Config& config, const cluster::Cluster& cluster,
                                const std::string& conf_path) {
  const conf::DaemonKeys& keys = config.slurm.daemon;
  wire::NodeConfig out;
  out.set_cluster_name(config.slurm.cluster_name ? config.slurm.cluster_name->value : cluster.name);
  out.set_conf_path(conf_path);
  for (const std::string& program : keys.prolog) out.add_prolog(program);
  for (const std::string& program : keys.epilog) out.add_epilog(program);
  out.set_task_prolog(keys.task_prolog);
  out.set_task_epilog(keys.task_epilog);
  out.set_kill_wait_seconds(keys.kill_wait_seconds);
  out.set_unkillable_seconds(keys.unkillable_seconds);
  out.set_prolog_timeout_seconds(keys.prolog_timeout_seconds.value_or(0));
  out.set_epilog_timeout_seconds(keys.epilog_timeout_seconds.value_or(0));
  out.set_health_check_program(keys.health_check_program);
  out.set_health_check_seconds(keys.health_check_seconds);
  out.set_default_wait_seconds(keys.wait_seconds);
  out.set_constrain_devices(cluster.settings.constrain_devices);
  out.set_task_affinity(cluster.settings.task_affinity);
  if (config.cgroup) {
    out.set_constrain_cores(config.cgroup->constrain_cores);
    out.set_constrain_memory(config.cgroup->constrain_ram);
  }
  return out;
}

std::optional<std::uint64_t> number(const conf::Parameters& parameters, std::string_view name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::nullopt;
  std::uint64_t value = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

schedule::Options schedule_of(const conf::DaemonKeys& keys) {
  schedule::Options options;
  if (const auto window = number(keys.scheduler, "bf_window"); window && *window > 0) {
    options.backfill_window_minutes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(*window, 60 * 24 * 365));
  }
  if (const auto depth = number(keys.scheduler, "bf_max_job_test"); depth && *depth > 0) {
    options.depth = static_cast<std::size_t>(*depth);
  }
  return options;
}

}  // namespace

Result<Setup> read_setup(const std::string& conf, bool emulated) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(conf, error);
  if (error) {
    return fail(Code::bad_config, fmt::format("cannot read {}: {}", conf, error.message()));
  }
  Setup setup;
  setup.conf_path = path.string();
  auto config = conf::read_config(ConfSource(path));
  if (!config) return pass(std::move(config.error()));
  auto site = site::from_config(*config);
  if (!site) return pass(std::move(site.error()));
  setup.config = std::move(*config);
  setup.cluster = std::move(site->cluster);
  setup.notes = setup.config.warnings;
  setup.notes.insert(setup.notes.end(), site->warnings.begin(), site->warnings.end());
  const std::string told = told_conf(setup.conf_path);
  setup.policy = policy_of(setup.config, told, emulated);
  setup.schedule = schedule_of(setup.keys());
  setup.node_config = node_config_of(setup.config, setup.cluster, told);
  setup.private_jobs =
      holds(setup.keys().private_data, "jobs") || holds(setup.keys().private_data, "all");
  Users users;
  const auto uid = users.uid_of(setup.keys().slurm_user);
  std::uint32_t as_number = 0;
  const std::string& name = setup.keys().slurm_user;
  const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), as_number);
  if (uid) {
    setup.slurm_uid = *uid;
  } else if (wrong == std::errc() && end == name.data() + name.size()) {
    setup.slurm_uid = as_number;
  } else if (emulated || ::geteuid() != 0) {
    setup.slurm_uid = ::geteuid();  // a pretended cluster need not have the user of the real one
    setup.notes.push_back(fmt::format("SlurmUser={} is not known here", name));
  } else {
    return fail(Code::bad_config, fmt::format("SlurmUser={}: there is no such user", name));
  }
  return setup;
}

}  // namespace berth::controller
