// Rules about sizes: time, memory, nodes and CPUs against what the cluster has and allows.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lint/rule.h"
#include "text/duration.h"
#include "text/number.h"
#include "text/size.h"
#include "text/words.h"

namespace berth::lint {
namespace {

using cluster::Partition;
using place::Verdict;
using request::Opt;
using request::Request;

bool never(const Job& job) {
  return job.plan != nullptr && job.plan->verdict == Verdict::never;
}

void find_long_time(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    if (!job.request->time_limit) continue;
    const std::optional<std::uint32_t> asked = *job.request->time_limit;
    const auto partitions = facts.partitions(*job.request);
    const bool over = std::ranges::all_of(partitions, [&](const Partition* each) {
      return each->max_time_minutes && (!asked || *asked > *each->max_time_minutes);
    });
    if (partitions.empty() || !over) continue;
    const Partition& partition = *partitions.front();
    const bool refuses =
        facts.input.cluster->settings.enforce_part_limits != cluster::EnforcePartLimits::no;
    const std::string limit = text::format_minutes(partition.max_time_minutes);
    report.add(line_of(*job.request, Opt::time),
               fmt::format("--time is {}; partition {} allows {}. The job {}.",
                           text::format_minutes(asked), partition.name, limit,
                           refuses ? "is refused" : "is accepted and never starts"),
               facts.as_directive("--time=" + limit));
  }
}

void find_no_time(const Facts& facts, Report& report) {
  for (std::size_t i = 0; i < facts.jobs.size(); ++i) {
    const Job& job = facts.jobs[i];
    const std::string what = facts.jobs.size() > 1
                                 ? fmt::format("No --time for component {}: it", i)
                                 : "No --time: the job";
    const auto partitions = facts.partitions(*job.request);
    if (job.request->time_limit || partitions.empty() ||
        job.request->command != request::Command::sbatch) {
      continue;
    }
    const Partition& partition = *partitions.front();
    const auto given = partition.default_time_minutes ? partition.default_time_minutes
                                                      : partition.max_time_minutes;
    report.add(0,
               given ? fmt::format("{} is ended after {}, the default of partition {}.", what,
                                   text::format_minutes(given), partition.name)
                     : what +
                           " has no limit, so it cannot start early in a gap before "
                           "larger jobs, and a hung one runs on.",
               facts.as_directive("--time=04:00:00") + "      (your guess, and some more)");
  }
}

/// How often the memory that was asked for is needed on one node, as far as the options say.
std::uint64_t memory_factor(const Request& request) {
  switch (request.memory->per) {
    case request::MemoryPer::node:
      return 1;
    case request::MemoryPer::cpu:
      return std::uint64_t{request.cpus_per_task.value_or(1)} *
             (request.nodes ? request.ntasks_per_node.value_or(1) : 1);
    case request::MemoryPer::gpu:
      break;
  }
  const std::uint64_t gpus =
      std::max(gpus_in(request.gres_per_node), gpus_in(request.gres_per_task));
  return std::max<std::uint64_t>(1, gpus);
}

Opt memory_option(request::MemoryPer per) {
  return per == request::MemoryPer::node  ? Opt::mem
         : per == request::MemoryPer::cpu ? Opt::mem_per_cpu
                                          : Opt::mem_per_gpu;
}

/// The node with most memory that the job could use.
const cluster::Node* largest_memory(const Facts& facts, const Job& job) {
  const cluster::Node* most = nullptr;
  for (const cluster::NodeIndex index : facts.candidates(*job.request)) {
    const cluster::Node& node = facts.input.cluster->nodes[index];
    if (job.asks_for_gpus() && node.find_gres("gpu") == nullptr) continue;
    if (most == nullptr || node.usable_memory_mb() > most->usable_memory_mb()) most = &node;
  }
  return most;
}

void find_much_memory(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    if (!never(job) || facts.input.cluster == nullptr || !job.request->memory) continue;
    const std::uint64_t factor = memory_factor(*job.request);
    const std::uint64_t mb = job.request->memory->mb;
    const cluster::Node* node = largest_memory(facts, job);
    if (node == nullptr || factor == 0 || mb <= node->usable_memory_mb() / factor) continue;
    const Opt opt = memory_option(job.request->memory->per);
    const bool product = factor > 1 && mb <= UINT64_MAX / factor;
    report.add(line_of(*job.request, opt),
               fmt::format("{}{}; the largest node ({}) has {}. The job is refused.",
                           spelled(*job.request, opt),
                           product ? fmt::format(" is needed {} times on a node: {}", factor,
                                                 text::format_mb(mb * factor))
                                   : " is asked for on a node",
                           node->name, text::format_mb(node->usable_memory_mb())),
               facts.as_directive(fmt::format("--{}={}", long_name(opt),
                                              text::format_mb(node->usable_memory_mb() / factor))));
  }
}

void find_many_nodes(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const auto partitions = facts.partitions(*job.request);
    if (!job.request->nodes || partitions.empty()) continue;
    const auto allows = [](const Partition* each) {
      const auto size = static_cast<std::uint32_t>(each->nodes.size());
      return std::min(size, each->max_nodes.value_or(size));
    };
    const auto widest = std::ranges::max_element(partitions, {}, allows);
    const std::uint32_t most = allows(*widest);
    if (job.request->nodes->min <= most) continue;
    report.add(line_of(*job.request, Opt::nodes),
               fmt::format("{} nodes are asked for; partition {} {} {}. The job {}.",
                           job.request->nodes->min, (*widest)->name,
                           (*widest)->nodes.size() > most ? "allows" : "has", most,
                           never(job) ? "is refused" : "is accepted and never starts"),
               facts.as_directive(fmt::format("--nodes={}", most)));
  }
}

void find_many_cpus(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const Request& request = *job.request;
    if (!never(job) || facts.input.cluster == nullptr || request.overcommit) continue;
    const bool fixed = request.ntasks_per_node.has_value();
    const std::uint64_t tasks = fixed ? std::min<std::uint64_t>(*request.ntasks_per_node,
                                                                request.ntasks.value_or(UINT32_MAX))
                                      : 1;
    const std::uint64_t asked = std::max<std::uint64_t>(tasks * request.cpus_per_task.value_or(1),
                                                        request.mincpus.value_or(0));
    std::uint32_t most = 0;
    std::string name;
    for (const cluster::NodeIndex index : facts.candidates(request)) {
      const cluster::Node& node = facts.input.cluster->nodes[index];
      if (node.cpus() > most) {
        most = node.cpus();
        name = node.name;
      }
    }
    if (asked <= most) continue;
    const Opt opt = request.cpus_per_task ? Opt::cpus_per_task
                    : fixed               ? Opt::ntasks_per_node
                                          : Opt::mincpus;
    report.add(line_of(request, opt),
               fmt::format("{} CPUs are needed on one node{}; the largest ({}) has {}. The job is "
                           "refused.",
                           asked,
                           fixed && request.cpus_per_task
                               ? fmt::format(" ({} tasks × {})", tasks, *request.cpus_per_task)
                               : "",
                           name, most),
               fixed || tasks == 0
                   ? facts.as_directive(fmt::format(
                         "--ntasks-per-node={}",
                         std::max<std::uint64_t>(1, most / request.cpus_per_task.value_or(1))))
                   : facts.as_directive(fmt::format("--cpus-per-task={}", most)));
  }
}

void find_large_array(const Facts& facts, Report& report) {
  if (facts.input.cluster == nullptr) return;
  for (const Job& job : facts.jobs) {
    const std::uint32_t most = facts.input.cluster->settings.max_array_size;
    if (!job.request->array_size || *job.request->array_size <= most) continue;
    report.add(
        line_of(*job.request, Opt::array),
        fmt::format("--array={} has {} elements; this cluster takes indices below {}. The job "
                    "is refused.",
                    job.request->array.value_or(""), *job.request->array_size, most),
        facts.as_directive(fmt::format("--array=0-{}", most - 1)));
  }
}

void find_all_memory(const Facts& facts, Report& report) {
  if (facts.input.cluster == nullptr || !facts.input.cluster->settings.memory_is_consumed) return;
  for (const Job& job : facts.jobs) {
    if (!job.placed() || job.request->memory || job.plan->memory ||
        job.request->exclusive != request::Exclusive::no) {
      continue;
    }
    const auto& share = job.plan->allocation.nodes.front();
    const cluster::Node& node = facts.input.cluster->nodes[share.node];
    const cluster::Gres* gpu = node.find_gres("gpu");
    const std::size_t have = share.gpus().count();
    if (gpu == nullptr || have == 0 || have >= gpu->devices.size()) continue;
    if (share.memory_mb < node.usable_memory_mb()) continue;
    if (share.memory_mb <= 1) continue;  // its size is not configured: 1 MB stands for unknown
    const std::size_t left = gpu->devices.size() - have;
    report.add(0,
               fmt::format("No --mem: the job takes all {} of {}, so nobody can use its other {}.",
                           text::format_mb(share.memory_mb), node.name, count(left, "GPU")),
               facts.as_directive(fmt::format(
                   "--mem={}", text::format_mb(share.memory_mb / gpu->devices.size() * have))));
  }
}

void find_minutes_for_hours(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const request::Given* given = job.request->given.find(Opt::time);
    if (given == nullptr) continue;
    const auto parts = text::split(given->text, ':');
    if (parts.size() != 2 || parts[1] != "00" || !text::parse_number(parts[0], 100)) continue;
    report.add(line_of(*job.request, Opt::time),
               fmt::format("--time={} is {} minutes (minutes:seconds).", given->text, parts[0]),
               fmt::format("{} hours:   {}", parts[0],
                           facts.as_directive(fmt::format("--time={}:00", given->text))));
  }
}

void find_tiny_memory(const Facts& facts, Report& report) {
  constexpr std::uint64_t kTiny = 256;  // MiB; below it no interpreter with CUDA starts
  for (const Job& job : facts.jobs) {
    for (const Opt opt : {Opt::mem, Opt::mem_per_gpu, Opt::mem_per_cpu}) {
      const request::Given* given = job.request->given.find(opt);
      if (given == nullptr) continue;
      const auto value = text::parse_number(given->text, kTiny);
      const std::uint64_t limit = opt == Opt::mem_per_cpu ? 64 : kTiny;
      if (!value || *value == 0 || *value >= limit) continue;
      report.add(line_of(*job.request, opt),
                 fmt::format("{} is {} megabytes.", spelled(*job.request, opt), *value),
                 facts.as_directive(fmt::format("--{}={}G", long_name(opt), *value)));
    }
  }
}

/// What an administrator may change without the job: a closed partition, nodes that are down.
bool may_pass(std::string_view reason) {
  return reason == "PartitionDown" || reason == "PartitionInactive" ||
         reason.starts_with("ReqNodeNotAvail");
}

void find_pending(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    if (job.plan == nullptr || job.plan->verdict != Verdict::pending || report.error_found())
      continue;
    const std::string& reason = job.plan->pending_reason;
    const bool passes = may_pass(reason);
    if (passes && report.found("B609")) continue;
    report.add(
        passes ? Level::warning : Level::error, 0,
        fmt::format("The job is accepted and {}: {}. {}", passes ? "stays pending" : "never starts",
                    reason, job.plan->reasons.nearest_miss));
  }
}

void find_refused_job(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    if (!never(job) || report.error_found()) continue;
    const std::string& miss = job.plan->reasons.nearest_miss;
    report.add(0,
               fmt::format("It is refused: {}.{}{}", job.plan->error.what(),
                           miss.empty() ? "" : " ", miss),
               job.plan->error.hint);
  }
}

constexpr std::array<Entry, 11> kLimitsRules = {{
    {{"B604", Level::error, "The time limit is above that of the partition",
      "By default such a job is accepted and waits forever (PartitionTimeLimit); with "
      "EnforcePartLimits it is refused.",
      "#SBATCH --partition=short\n#SBATCH --time=1-0",
      "#SBATCH --partition=short\n#SBATCH "
      "--time=2"},
     find_long_time},
    {{"B605", Level::note, "No time limit",
      "A job with a limit can start earlier, in a gap before larger jobs; without one it gets the "
      "partition's default.",
      "", "#SBATCH --time=04:00:00"},
     find_no_time},
    {{"B606", Level::error, "More memory than any node has",
      "--mem counts on each node; --mem-per-cpu and --mem-per-gpu are multiplied first.",
      "#SBATCH --mem=10T", "#SBATCH --mem=0"},
     find_much_memory},
    {{"B607", Level::error, "More nodes than the partition has",
      "Such a job is accepted and waits forever (PartitionNodeLimit), or is refused where limits "
      "are "
      "enforced.",
      "#SBATCH --nodes=1000", ""},
     find_many_nodes},
    {{"B608", Level::error, "More CPUs on a node than any node has",
      "A task stays on one node, and --ntasks-per-node tasks must fit on one.",
      "#SBATCH --cpus-per-task=1000", ""},
     find_many_cpus},
    {{"B610", Level::error, "The array is larger than the cluster takes",
      "MaxArraySize in slurm.conf is one more than the largest index.", "#SBATCH --array=1-100000",
      "#SBATCH --array=1-1000"},
     find_large_array},
    {{"B611", Level::note, "The job takes all memory of a node and leaves GPUs that nobody can use",
      "Without --mem, and where the cluster has no default, a job gets all the memory of its "
      "nodes: "
      "no other job fits beside it.",
      "#SBATCH --gres=gpu:1", "#SBATCH --gres=gpu:1\n#SBATCH --mem=16G"},
     find_all_memory},
    {{"B612", Level::note, "--time=24:00 is 24 minutes",
      "Two numbers are minutes and seconds; hours need three, or days-hours.",
      "#SBATCH --time=24:00", "#SBATCH --time=24:00:00"},
     find_minutes_for_hours},
    {{"B613", Level::warning, "So little memory is hardly meant",
      "A number without a unit is in megabytes.", "#SBATCH --mem=64", "#SBATCH --mem=64G"},
     find_tiny_memory},
    {{"B698", Level::error, "The job stays pending",
      "Accepted, but a limit keeps it from ever starting, and no other rule had a better "
      "explanation. A warning where only nodes or a partition are down.",
      "", ""},
     find_pending},
    {{"B699", Level::error, "The request is refused",
      "No other rule had a better explanation: this is Slurm's message with the nearest miss.", "",
      ""},
     find_refused_job},
}};

}  // namespace

std::span<const Entry> limit_rules() {
  return kLimitsRules;
}

}  // namespace berth::lint
