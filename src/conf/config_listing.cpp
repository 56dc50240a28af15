// The table is the listing of a controller with nothing configured. A default that ends in a unit
// ("30 sec") gives the unit to a value that is a bare number.
#include "conf/config_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/words.h"

namespace berth::conf {
namespace {

struct Row {
  std::string_view key;
  std::string_view value;
};

constexpr auto kRows = std::to_array<Row>({
    {"AccountingStorageBackupHost", "(null)"},
    {"AccountingStorageEnforce", "none"},
    {"AccountingStorageHost", "localhost"},
    {"AccountingStorageExternalHost", "(null)"},
    {"AccountingStorageParameters", "(null)"},
    {"AccountingStoragePort", "0"},
    {"AccountingStorageTRES", "cpu,mem,energy,node,billing,fs/disk,vmem,pages"},
    {"AccountingStorageType", "(null)"},
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
    {"AuthType", "auth/munge"},
    {"BatchStartTimeout", "10 sec"},
    {"BcastExclude", "/lib,/usr/lib,/lib64,/usr/lib64"},
    {"BcastParameters", "(null)"},
    {"BOOT_TIME", ""},
    {"BurstBufferType", "(null)"},
    {"CertgenParameters", "(null)"},
    {"CertgenType", "(null)"},
    {"CertmgrParameters", "(null)"},
    {"CertmgrType", "(null)"},
    {"CliFilterParameters", "(null)"},
    {"CliFilterPlugins", "(null)"},
    {"ClusterName", "(null)"},
    {"CommunicationParameters", "(null)"},
    {"CompleteWait", "0 sec"},
    {"CpuFreqDef", "Unknown"},
    {"CpuFreqGovernors", "OnDemand,Performance,UserSpace"},
    {"CredType", "cred/munge"},
    {"DataParserParameters", "(null)"},
    {"DebugFlags", "(null)"},
    {"DefMemPerNode", "UNLIMITED"},
    {"DefRuntimePlugin", "runtime/oci"},
    {"DependencyParameters", "(null)"},
    {"DisableRootJobs", "no"},
    {"EioTimeout", "60"},
    {"EnforcePartLimits", "NO"},
    {"EpilogMsgTime", "2000 usec"},
    {"FairShareDampeningFactor", "1"},
    {"FederationParameters", "(null)"},
    {"FirstJobId", "1"},
    {"GresTypes", "(null)"},
    {"GpuFreqDef", "(null)"},
    {"GroupUpdateForce", "1"},
    {"GroupUpdateTime", "600 sec"},
    {"HashPlugin", "hash/k12"},
    {"HealthCheckInterval", "0 sec"},
    {"HealthCheckNodeState", "ANY"},
    {"HealthCheckProgram", "(null)"},
    {"HealthCheckTimeout", "0 sec"},
    {"HttpParserType", "(null)"},
    {"InactiveLimit", "0 sec"},
    {"InteractiveStepOptions", "--interactive --preserve-env --pty $SHELL"},
    {"JobAcctGatherFrequency", "30"},
    {"JobAcctGatherType", "(null)"},
    {"JobAcctGatherParams", "(null)"},
    {"JobCompHost", "localhost"},
    {"JobCompLoc", "(null)"},
    {"JobCompParams", "(null)"},
    {"JobCompPass", "(null)"},
    {"JobCompPort", "0"},
    {"JobCompType", "(null)"},
    {"JobCompUser", "root"},
    {"JobDefaults", "(null)"},
    {"JobFileAppend", "0"},
    {"JobRequeue", "1"},
    {"JobSubmitPlugins", "(null)"},
    {"KillOnBadExit", "0"},
    {"KillWait", "30 sec"},
    {"LaunchParameters", "(null)"},
    {"LicenseParameters", "(null)"},
    {"Licenses", "(null)"},
    {"LogTimeFormat", "iso8601_ms"},
    {"MailDomain", "(null)"},
    {"MailProg", "/bin/mail"},
    {"MaxArraySize", "1001"},
    {"MaxBatchRequeue", "5"},
    {"MaxDBDMsgs", "0"},
    {"MaxJobCount", "10000"},
    {"MaxJobId", "67043328"},
    {"MaxMemPerNode", "UNLIMITED"},
    {"MaxNodeCount", ""},
    {"MaxStepCount", "40000"},
    {"MaxTasksPerNode", "512"},
    {"MCSPlugin", "(null)"},
    {"MCSParameters", "(null)"},
    {"MessageTimeout", "10 sec"},
    {"MetricsAuthUsers", "(null)"},
    {"MetricsParameters", "(null)"},
    {"MetricsType", "(null)"},
    {"MinJobAge", "300 sec"},
    {"MpiDefault", "(null)"},
    {"MpiParams", "(null)"},
    {"NamespaceType", "(null)"},
    {"NEXT_JOB_ID", ""},
    {"NodeFeaturesPlugins", "(null)"},
    {"OverTimeLimit", "0 min"},
    {"PlugStackConfig", "(null)"},
    {"PreemptMode", "OFF"},
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
    {"PriorityType", "priority/multifactor"},
    {"PriorityUsageResetPeriod", "NONE"},
    {"PriorityWeightAge", "0"},
    {"PriorityWeightAssoc", "0"},
    {"PriorityWeightFairShare", "0"},
    {"PriorityWeightJobSize", "0"},
    {"PriorityWeightPartition", "0"},
    {"PriorityWeightQOS", "0"},
    {"PriorityWeightTRES", "(null)"},
    {"PrivateData", "none"},
    {"ProctrackType", "proctrack/cgroup"},
    {"PrologEpilogTimeout", "65534"},
    {"PrologFlags", "(null)"},
    {"PropagatePrioProcess", "0"},
    {"PropagateResourceLimits", "ALL"},
    {"PropagateResourceLimitsExcept", "(null)"},
    {"RebootProgram", "(null)"},
    {"ReconfigFlags", "(null)"},
    {"RequeueExit", "(null)"},
    {"RequeueExitHold", "(null)"},
    {"ResumeFailProgram", "(null)"},
    {"ResumeProgram", "(null)"},
    {"ResumeRate", "300 nodes/min"},
    {"ResumeTimeout", "60 sec"},
    {"ResvEpilog", "(null)"},
    {"ResvOverRun", "0 min"},
    {"ResvProlog", "(null)"},
    {"ReturnToService", "0"},
    {"SchedulerParameters", "(null)"},
    {"SchedulerTimeSlice", "30 sec"},
    {"SchedulerType", "sched/backfill"},
    {"ScronParameters", "(null)"},
    {"SelectType", "select/cons_tres"},
    {"SelectTypeParameters", "CR_CORE_MEMORY"},
    {"SerializerParameters", "(null)"},
    {"SerializerPlugins", "(null)"},
    {"SlurmUser", "root"},
    {"SlurmctldAddr", "(null)"},
    {"SlurmctldDebug", "info"},
    {"SlurmctldHost[0]", ""},
    {"SlurmctldHttpAuthParameters", "(null)"},
    {"SlurmctldLogFile", "(null)"},
    {"SlurmctldPort", "6817"},
    {"SlurmctldSyslogDebug", "(null)"},
    {"SlurmctldPrimaryOffProg", "(null)"},
    {"SlurmctldPrimaryOnProg", "(null)"},
    {"SlurmctldTimeout", "120 sec"},
    {"SlurmctldParameters", "(null)"},
    {"SlurmdDebug", "info"},
    {"SlurmdHttpAuthParameters", "(null)"},
    {"SlurmdLogFile", "(null)"},
    {"SlurmdParameters", "(null)"},
    {"SlurmdPidFile", "/var/run/slurmd.pid"},
    {"SlurmdPort", "6818"},
    {"SlurmdSpoolDir", "/var/spool/slurmd"},
    {"SlurmdSyslogDebug", "(null)"},
    {"SlurmdTimeout", "300 sec"},
    {"SlurmdUser", "root"},
    {"SlurmrestdHttpAuthParameters", "(null)"},
    {"SlurmrestdParameters", "(null)"},
    {"SlurmSchedLogFile", "(null)"},
    {"SlurmSchedLogLevel", "0"},
    {"SlurmstepdParameters", "(null)"},
    {"SlurmctldPidFile", "/var/run/slurmctld.pid"},
    {"SLURM_CONF", ""},
    {"SLURM_VERSION", ""},
    {"SrunEpilog", "(null)"},
    {"SrunPortRange", "0-0"},
    {"SrunProlog", "(null)"},
    {"StateSaveLocation", "/var/spool"},
    {"SuspendExcNodes", "(null)"},
    {"SuspendExcParts", "(null)"},
    {"SuspendExcStates", "(null)"},
    {"SuspendProgram", "(null)"},
    {"SuspendRate", "60 nodes/min"},
    {"SuspendTime", "INFINITE"},
    {"SuspendTimeout", "30 sec"},
    {"SwitchParameters", "(null)"},
    {"SwitchType", "(null)"},
    {"TaskEpilog", "(null)"},
    {"TaskPlugin", "(null)"},
    {"TaskPluginParam", "(null type)"},
    {"TaskProlog", "(null)"},
    {"TCPTimeout", "2 sec"},
    {"TLSParameters", "(null)"},
    {"TLSType", "tls/none"},
    {"TmpFS", "/tmp"},
    {"TopologyParam", "(null)"},
    {"TopologyPlugin", "topology/flat"},
    {"TrackWCKey", "no"},
    {"TreeWidth", "16"},
    {"UsePam", "no"},
    {"UnkillableStepProgram", "(null)"},
    {"UnkillableStepTimeout", "60 sec"},
    {"UrlParserType", "(null)"},
    {"VSizeFactor", "0 percent"},
    {"WaitTime", "0 sec"},
    {"X11Parameters", "(null)"},
});

/// Passwords are nobody's business; neither is the name of a plugin that does nothing.
bool hidden(std::string_view key, std::string_view value) {
  return key.ends_with("Pass") || value.empty() || value.ends_with("/none") ||
         (key == "MpiDefault" && value == "none");
}

bool digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  });
  return text;
}

std::string given_value(const Row& row, const std::string& value) {
  if (hidden(row.key, value)) return "(null)";
  if (row.key == "SelectTypeParameters") return upper(value);
  const std::size_t space = row.value.find(' ');
  if (digits(value) && space != std::string_view::npos && digits(row.value.substr(0, space))) {
    return fmt::format("{}{}", value, row.value.substr(space));
  }
  if (row.value == "yes" || row.value == "no") {
    const std::string word = text::to_lower(value);
    return word == "yes" || word == "true" || word == "1" ? "yes" : "no";
  }
  return value;
}

class Listing {
 public:
  Listing(const SlurmConf& conf, const ListedFacts& facts) : conf_(conf), facts_(facts) {}

  std::vector<std::pair<std::string, std::string>> all() {
    for (const Row& row : kRows) {
      programs_before(row.key);
      if (!known(row)) add(std::string(row.key), of(row));
    }
    return std::move(out_);
  }

 private:
  void add(std::string key, std::string value) {
    out_.emplace_back(std::move(key), std::move(value));
  }

  std::string of(const Row& row) const {
    const auto given = conf_.given.find(text::to_lower(row.key));
    return given == conf_.given.end() ? std::string(row.value) : given_value(row, given->second);
  }

  void programs_before(std::string_view key) {
    if (key == "EpilogMsgTime") programs("Epilog", conf_.daemon.epilog);
    if (key == "PrologEpilogTimeout") programs("Prolog", conf_.daemon.prolog);
  }
  void programs(std::string_view key, const std::vector<std::string>& paths) {
    for (std::size_t i = 0; i < paths.size(); ++i) add(fmt::format("{}[{}]", key, i), paths[i]);
  }

  /// Rows whose value comes from elsewhere than their own key.
  bool known(const Row& row) {
    if (row.key == "BOOT_TIME")
      add("BOOT_TIME", facts_.boot_time);
    else if (row.key == "NEXT_JOB_ID")
      add("NEXT_JOB_ID", facts_.next_job_id);
    else if (row.key == "SLURM_CONF")
      add("SLURM_CONF", facts_.conf_path);
    else if (row.key == "SLURM_VERSION")
      add("SLURM_VERSION", facts_.version);
    else if (row.key == "SlurmUser")
      add("SlurmUser", facts_.slurm_user);
    else if (row.key == "SlurmdUser")
      add("SlurmdUser", facts_.slurmd_user);
    else if (row.key == "MaxNodeCount")
      add("MaxNodeCount", node_count());
    else if (row.key == "SlurmctldHost[0]")
      hosts();
    else if (row.key == "DefMemPerNode")
      memory(row, "DefMemPerCPU", "DefMemPerGPU");
    else if (row.key == "MaxMemPerNode")
      memory(row, "MaxMemPerCPU", "");
    else
      return false;
    return true;
  }

  std::string node_count() const {
    std::size_t count = 0;
    for (const NodeLine& line : conf_.nodes) count += line.names.size();
    return std::to_string(count);
  }

  void hosts() {
    const auto& controllers = conf_.daemon.controllers;
    if (controllers.empty()) add("SlurmctldHost[0]", facts_.controller_host);
    for (std::size_t i = 0; i < controllers.size(); ++i) {
      const ControllerHost& host = controllers[i];
      add(fmt::format("SlurmctldHost[{}]", i),
          host.name == host.address ? host.name : fmt::format("{}({})", host.name, host.address));
    }
  }

  void memory(const Row& row, std::string_view other, std::string_view third) {
    for (const std::string_view key : {other, third}) {
      const auto given = key.empty() ? conf_.given.end() : conf_.given.find(text::to_lower(key));
      if (given == conf_.given.end() || given->second == "0") continue;
      add(std::string(key), given->second);
      return;
    }
    add(std::string(row.key), of(row));
  }

  const SlurmConf& conf_;
  const ListedFacts& facts_;
  std::vector<std::pair<std::string, std::string>> out_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> config_listing(const SlurmConf& conf,
                                                                const ListedFacts& facts) {
  return Listing(conf, facts).all();
}

}  // namespace berth::conf
