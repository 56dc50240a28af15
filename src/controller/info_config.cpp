#include "controller/info_config.h"

#include <fmt/format.h>

#include <ctime>
#include <functional>
#include <map>
#include <optional>

#include "text/size.h"
#include "text/words.h"

namespace berth::controller {
namespace {

constexpr std::string_view kNone = "(null)";

struct Key {
  std::string_view name;
  std::string_view usual;  // "" = computed
};

// The keys in Slurm's order. Those without a text are berth's own to say (working_values); the
// others show what slurm.conf says, or else Slurm's default.
constexpr Key kKeys[] = {
    {"AccountingStorageBackupHost", "(null)"},
    {"AccountingStorageEnforce", {}},
    {"AccountingStorageHost", "localhost"},
    {"AccountingStorageExternalHost", "(null)"},
    {"AccountingStorageParameters", "(null)"},
    {"AccountingStoragePort", "0"},
    {"AccountingStorageTRES", {}},
    {"AccountingStorageType", {}},
    {"AccountingStoreFlags", "(null)"},
    {"AcctGatherEnergyType", "(null)"},
    {"AcctGatherFilesystemType", "(null)"},
    {"AcctGatherInterconnectType", "(null)"},
    {"AcctGatherNodeFreq", "0 sec"},
    {"AcctGatherProfileType", "(null)"},
    {"AllowSpecResourcesUsage", "no"},
    {"AuthAltTypes", "(null)"},
    {"AuthAltParameters", "(null)"},
    {"AuthInfo", "(null)"},
    {"AuthType", {}},
    {"BatchStartTimeout", {}},
    {"BcastExclude", "/lib,/usr/lib,/lib64,/usr/lib64"},
    {"BcastParameters", "(null)"},
    {"BOOT_TIME", {}},
    {"BurstBufferType", "(null)"},
    {"CertgenParameters", "(null)"},
    {"CertgenType", "(null)"},
    {"CertmgrParameters", "(null)"},
    {"CertmgrType", "(null)"},
    {"CliFilterParameters", "(null)"},
    {"CliFilterPlugins", "(null)"},
    {"ClusterName", {}},
    {"CommunicationParameters", "(null)"},
    {"CompleteWait", {}},
    {"CpuFreqDef", "Unknown"},
    {"CpuFreqGovernors", "OnDemand,Performance,UserSpace"},
    {"CredType", "cred/munge"},
    {"DataParserParameters", "(null)"},
    {"DebugFlags", "(null)"},
    {"DefMemPerNode", {}},
    {"DefRuntimePlugin", "runtime/oci"},
    {"DependencyParameters", {}},
    {"DisableRootJobs", {}},
    {"EioTimeout", "60"},
    {"EnforcePartLimits", {}},
    {"EpilogMsgTime", "2000 usec"},
    {"FairShareDampeningFactor", "1"},
    {"FederationParameters", "(null)"},
    {"FirstJobId", {}},
    {"GresTypes", {}},
    {"GpuFreqDef", "(null)"},
    {"GroupUpdateForce", "1"},
    {"GroupUpdateTime", "600 sec"},
    {"HashPlugin", "hash/k12"},
    {"HealthCheckInterval", {}},
    {"HealthCheckNodeState", {}},
    {"HealthCheckProgram", {}},
    {"HealthCheckTimeout", "0 sec"},
    {"HttpParserType", "(null)"},
    {"InactiveLimit", {}},
    {"InteractiveStepOptions", {}},
    {"JobAcctGatherFrequency", {}},
    {"JobAcctGatherType", {}},
    {"JobAcctGatherParams", "(null)"},
    {"JobCompHost", "localhost"},
    {"JobCompLoc", "(null)"},
    {"JobCompParams", "(null)"},
    {"JobCompPass", "(null)"},
    {"JobCompPort", "0"},
    {"JobCompType", "(null)"},
    {"JobCompUser", "root"},
    {"JobDefaults", {}},
    {"JobFileAppend", {}},
    {"JobRequeue", {}},
    {"JobSubmitPlugins", "(null)"},
    {"KillOnBadExit", {}},
    {"KillWait", {}},
    {"LaunchParameters", {}},
    {"LicenseParameters", "(null)"},
    {"Licenses", {}},
    {"LogTimeFormat", "iso8601_ms"},
    {"MailDomain", "(null)"},
    {"MailProg", {}},
    {"MaxArraySize", {}},
    {"MaxBatchRequeue", {}},
    {"MaxDBDMsgs", "0"},
    {"MaxJobCount", {}},
    {"MaxJobId", {}},
    {"MaxMemPerNode", {}},
    {"MaxNodeCount", {}},
    {"MaxStepCount", {}},
    {"MaxTasksPerNode", {}},
    {"MCSPlugin", "(null)"},
    {"MCSParameters", "(null)"},
    {"MessageTimeout", "10 sec"},
    {"MetricsAuthUsers", "(null)"},
    {"MetricsParameters", "(null)"},
    {"MetricsType", "(null)"},
    {"MinJobAge", {}},
    {"MpiDefault", {}},
    {"MpiParams", {}},
    {"NamespaceType", "(null)"},
    {"NodeFeaturesPlugins", "(null)"},
    {"OverTimeLimit", {}},
    {"PlugStackConfig", "(null)"},
    {"PreemptMode", {}},
    {"PreemptParameters", "(null)"},
    {"PreemptType", "(null)"},
    {"PreemptExemptTime", "00:00:00"},
    {"PrEpParameters", "(null)"},
    {"PrEpPlugins", "prep/script"},
    {"PriorityParameters", "(null)"},
    {"PrioritySiteFactorParameters", "(null)"},
    {"PrioritySiteFactorPlugin", "(null)"},
    {"PriorityDecayHalfLife", "7-00:00:00"},
    {"PriorityCalcPeriod", "00:05:00"},
    {"PriorityFavorSmall", "no"},
    {"PriorityFlags", ""},
    {"PriorityMaxAge", "7-00:00:00"},
    {"PriorityType", {}},
    {"PriorityUsageResetPeriod", "NONE"},
    {"PriorityWeightAge", "0"},
    {"PriorityWeightAssoc", "0"},
    {"PriorityWeightFairShare", "0"},
    {"PriorityWeightJobSize", "0"},
    {"PriorityWeightPartition", "0"},
    {"PriorityWeightQOS", "0"},
    {"PriorityWeightTRES", "(null)"},
    {"PrivateData", {}},
    {"ProctrackType", {}},
    {"PrologEpilogTimeout", "65534"},
    {"PrologFlags", {}},
    {"PropagatePrioProcess", {}},
    {"PropagateResourceLimits", {}},
    {"PropagateResourceLimitsExcept", {}},
    {"RebootProgram", "(null)"},
    {"ReconfigFlags", "(null)"},
    {"RequeueExit", {}},
    {"RequeueExitHold", {}},
    {"ResumeFailProgram", "(null)"},
    {"ResumeProgram", "(null)"},
    {"ResumeRate", "300 nodes/min"},
    {"ResumeTimeout", "60 sec"},
    {"ResvEpilog", "(null)"},
    {"ResvOverRun", {}},
    {"ResvProlog", "(null)"},
    {"ReturnToService", {}},
    {"SchedulerParameters", {}},
    {"SchedulerTimeSlice", "30 sec"},
    {"SchedulerType", {}},
    {"ScronParameters", "(null)"},
    {"SelectType", {}},
    {"SelectTypeParameters", {}},
    {"SerializerParameters", "(null)"},
    {"SerializerPlugins", "(null)"},
    {"SlurmUser", {}},
    {"SlurmctldAddr", "(null)"},
    {"SlurmctldDebug", {}},
    {"SlurmctldHost[0]", {}},
    {"SlurmctldHttpAuthParameters", "(null)"},
    {"SlurmctldLogFile", {}},
    {"SlurmctldPort", {}},
    {"SlurmctldSyslogDebug", "(null)"},
    {"SlurmctldPrimaryOffProg", "(null)"},
    {"SlurmctldPrimaryOnProg", "(null)"},
    {"SlurmctldTimeout", {}},
    {"SlurmctldParameters", {}},
    {"SlurmdDebug", {}},
    {"SlurmdHttpAuthParameters", "(null)"},
    {"SlurmdLogFile", {}},
    {"SlurmdParameters", {}},
    {"SlurmdPidFile", {}},
    {"SlurmdPort", {}},
    {"SlurmdSpoolDir", {}},
    {"SlurmdSyslogDebug", "(null)"},
    {"SlurmdTimeout", {}},
    {"SlurmdUser", {}},
    {"SlurmrestdHttpAuthParameters", "(null)"},
    {"SlurmrestdParameters", "(null)"},
    {"SlurmSchedLogFile", "(null)"},
    {"SlurmSchedLogLevel", "0"},
    {"SlurmstepdParameters", "(null)"},
    {"SlurmctldPidFile", {}},
    {"SLURM_CONF", {}},
    {"SLURM_VERSION", {}},
    {"SrunEpilog", {}},
    {"SrunPortRange", "0-0"},
    {"SrunProlog", {}},
    {"StateSaveLocation", {}},
    {"SuspendExcNodes", "(null)"},
    {"SuspendExcParts", "(null)"},
    {"SuspendExcStates", "(null)"},
    {"SuspendProgram", "(null)"},
    {"SuspendRate", "60 nodes/min"},
    {"SuspendTime", "INFINITE"},
    {"SuspendTimeout", "30 sec"},
    {"SwitchParameters", "(null)"},
    {"SwitchType", "(null)"},
    {"TaskEpilog", {}},
    {"TaskPlugin", {}},
    {"TaskPluginParam", "(null type)"},
    {"TaskProlog", {}},
    {"TCPTimeout", "2 sec"},
    {"TLSParameters", "(null)"},
    {"TLSType", "tls/none"},
    {"TmpFS", {}},
    {"TopologyParam", "(null)"},
    {"TopologyPlugin", "topology/flat"},
    {"TrackWCKey", "no"},
    {"TreeWidth", {}},
    {"UsePam", "no"},
    {"UnkillableStepProgram", {}},
    {"UnkillableStepTimeout", {}},
    {"UrlParserType", "(null)"},
    {"VSizeFactor", "0 percent"},
    {"WaitTime", {}},
    {"X11Parameters", "(null)"},
};

std::string seconds(std::uint64_t value) {
  return fmt::format("{} sec", value);
}

std::string or_none(std::string text) {
  return text.empty() ? std::string(kNone) : std::move(text);
}

std::string list_or(const std::vector<std::string>& words, std::string_view missing) {
  return words.empty() ? std::string(missing) : fmt::format("{}", fmt::join(words, ","));
}

std::string parameters(const conf::Parameters& words) {
  std::string out;
  for (const auto& [name, value] : words) {
    if (!out.empty()) out += ',';
    out += value.empty() ? name : name + "=" + value;
  }
  return or_none(std::move(out));
}

/// "none" and "accounting_storage/none" are shown as nothing.
std::string plugin(const std::string& text) {
  return text.empty() || text == "none" || text.ends_with("/none") ? std::string(kNone) : text;
}

std::string codes(const std::vector<std::uint32_t>& values) {
  return values.empty() ? std::string(kNone) : fmt::format("{}", fmt::join(values, ","));
}

std::string megabytes(const std::optional<std::uint64_t>& mb) {
  return mb ? std::to_string(*mb) : "UNLIMITED";
}

std::string user_and_uid(const std::string& name, Users& users) {
  const auto uid = users.uid_of(name);
  return uid ? fmt::format("{}({})", name, *uid) : name;
}

std::string clock_time(job::Time seconds_since) {
  const std::time_t at = seconds_since;
  std::tm parts{};
  localtime_r(&at, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts)};
}

using Values = std::map<std::string_view, std::string>;

/// "7-00:00:00", "00:05:00".
std::string days_and_time(std::uint32_t value) {
  const std::uint32_t days = value / 86400;
  const std::string time =
      fmt::format("{:02}:{:02}:{:02}", value / 3600 % 24, value / 60 % 60, value % 60);
  return days == 0 ? time : fmt::format("{}-{}", days, time);
}

/// The weights are shown as they were given.
void put_priority(Values& v, const conf::PriorityKeys& keys) {
  v["PriorityType"] = keys.type;
  v["PriorityCalcPeriod"] = days_and_time(keys.calc_period_seconds);
  v["PriorityMaxAge"] = days_and_time(keys.max_age_seconds);
  v["PriorityFavorSmall"] = keys.favor_small ? "yes" : "no";
  v["PriorityFlags"] = fmt::format("{}", fmt::join(keys.flags, ","));
}

void put_power(Values& v, const conf::PowerKeys& keys) {
  v["ResumeRate"] = fmt::format("{} nodes/min", keys.resume_rate);
  v["ResumeTimeout"] = seconds(keys.resume_timeout_seconds);
  v["SuspendRate"] = fmt::format("{} nodes/min", keys.suspend_rate);
  v["SuspendTime"] =
      keys.suspend_seconds == conf::kNeverSuspend ? "INFINITE" : seconds(keys.suspend_seconds);
  v["SuspendTimeout"] = seconds(keys.suspend_timeout_seconds);
}

void put_limits(Values& v, const Setup& setup) {
  const conf::DaemonKeys& keys = setup.keys();
  const cluster::Settings& settings = setup.cluster.settings;
  v["BatchStartTimeout"] = seconds(keys.batch_start_timeout_seconds);
  v["CompleteWait"] = seconds(keys.complete_wait_seconds);
  v["FirstJobId"] = std::to_string(keys.first_job_id);
  v["HealthCheckInterval"] = seconds(keys.health_check_seconds);
  v["InactiveLimit"] = seconds(keys.inactive_seconds);
  v["KillWait"] = seconds(keys.kill_wait_seconds);
  v["MaxArraySize"] = std::to_string(settings.max_array_size);
  v["MaxBatchRequeue"] = std::to_string(keys.max_batch_requeue);
  v["MaxJobCount"] = std::to_string(keys.max_job_count);
  v["MaxJobId"] = std::to_string(keys.max_job_id);
  v["MaxNodeCount"] = std::to_string(setup.cluster.nodes.size());
  v["MaxStepCount"] = std::to_string(keys.max_step_count);
  v["MaxTasksPerNode"] = std::to_string(settings.max_tasks_per_node);
  v["MinJobAge"] = seconds(keys.min_job_age_seconds);
  v["OverTimeLimit"] = keys.over_time_limit_minutes
                           ? fmt::format("{} min", *keys.over_time_limit_minutes)
                           : "UNLIMITED";
  v["ResvOverRun"] = keys.reservation_overrun_minutes
                         ? fmt::format("{} min", *keys.reservation_overrun_minutes)
                         : "UNLIMITED";
  v["SlurmctldTimeout"] = seconds(keys.controller_timeout_seconds);
  v["SlurmdTimeout"] = seconds(keys.node_timeout_seconds);
  v["TreeWidth"] = std::to_string(keys.tree_width);
  v["JobAcctGatherFrequency"] = keys.gather_frequency.empty() ? "30" : keys.gather_frequency;
  v["JobAcctGatherType"] = keys.gather_type.empty() ? "(null)" : keys.gather_type;
  v["UnkillableStepTimeout"] = seconds(keys.unkillable_seconds);
  v["WaitTime"] = seconds(keys.wait_seconds);
  v["DefMemPerNode"] = megabytes(settings.def_mem_per_node_mb);
  v["MaxMemPerNode"] = megabytes(settings.max_mem_per_node_mb);
  // Memory by CPU takes the place of memory by node, under its own name.
  if (settings.def_mem_per_cpu_mb) v["DefMemPerCPU"] = megabytes(settings.def_mem_per_cpu_mb);
  if (settings.max_mem_per_cpu_mb) v["MaxMemPerCPU"] = megabytes(settings.max_mem_per_cpu_mb);
  std::string defaults;
  if (settings.def_cpu_per_gpu)
    defaults = fmt::format("DefCpuPerGPU={}", *settings.def_cpu_per_gpu);
  if (settings.def_mem_per_gpu_mb) {
    defaults +=
        fmt::format("{}DefMemPerGPU={}", defaults.empty() ? "" : ",", *settings.def_mem_per_gpu_mb);
  }
  v["JobDefaults"] = or_none(std::move(defaults));
}

std::string network_plugin(const cluster::Topology& network) {
  switch (network.kind) {
    case cluster::NetworkKind::tree:
      return "topology/tree";
    case cluster::NetworkKind::block:
      return "topology/block";
    case cluster::NetworkKind::flat:
      break;
  }
  return "topology/flat";
}

void put_plugins(Values& v, const Setup& setup) {
  const conf::DaemonKeys& keys = setup.keys();
  const conf::SlurmConf& conf = setup.config.slurm;
  v["AccountingStorageEnforce"] = list_or(keys.accounting_enforce, "none");
  v["AccountingStorageTRES"] = "cpu,mem,energy,node,billing,fs/disk,vmem,pages";
  for (const std::string& tres : keys.accounting_tres) v["AccountingStorageTRES"] += "," + tres;
  v["AccountingStorageType"] = plugin(keys.accounting_storage_type);
  v["AuthType"] = keys.auth_type;
  v["GresTypes"] = list_or(setup.cluster.settings.gres_types, kNone);
  v["MpiParams"] = keys.mpi_params.empty() ? "(null)" : keys.mpi_params;
  v["MpiDefault"] = plugin(setup.cluster.settings.mpi_default);
  const conf::PreemptKeys& preempt = keys.preempt;
  v["PreemptMode"] = text::to_upper(preempt.mode_as_written);
  // As recorded: what nobody set is not named.
  if (preempt.type != "preempt/none") v["PreemptType"] = preempt.type;
  if (!preempt.parameters_as_written.empty())
    v["PreemptParameters"] = preempt.parameters_as_written;
  if (preempt.exempt_seconds) {
    const std::uint32_t s = *preempt.exempt_seconds;
    v["PreemptExemptTime"] = fmt::format("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  }
  put_priority(v, keys.priority);
  v["ProctrackType"] = keys.proctrack_type;
  v["SchedulerParameters"] = parameters(keys.scheduler);
  v["SchedulerType"] = keys.scheduler_type;
  v["SelectType"] = conf.select_type ? conf.select_type->value : "select/cons_tres";
  v["SelectTypeParameters"] = conf.select_parameters
                                  ? text::to_upper(list_or(conf.select_parameters->value, kNone))
                                  : "CR_CORE_MEMORY";
  v["TopologyPlugin"] = network_plugin(setup.cluster.topology);
  v["TopologyParam"] =
      conf.topology_parameters ? list_or(conf.topology_parameters->value, kNone) : kNone;
  v["TaskPlugin"] =
      conf.task_plugins ? list_or(conf.task_plugins->value, kNone) : std::string("task/affinity");
  v["EnforcePartLimits"] =
      conf.enforce_part_limits ? text::to_upper(conf.enforce_part_limits->value) : "NO";
}

void put_rules(Values& v, const Setup& setup) {
  const conf::DaemonKeys& keys = setup.keys();
  const auto flag = [](bool value) { return std::string(value ? "1" : "0"); };
  v["ClusterName"] = setup.policy.cluster_name;
  v["DependencyParameters"] = parameters(keys.dependency);
  v["DisableRootJobs"] = keys.disable_root_jobs ? "yes" : "no";
  v["HealthCheckNodeState"] = text::to_upper(keys.health_check_node_state);
  v["HealthCheckProgram"] = or_none(keys.health_check_program);
  v["InteractiveStepOptions"] = keys.interactive_step_options;
  v["JobFileAppend"] = flag(keys.job_file_append);
  v["JobRequeue"] = flag(keys.job_requeue);
  v["KillOnBadExit"] = flag(keys.kill_on_bad_exit.value_or(false));
  v["LaunchParameters"] = parameters(keys.launch);
  v["Licenses"] = or_none(keys.licenses);
  v["MailProg"] = keys.mail_program;
  v["PrivateData"] = list_or(keys.private_data, "none");
  v["PrologFlags"] = list_or(keys.prolog_flags, kNone);
  v["PropagatePrioProcess"] = std::to_string(keys.propagate_niceness);
  v["PropagateResourceLimits"] = list_or(keys.propagate_limits, "ALL");
  v["PropagateResourceLimitsExcept"] = list_or(keys.propagate_limits_except, kNone);
  v["RequeueExit"] = codes(keys.requeue_exit);
  v["RequeueExitHold"] = codes(keys.requeue_exit_hold);
  v["ReturnToService"] = std::to_string(keys.return_to_service);
  v["SrunEpilog"] = or_none(keys.srun_epilog);
  v["SrunProlog"] = or_none(keys.srun_prolog);
  v["TaskEpilog"] = or_none(keys.task_epilog);
  v["TaskProlog"] = or_none(keys.task_prolog);
  v["UnkillableStepProgram"] = or_none(keys.unkillable_program);
}

void put_daemons(Values& v, const Setup& setup, const std::string& host, Users& users,
                 job::Time started) {
  const conf::DaemonKeys& keys = setup.keys();
  v["BOOT_TIME"] = clock_time(started);
  v["SlurmUser"] = user_and_uid(keys.slurm_user, users);
  v["SlurmdUser"] = user_and_uid(keys.slurmd_user, users);
  v["SlurmctldDebug"] = keys.controller_debug;
  v["SlurmctldHost[0]"] =
      keys.controllers.empty() || keys.controllers.front().address == keys.controllers.front().name
          ? host
          : fmt::format("{}({})", host, keys.controllers.front().address);
  v["SlurmctldLogFile"] = or_none(keys.controller_log);
  v["SlurmctldPort"] = std::to_string(keys.controller_port);
  v["SlurmctldParameters"] = parameters(keys.controller);
  v["SlurmctldPidFile"] = keys.controller_pid_file;
  v["SlurmdDebug"] = keys.node_debug;
  v["SlurmdLogFile"] = or_none(keys.node_log);
  v["SlurmdParameters"] = parameters(keys.node);
  v["SlurmdPidFile"] = keys.node_pid_file;
  v["SlurmdPort"] = std::to_string(keys.node_port);
  v["SlurmdSpoolDir"] = keys.spool_dir;
  v["SLURM_CONF"] = setup.conf_path;
  v["SLURM_VERSION"] = "26.11.0";
  v["StateSaveLocation"] = keys.state_save_location;
  v["TmpFS"] = keys.tmp_fs;
}

}  // namespace

wire::ConfigReply config_reply(const Setup& setup, const std::string& host, Users& users,
                               job::Time started) {
  Values values;
  put_limits(values, setup);
  put_power(values, setup.keys().power);
  put_plugins(values, setup);
  put_rules(values, setup);
  put_daemons(values, setup, host, users, started);
  wire::ConfigReply reply;
  reply.set_conf_path(setup.conf_path);
  reply.set_controller_host(host);
  put_network(reply, setup.cluster);
  const auto add = [&](std::string_view name, std::string value) {
    wire::Variable& setting = *reply.add_settings();
    setting.set_name(std::string(name));
    setting.set_value(std::move(value));
  };
  for (const Key& key : kKeys) {
    std::string_view name = key.name;
    if (name == "DefMemPerNode" && values.contains("DefMemPerCPU")) name = "DefMemPerCPU";
    if (name == "MaxMemPerNode" && values.contains("MaxMemPerCPU")) name = "MaxMemPerCPU";
    if (const auto own = values.find(name); own != values.end()) {
      add(name, own->second);
      continue;
    }
    const auto given = setup.config.slurm.given.find(text::to_lower(name));
    add(name, given != setup.config.slurm.given.end() ? given->second : std::string(key.usual));
  }
  return reply;
}

}  // namespace berth::controller
