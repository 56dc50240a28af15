// The tables of keys. Names that later versions of Slurm dropped are kept as "not used", because
// berth reads the files of clusters as they are.
#include "conf/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/words.h"

namespace berth::conf {
namespace {

constexpr Key used(std::string_view name) {
  return {name, Use::used, {}};
}
/// Read so that scontrol show config has it; nothing follows from it.
constexpr Key shown_only(std::string_view name) {
  return {name, Use::shown, {}};
}
constexpr Key plan(std::string_view name, std::string_view consequence) {
  return {name, Use::not_planned, consequence};
}

/// Read for the daemons; a plan made without knowing the user cannot heed it.
constexpr Key typed(std::string_view name, std::string_view consequence) {
  return {name, Use::used_not_planned, consequence};
}

constexpr auto kSlurm = std::to_array<Key>({
    used("ClusterName"),
    used("SelectType"),
    used("SelectTypeParameters"),
    used("TaskPlugin"),
    used("DefMemPerCPU"),
    used("DefMemPerGPU"),
    used("DefMemPerNode"),
    used("MaxMemPerCPU"),
    used("MaxMemPerNode"),
    used("DefCpuPerGPU"),
    used("JobDefaults"),
    used("MaxTasksPerNode"),
    used("MaxArraySize"),
    used("MpiDefault"),
    used("EnforcePartLimits"),
    used("GresTypes"),
    plan("TaskPluginParam", "tasks are bound to CPUs as without it"),
    plan("JobSubmitPlugins", "what the plugins change in a request is not seen"),
    plan("CliFilterPlugins", "what the plugins change in a request is not seen"),
    used("TopologyPlugin"),
    typed("SlurmdParameters",
          "sockets are taken as NodeName lines give them (no l3cache_as_socket, "
          "numa_node_as_socket)"),
    used("TopologyParam"),
    used("SlurmctldHost"),
    used("SlurmctldPort"),
    used("SlurmdPort"),
    used("SlurmUser"),
    used("SlurmdUser"),
    used("AuthType"),
    {"CredType"},
    {"AuthInfo"},
    used("StateSaveLocation"),
    used("SlurmdSpoolDir"),
    used("SlurmctldPidFile"),
    used("SlurmdPidFile"),
    used("SlurmctldLogFile"),
    used("SlurmdLogFile"),
    used("SlurmctldDebug"),
    used("SlurmdDebug"),
    used("SlurmctldTimeout"),
    used("SlurmdTimeout"),
    {"MessageTimeout"},
    {"TCPTimeout"},
    used("ReturnToService"),
    used("ProctrackType"),
    used("KillWait"),
    used("KillOnBadExit"),
    used("WaitTime"),
    shown_only("InactiveLimit"),
    used("MaxStepCount"),
    used("MaxJobCount"),
    used("MaxJobId"),
    used("FirstJobId"),
    used("MinJobAge"),
    used("MpiParams"),
    used("JobRequeue"),
    used("JobFileAppend"),
    used("Prolog"),
    used("Epilog"),
    shown_only("PrologSlurmctld"),
    shown_only("EpilogSlurmctld"),
    used("TaskProlog"),
    used("TaskEpilog"),
    used("SrunProlog"),
    used("SrunEpilog"),
    shown_only("PrologFlags"),
    used("PrologEpilogTimeout"),
    used("PrologTimeout"),
    used("EpilogTimeout"),
    used("LaunchParameters"),
    used("InteractiveStepOptions"),
    used("TmpFS"),
    used("TreeWidth"),
    used("PropagateResourceLimits"),
    used("PropagateResourceLimitsExcept"),
    used("PropagatePrioProcess"),
    used("UnkillableStepTimeout"),
    used("UnkillableStepProgram"),
    used("OverTimeLimit"),
    used("ResvOverRun"),
    used("CompleteWait"),
    used("SchedulerType"),
    used("SchedulerParameters"),
    {"SchedulerTimeSlice"},
    used("PriorityType"),
    used("PriorityWeightAge"),
    used("PriorityWeightAssoc"),
    used("PriorityWeightFairshare"),
    used("PriorityWeightJobSize"),
    used("PriorityWeightPartition"),
    used("PriorityWeightQOS"),
    used("PriorityWeightTRES"),
    {"PriorityDecayHalfLife"},
    used("PriorityCalcPeriod"),
    used("PriorityMaxAge"),
    used("PriorityFavorSmall"),
    {"PriorityUsageResetPeriod"},
    used("PriorityFlags"),
    {"PriorityParameters"},
    {"FairShareDampeningFactor"},
    used("PreemptType"),
    used("PreemptMode"),
    used("PreemptParameters"),
    used("PreemptExemptTime"),
    used("AccountingStorageType"),
    {"AccountingStorageHost"},
    {"AccountingStorageBackupHost"},
    {"AccountingStorageExternalHost"},
    {"AccountingStoragePort"},
    {"AccountingStorageUser"},
    {"AccountingStoragePass"},
    {"AccountingStorageParameters"},
    {"AccountingStorageLoc"},
    shown_only("AccountingStorageEnforce"),
    used("AccountingStorageTRES"),
    {"AccountingStoreFlags"},
    {"AccountingStoreJobComment"},
    used("JobAcctGatherType"),
    used("JobAcctGatherFrequency"),
    {"JobAcctGatherParams"},
    {"JobCompType"},
    {"JobCompLoc"},
    {"JobCompHost"},
    {"JobCompPort"},
    {"JobCompUser"},
    {"JobCompPass"},
    {"JobCompParams"},
    {"CliFilterParameters"},
    used("HealthCheckProgram"),
    used("HealthCheckInterval"),
    shown_only("HealthCheckNodeState"),
    {"HealthCheckTimeout"},
    {"RebootProgram"},
    used("ResumeProgram"),
    used("ResumeTimeout"),
    used("ResumeRate"),
    used("ResumeFailProgram"),
    used("SuspendProgram"),
    used("SuspendTime"),
    used("SuspendTimeout"),
    used("SuspendRate"),
    used("SuspendExcNodes"),
    used("SuspendExcParts"),
    used("SuspendExcStates"),
    used("Licenses"),
    {"LicenseParameters"},
    shown_only("MailProg"),
    {"MailDomain"},
    used("PrivateData"),
    {"MaxNodeCount"},
    {"MaxDBDMsgs"},
    used("MaxBatchRequeue"),
    used("RequeueExit"),
    used("RequeueExitHold"),
    used("DependencyParameters"),
    used("SlurmctldParameters"),
    {"SlurmctldPrimaryOnProg"},
    {"SlurmctldPrimaryOffProg"},
    {"SlurmctldAddr"},
    {"DebugFlags"},
    {"LogTimeFormat"},
    {"SlurmSchedLogFile"},
    {"SlurmSchedLogLevel"},
    {"SlurmctldSyslogDebug"},
    {"SlurmdSyslogDebug"},
    used("DisableRootJobs"),
    {"UsePAM"},
    {"GroupUpdateTime"},
    {"GroupUpdateForce"},
    {"EpilogMsgTime"},
    shown_only("BatchStartTimeout"),
    {"EioTimeout"},
    {"SrunPortRange"},
    {"VSizeFactor"},
    {"TrackWCKey"},
    {"AllowSpecResourcesUsage"},
    {"CommunicationParameters"},
    {"ReconfigFlags"},
    {"ScronParameters"},
    {"BcastParameters"},
    {"BcastExclude"},
    {"NamespaceType"},
    {"JobContainerType"},
    {"NodeFeaturesPlugins"},
    {"PrEpPlugins"},
    {"PrEpParameters"},
    {"PlugStackConfig"},
    {"PluginDir"},
    {"AcctGatherEnergyType"},
    {"AcctGatherFilesystemType"},
    {"AcctGatherInfinibandType"},
    {"AcctGatherInterconnectType"},
    {"AcctGatherProfileType"},
    {"AcctGatherNodeFreq"},
    {"AuthAltTypes"},
    {"AuthAltParameters"},
    {"BurstBufferType"},
    {"Certgen*"},
    {"Certmgr*"},
    {"TLS*"},
    {"CpuFreqDef"},
    {"CpuFreqGovernors"},
    {"FederationParameters"},
    {"GpuFreqDef"},
    {"HashPlugin"},
    {"HttpParserType"},
    {"UrlParserType"},
    {"Metrics*"},
    {"MCS*"},
    {"PrioritySiteFactor*"},
    {"ResvProlog"},
    {"ResvEpilog"},
    {"Serializer*"},
    {"DataParserParameters"},
    {"SlurmrestdParameters"},
    {"SlurmctldHttpAuthParameters"},
    {"SlurmdHttpAuthParameters"},
    {"SwitchType"},
    {"SwitchParameters"},
    {"X11Parameters"},
    {"DefRuntimePlugin"},
    {"PowerAction"},
    {"PowerParameters"},
    {"PowerPlugin"},
    {"RoutePlugin"},
    {"ControlMachine"},
    {"ControlAddr"},
    {"BackupController"},
    {"BackupAddr"},
    {"CacheGroups"},
    {"CheckpointType"},
    {"CoreSpecPlugin"},
    {"CryptoType"},
    {"DefaultStorageHost"},
    {"DefaultStorageLoc"},
    {"DefaultStoragePass"},
    {"DefaultStoragePort"},
    {"DefaultStorageType"},
    {"DefaultStorageUser"},
    {"ExtSensorsFreq"},
    {"ExtSensorsType"},
    {"FastSchedule"},
    {"GetEnvTimeout"},
    {"JobCheckpointDir"},
    {"JobCredentialPrivateKey"},
    {"JobCredentialPublicCertificate"},
    {"KeepAliveTime"},
    {"LaunchType"},
    {"MemLimitEnforce"},
    {"SallocDefaultCommand"},
    {"SchedulerPort"},
    {"SchedulerRootFilter"},
});

constexpr auto kNode = std::to_array<Key>({
    used("NodeName"),
    used("CPUs"),
    used("Procs"),
    used("Boards"),
    used("Sockets"),
    used("SocketsPerBoard"),
    used("CoresPerSocket"),
    used("ThreadsPerCore"),
    used("RealMemory"),
    used("TmpDisk"),
    used("MemSpecLimit"),
    used("Gres"),
    used("Feature"),
    used("Features"),
    used("Weight"),
    used("State"),
    used("Reason"),
    used("CoreSpecCount"),
    used("CpuSpecList"),
    plan("CpuBind", "tasks are bound to CPUs as without it"),
    used("RestrictedCoresPerGPU"),
    plan("Topology", "where a node is in the network is what topology.conf says"),
    used("NodeHostname"),
    used("NodeAddr"),
    {"BcastAddr"},
    used("Port"),
    {"Parameters"},
    used("SuspendTime"),
});

/// A plan does not know who submits.
constexpr std::string_view kAtSubmission = "who may use the partition is checked at submission";

constexpr auto kPartition = std::to_array<Key>({
    used("PartitionName"),
    used("Nodes"),
    used("Default"),
    used("State"),
    used("MaxTime"),
    used("DefaultTime"),
    used("MinNodes"),
    used("MaxNodes"),
    used("MaxCPUsPerNode"),
    used("MaxMemPerCPU"),
    used("MaxMemPerNode"),
    used("DefMemPerCPU"),
    used("DefMemPerGPU"),
    used("DefMemPerNode"),
    used("DefCpuPerGPU"),
    used("JobDefaults"),
    used("OverSubscribe"),
    used("Shared"),
    used("Exclusive"),
    used("LLN"),
    used("MaxCPUsPerSocket"),
    plan("SelectTypeParameters", "the cluster's SelectTypeParameters are used"),
    plan("CpuBind", "tasks are bound to CPUs as without it"),
    plan("ExclusiveUser", "nodes are planned as open to all users"),
    plan("ExclusiveTopo", "nodes are planned as open to all jobs"),
    plan("Topology", "the network of the cluster is used"),
    typed("RootOnly", kAtSubmission),
    typed("AllowGroups", kAtSubmission),
    typed("AllowAccounts", kAtSubmission),
    typed("DenyAccounts", kAtSubmission),
    typed("AllowQos", kAtSubmission),
    typed("DenyQos", kAtSubmission),
    typed("AllocNodes", kAtSubmission),
    typed("ReqResv", kAtSubmission),
    typed("QOS", "the limits of the partition's QOS are not applied"),
    used("PriorityJobFactor"),
    used("PriorityTier"),
    used("Priority"),
    used("PreemptMode"),
    used("GraceTime"),
    used("Hidden"),
    used("DisableRootJobs"),
    used("PowerDownOnIdle"),
    used("OverTimeLimit"),
    shown_only("TRESBillingWeights"),
    shown_only("Alternate"),
    used("SuspendTime"),
    used("SuspendTimeout"),
    used("ResumeTimeout"),
    used("GpuIdleTimeout"),
    used("MaxGpuIdleTimeout"),
});

constexpr auto kDownNode = std::to_array<Key>({used("DownNodes"), used("State"), used("Reason")});

constexpr auto kNodeSet = std::to_array<Key>({used("NodeSet"), used("Feature"), used("Nodes")});

constexpr auto kGres = std::to_array<Key>({
    used("NodeName"),
    used("Name"),
    used("Type"),
    used("File"),
    used("MultipleFiles"),
    used("Count"),
    used("Cores"),
    used("CPUs"),
    used("Links"),
    used("Link"),
    used("Flags"),
    used("AutoDetect"),
});

constexpr auto kCgroup = std::to_array<Key>({
    used("CgroupPlugin"),       used("ConstrainDevices"),    used("ConstrainCores"),
    used("ConstrainRAMSpace"),  used("ConstrainSwapSpace"),  used("AllowedRAMSpace"),
    used("AllowedSwapSpace"),   used("MaxRAMPercent"),       used("MaxSwapPercent"),
    used("MinRAMSpace"),        {"CgroupMountpoint"},        used("CgroupSlice"),
    {"CgroupJobIdPaths"},       {"SignalChildrenProcesses"}, {"EnableControllers"},
    {"EnableExtraControllers"}, {"IgnoreSystemd"},           {"IgnoreSystemdOnFailure"},
    {"SystemdTimeout"},         {"MemorySwappiness"},        {"CgroupAutomount"},
    {"CgroupReleaseAgentDir"},  {"AllowedKmemSpace"},        {"AllowedDevicesFile"},
    {"ConstrainKmemSpace"},     {"MaxKmemPercent"},          {"MinKmemSpace"},
    {"TaskAffinity"},
});

constexpr auto kTopology = std::to_array<Key>({
    used("SwitchName"),
    used("Switches"),
    used("Nodes"),
    used("LinkSpeed"),
    used("BlockName"),
    used("BlockSizes"),
});

/// True when a value of a key that is not planned for asks for nothing special.
bool harmless(const Key& key, std::string_view value) {
  if (key.name == "SlurmdParameters") return value.find("_as_socket") == std::string_view::npos;
  constexpr std::array<std::string_view, 7> kNothing = {"",      "all", "none", "no",
                                                        "false", "off", "0"};
  return std::ranges::any_of(
      kNothing, [&](std::string_view word) { return text::equal_ignoring_case(word, value); });
}

}  // namespace

std::span<const Key> slurm_keys() {
  return kSlurm;
}
std::span<const Key> node_keys() {
  return kNode;
}
std::span<const Key> partition_keys() {
  return kPartition;
}
std::span<const Key> down_node_keys() {
  return kDownNode;
}
std::span<const Key> node_set_keys() {
  return kNodeSet;
}
std::span<const Key> gres_keys() {
  return kGres;
}
std::span<const Key> cgroup_keys() {
  return kCgroup;
}
std::span<const Key> topology_keys() {
  return kTopology;
}

const Key* find_key(std::span<const Key> keys, std::string_view name) {
  const auto at = std::ranges::find_if(keys, [&](const Key& key) {
    if (!key.name.ends_with('*')) return text::equal_ignoring_case(key.name, name);
    const std::string_view stem = key.name.substr(0, key.name.size() - 1);
    return name.size() > stem.size() &&
           text::equal_ignoring_case(name.substr(0, stem.size()), stem);
  });
  return at == keys.end() ? nullptr : &*at;
}

const Key* used_key(std::span<const Key> keys, const Pair& pair, std::string_view what,
                    Complaints& complaints, std::span<const std::string_view> also) {
  const Key* key = find_key(keys, pair.key);
  if (key == nullptr) {
    std::vector<std::string_view> known(also.begin(), also.end());
    for (const Key& k : keys) {
      if (!k.name.ends_with('*')) known.emplace_back(k.name);
    }
    const std::string near = text::nearest(pair.key, known);
    complaints.error(pair.at,
                     fmt::format("{} is not a key of {}{}", shown(pair.key), what,
                                 near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    return nullptr;
  }
  if (key->use == Use::used) return key;
  if (key->use == Use::shown) {
    if (!harmless(*key, pair.value)) complaints.unused(pair.at, key->name);
    return key;
  }
  if (key->use == Use::used_not_planned && harmless(*key, pair.value)) return key;
  if (key->use == Use::not_used || harmless(*key, pair.value)) {
    complaints.unused(pair.at, key->name.ends_with('*') ? std::string_view(pair.key) : key->name);
    return nullptr;
  }
  complaints.warn_once(
      pair.at, key->name,
      fmt::format("{}={} is not planned for: {}", key->name, shown(pair.value), key->consequence));
  return key->use == Use::used_not_planned ? key : nullptr;
}

}  // namespace berth::conf
