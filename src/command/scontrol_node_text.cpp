// What scontrol_node_text.h promises. The order and the words of the lines are Slurm's: programs
// parse them.
#include "command/scontrol_node_text.h"
#include "command/node_clock_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "text/duration.h"
#include "text/size.h"

namespace berth::command::scontrol {
namespace {

constexpr std::uint32_t kUsualPort = 6818;

template <class Number>
std::string or_unlimited(bool set, Number value) {
  return set ? std::to_string(value) : "UNLIMITED";
}

std::string state_of(const wire::NodeInfo& node) {
  std::string state = node.state();
  for (const std::string& flag : node.flags()) state += "+" + flag;
  return state;
}

void add_memory(Record& out, const wire::NodeInfo& node) {
  out.line(fmt::format("RealMemory={} AllocMem={} FreeMem={} Sockets={} Boards=1", node.memory_mb(),
                       node.memory_allocated_mb(),
                       node.has_memory_free_mb() ? std::to_string(node.memory_free_mb()) : "N/A",
                       node.sockets()));
  if (node.restricted_cores_per_gpu() > 0) {
    out.line(fmt::format("RestrictedCoresPerGPU={}({})", node.restricted_cores_per_gpu(),
                         node.gpu_cores()));
  }
  if (node.reserved_cores() == 0 && node.reserved_memory_mb() == 0) return;
  std::string text;
  if (node.reserved_cores() != 0) text = fmt::format("CoreSpecCount={}", node.reserved_cores());
  if (node.reserved_memory_mb() != 0) {
    text += fmt::format("{}MemSpecLimit={}", text.empty() ? "" : " ", node.reserved_memory_mb());
  }
  out.line(text);
}

std::string memory_limit(bool per_cpu, std::uint64_t cpu, bool per_node, std::uint64_t node,
                         std::string_view which) {
  if (per_cpu) return fmt::format("{}MemPerCPU={}", which, cpu);
  if (per_node) return fmt::format("{}MemPerNode={}", which, node);
  return fmt::format("{}MemPerNode=UNLIMITED", which);
}

std::string_view or_all(std::string_view text) {
  return text.empty() ? "ALL" : text;
}

}  // namespace

std::string node_text(const wire::NodeInfo& node, const Style& style) {
  Record out(style);
  out.line(fmt::format("NodeName={} {}CoresPerSocket={} ", node.name(),
                       node.arch().empty() ? "" : fmt::format("Arch={} ", node.arch()),
                       node.cores_per_socket()));
  out.line(fmt::format("CPUAlloc={} CPUEfctv={} CPUTot={} CPULoad={}", node.cpus_allocated(),
                       node.cpus_effective(), node.cpus(),
                       node.started() == 0 ? "N/A" : fmt::format("{:.2f}", node.load())));
  out.line(fmt::format("AvailableFeatures={}", or_null(node.features())));
  out.line(fmt::format("ActiveFeatures={}", or_null(node.features())));
  out.line(fmt::format("Gres={}", or_null(node.gres())));
  if (style.detail) {
    out.line(
        fmt::format("GresDrain={}", node.gres_drained().empty() ? "N/A" : node.gres_drained()));
    out.line(fmt::format("GresUsed={}", or_null(node.gres_used())));
  }
  const bool own_port = node.port() != 0 && node.port() != kUsualPort;
  out.line(fmt::format("NodeAddr={} NodeHostName={}{}{}",
                       node.address().empty() ? node.name() : node.address(),
                       node.host().empty() ? node.name() : node.host(),
                       own_port ? fmt::format(" Port={}", node.port()) : "",
                       node.version().empty() ? "" : " Version=" + node.version()));
  // The blank at the end is Slurm's, and so is that of Partitions=.
  if (!node.os().empty()) out.line(fmt::format("OS={} ", node.os()));
  add_memory(out, node);
  out.line(fmt::format("State={} ThreadsPerCore={} TmpDisk={} Weight={} Owner=N/A MCS_label=N/A",
                       state_of(node), node.threads_per_core(), node.tmp_disk_mb(), node.weight()));
  if (node.partitions_size() > 0) {
    out.line(fmt::format("Partitions={} ", fmt::join(node.partitions(), ",")));
  }
  out.line(fmt::format("BootTime={} SlurmdStartTime={}", time_text(node.boot_time(), style, "None"),
                       time_text(node.started(), style, "None")));
  out.line(fmt::format("LastBusyTime={} ResumeAfterTime=None SuspendTime={}",
                       time_text(node.last_busy(), style),
                       node.has_suspend_seconds() ? std::to_string(node.suspend_seconds())
                                                  : std::string("INFINITE")));
  out.line(fmt::format("CfgTRES={}", node.cfg_tres()));
  out.line(fmt::format("AllocTRES={}", node.alloc_tres()));
  out.line("CurrentWatts=0 AveWatts=0");
  if (!node.reason().empty()) {
    out.line(node.reason_time() == 0
                 ? fmt::format("Reason={}", node.reason())
                 : fmt::format("Reason={} [{}@{}]", node.reason(), node.reason_user(),
                               time_text(node.reason_time(), style)));
  }
  if (node.gpus_out_size() > 0) {
    out.line(fmt::format("GPUsOut={}", fmt::join(node.gpus_out(), "; ")));
  }
  if (const std::string clock = clock_words(node); !clock.empty()) out.line("Clock=" + clock);
  out.maybe("Comment", node.comment());
  out.maybe("Extra", node.extra());
  out.maybe("ReservationName", node.reservation());
  return std::move(out).done();
}

std::string partition_text(const wire::PartitionInfo& p, const Style& style) {
  Record out(style);
  out.line(fmt::format("PartitionName={}", p.name()));
  out.line(fmt::format("AllowGroups={} AllowAccounts={} AllowQos={}", or_all(p.allow_groups()),
                       or_all(p.allow_accounts()), or_all(p.allow_qos())));
  out.line(fmt::format("AllocNodes=ALL Default={} QoS=N/A", yes_no(p.is_default())));
  out.line(fmt::format(
      "DefaultTime={} DisableRootJobs={} Exclusive={} GraceTime={} Hidden={}",
      p.has_default_time_minutes() ? text::format_minutes(p.default_time_minutes()) : "NONE",
      yes_no(p.disable_root()), p.exclusive().empty() ? "NO" : p.exclusive(), p.grace_seconds(),
      yes_no(p.hidden())));
  out.line(fmt::format(
      "MaxNodes={} MaxTime={} MinNodes={} LLN={} MaxCPUsPerNode={} MaxCPUsPerSocket={}",
      or_unlimited(p.has_max_nodes(), p.max_nodes()),
      text::format_minutes(p.has_max_time_minutes() ? std::optional(p.max_time_minutes())
                                                    : std::nullopt),
      p.min_nodes(), yes_no(p.least_loaded()),
      or_unlimited(p.has_max_cpus_per_node(), p.max_cpus_per_node()),
      or_unlimited(p.has_max_cpus_per_socket(), p.max_cpus_per_socket())));
  out.maybe("NodeSets", p.node_sets());
  out.line(fmt::format("Nodes={}", or_null(p.nodes())));
  out.line(
      fmt::format("PriorityJobFactor={} PriorityTier={} RootOnly={} ReqResv=NO OverSubscribe={}",
                  p.priority_job_factor(), p.priority_tier(), yes_no(p.root_only()),
                  p.over_subscribe().empty() ? "NO" : p.over_subscribe()));
  out.line(fmt::format("OverTimeLimit=NONE PreemptMode={}",
                       p.preempt_mode().empty() ? "OFF" : p.preempt_mode()));
  out.line(fmt::format("State={} TotalCPUs={} TotalNodes={} SelectTypeParameters=NONE", p.state(),
                       p.total_cpus(), p.total_nodes()));
  out.line(fmt::format("JobDefaults={}", or_null(p.job_defaults())));
  out.line(fmt::format("{} {}",
                       memory_limit(p.has_def_mem_per_cpu_mb(), p.def_mem_per_cpu_mb(),
                                    p.has_def_mem_per_node_mb(), p.def_mem_per_node_mb(), "Def"),
                       memory_limit(p.has_max_mem_per_cpu_mb(), p.max_mem_per_cpu_mb(),
                                    p.has_max_mem_per_node_mb(), p.max_mem_per_node_mb(), "Max")));
  out.line(fmt::format("TRES={}", or_null(p.tres())));
  if (p.has_gpu_idle_seconds() || p.has_max_gpu_idle_seconds()) {
    const auto words = [](bool given, std::uint32_t seconds) {
      return given ? seconds_text(seconds) : std::string("UNLIMITED");
    };
    out.line(fmt::format("GpuIdleTimeout={} MaxGpuIdleTimeout={}",
                         words(p.has_gpu_idle_seconds(), p.gpu_idle_seconds()),
                         words(p.has_max_gpu_idle_seconds(), p.max_gpu_idle_seconds())));
  }
  return std::move(out).done();
}

std::string config_text(const wire::ConfigReply& config, const Style& style) {
  std::string text =
      fmt::format("Configuration data as of {}\n", time_text(config.now(), style, "Unknown"));
  for (const wire::Variable& setting : config.settings()) {
    text += fmt::format("{:<23} = {}\n", setting.name(), printable(setting.value()));
  }
  return text;
}

}  // namespace berth::command::scontrol
