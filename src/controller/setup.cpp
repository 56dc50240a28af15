#include "controller/setup.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "controller/own_host.h"
#include "controller/users.h"
#include "job/silence.h"
#include "settings/settings.h"
#include "site/site.h"
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

}  // namespace

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

job::PartitionPolicy partition_policy(const conf::PartitionRules& rules) {
  return settings::partition_policy(rules, members_of);
}

namespace {

/// The slurm.conf that jobs are told in SLURM_CONF: this one, or the one that `berth up --emulate
/// DIR` copied it from, whose path it left beside the copy.
std::string told_conf(const std::string& conf_path) {
  std::ifstream file(std::filesystem::path(conf_path).parent_path() / "copied-from");
  std::string original;
  return std::getline(file, original) && original.starts_with('/') ? original : conf_path;
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
  out.set_unkillable_program(keys.unkillable_program);
  out.set_prolog_timeout_seconds(keys.prolog_timeout_seconds.value_or(0));
  out.set_epilog_timeout_seconds(keys.epilog_timeout_seconds.value_or(0));
  out.set_health_check_program(keys.health_check_program);
  out.set_health_check_seconds(keys.health_check_seconds);
  out.set_gathers_bytes(keys.gathers());
  out.set_propagate_niceness(keys.propagate_niceness);
  out.set_default_wait_seconds(keys.wait_seconds);
  out.set_beat_seconds(job::beat_seconds(keys.node_timeout_seconds));
  out.set_constrain_devices(cluster.settings.constrain_devices);
  out.set_task_affinity(cluster.settings.task_affinity);
  if (const conf::CgroupConf* fence = config.fence()) {
    out.set_constrain_cores(fence->constrain_cores);
    out.set_constrain_memory(fence->constrain_ram || fence->constrain_swap);
  }
  return out;
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
  if (config->slurm.daemon.preempt.type == "preempt/qos") {
    const std::string text = "PreemptType=preempt/qos: there are no QOS yet, nobody could preempt";
    if (!emulated) {
      return fail(Code::bad_config, text, "use preempt/partition_prio or preempt/none");
    }
    setup.notes.push_back(text);
  }
  if (const auto& named = config->slurm.daemon.controllers; !emulated) {
    if (auto done = check_controller_host(named, this_host()); !done) {
      return pass(std::move(done.error()));
    }
  }
  auto site = site::from_config(*config);
  if (!site) return pass(std::move(site.error()));
  setup.config = std::move(*config);
  setup.cluster = std::move(site->cluster);
  setup.notes.insert(setup.notes.begin(), setup.config.warnings.begin(),
                     setup.config.warnings.end());
  setup.notes.insert(setup.notes.end(), site->warnings.begin(), site->warnings.end());
  const std::string told = told_conf(setup.conf_path);
  setup.policy = settings::policy_of(setup.config, told, emulated, members_of);
  setup.schedule = settings::schedule_of(setup.keys());
  setup.schedule.slice = schedule::kServingSlice;
  setup.node_config = node_config_of(setup.config, setup.cluster, told);
  setup.disclosure = {
      .jobs = !holds(setup.keys().private_data, "jobs") && !holds(setup.keys().private_data, "all"),
      .command_lines = setup.keys().controller.contains("show_command_lines")};
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
  setup.policy.admins = {setup.slurm_uid, ::geteuid()};
  return setup;
}

}  // namespace berth::controller
