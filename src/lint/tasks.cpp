// Rules about the numbers of nodes, tasks and CPUs, and what they imply for each other.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lint/ranks.h"
#include "lint/rule.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::lint {
namespace {

using request::Opt;
using request::Request;

void find_tasks_against_product(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const Request& request = *job.request;
    if (!request.ntasks || !request.ntasks_per_node || !request.nodes) continue;
    if (request.nodes->min != request.nodes->max) continue;
    const std::uint64_t product = std::uint64_t{request.nodes->min} * *request.ntasks_per_node;
    if (*request.ntasks == product) continue;
    const bool never = job.plan != nullptr && job.plan->verdict == place::Verdict::never;
    if (*request.ntasks > product && never) {
      report.add(Level::error, line_of(request, Opt::ntasks),
                 fmt::format("--ntasks={} does not fit: {} × {} = {}. The job is refused.",
                             *request.ntasks, count(request.nodes->min, "node"),
                             *request.ntasks_per_node, product),
                 facts.as_directive(fmt::format("--ntasks={}", product)));
      continue;
    }
    report.add(
        Level::warning, line_of(request, Opt::ntasks),
        fmt::format("--ntasks={} counts, and --ntasks-per-node={} is only a limit: {} on {} "
                    "nodes, not {} × {} = {}.",
                    *request.ntasks, *request.ntasks_per_node, count(*request.ntasks, "task"),
                    request.nodes->min, request.nodes->min, *request.ntasks_per_node, product),
        fmt::format("{} (or leave --ntasks out)",
                    facts.as_directive(fmt::format("--ntasks={}", product))));
  }
}

void find_fewer_tasks_than_nodes(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const Request& request = *job.request;
    if (!request.ntasks || !request.nodes || *request.ntasks >= request.nodes->min) continue;
    report.add(
        line_of(request, Opt::ntasks),
        fmt::format("{} cannot use {} nodes: the job gets {}.", count(*request.ntasks, "task"),
                    request.nodes->min, count(*request.ntasks, "node")),
        facts.as_directive(fmt::format("--ntasks={}", request.nodes->min)));
  }
}

void find_uneven_tasks(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const Request& request = *job.request;
    if (!request.ntasks || !request.nodes || request.ntasks_per_node || request.distribution) {
      continue;
    }
    if (!job.placed() || job.nodes() < 2 || *request.ntasks % job.nodes() != 0) continue;
    const std::vector<std::uint32_t> slots = mpirun_slots(facts, job);
    if (slots.size() < 2 || std::ranges::min(slots) == std::ranges::max(slots)) continue;
    report.add(
        line_of(request, Opt::ntasks),
        fmt::format("{} on {} nodes are not shared out evenly: {} on {}, {} on {}.",
                    count(*request.ntasks, "task"), job.nodes(), slots.front(),
                    facts.node_name(job, 0), slots.back(), facts.node_name(job, slots.size() - 1)),
        facts.as_directive(fmt::format("--ntasks-per-node={}", *request.ntasks / job.nodes())));
  }
}

bool trains(const Facts& facts) {
  for (const StepSeen& step : facts.input.steps) {
    const std::vector<std::string> words =
        step.request != nullptr ? step.request->argv : launcher_words(step);
    const std::vector<std::string> program = bare_program(words);
    if (!program.empty() && (is_python(program.front()) || read_torch(program))) return true;
  }
  if (facts.input.read == nullptr) return false;
  return std::ranges::any_of(facts.input.read->commands, [](const script::Command& command) {
    return !command.words.empty() && is_python(command.words.front());
  });
}

void find_few_cpus(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const Request& request = *job.request;
    const bool stated = request.cpus_per_task || request.cpus_per_gpu || request.mincpus ||
                        request.exclusive != request::Exclusive::no;
    if (stated || !job.placed() || job.all_gpus() == 0 || !trains(facts)) continue;
    const auto& share = job.plan->allocation.nodes.front();
    const cluster::Node& node = facts.input.cluster->nodes[share.node];
    const cluster::Gres* gpu = node.find_gres("gpu");
    if (gpu == nullptr || share.gpus().empty() || share.cpus > share.gpus().count()) continue;
    const std::uint64_t fair = node.cpus() / std::max<std::uint64_t>(1, gpu->total());
    if (fair <= 1) continue;
    report.add(
        0,
        fmt::format("The job has {} for {} on {}, where {} CPUs would be a GPU's share. Data "
                    "loaders need some.",
                    count(share.cpus, "CPU"), count(share.gpus().count(), "GPU"), node.name, fair),
        facts.as_directive(fmt::format("--cpus-per-gpu={}", fair)));
  }
}

/// The number after OMP_NUM_THREADS= on a line, when it is written out.
std::optional<std::uint64_t> written_threads(std::string_view line) {
  constexpr std::string_view kName = "OMP_NUM_THREADS=";
  const std::size_t at = line.find(kName);
  if (at == std::string_view::npos || text::trim(line).starts_with('#')) return std::nullopt;
  const std::string_view value = line.substr(at + kName.size());
  return text::parse_number(value.substr(0, value.find_first_not_of("0123456789")), 65535);
}

void find_too_many_threads(const Facts& facts, Report& report) {
  if (facts.jobs.empty() || !facts.jobs.front().placed()) return;
  const Job& job = facts.jobs.front();
  const std::uint32_t tasks = std::max<std::uint32_t>(1, job.plan->allocation.nodes.front().tasks);
  const std::uint64_t cpus =
      std::max<std::uint64_t>(job.request->cpus_per_task.value_or(1),
                              job.plan->allocation.nodes.front().usable_cpus / tasks);
  std::string_view rest = facts.input.script;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const auto threads = written_threads(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!threads || *threads <= cpus) continue;
    report.add(number,
               fmt::format("OMP_NUM_THREADS={}, but a task has {}: {} threads take turns on each.",
                           *threads, count(cpus, "CPU"), (*threads + cpus - 1) / cpus),
               fmt::format("{}  and  export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK",
                           facts.as_directive(fmt::format("--cpus-per-task={}", *threads))));
  }
}

constexpr std::array<Entry, 5> kTasksRules = {{
    {{"B301", Level::error, "--ntasks differs from nodes × ntasks-per-node",
      "When --ntasks is given it decides, and --ntasks-per-node is only the most a node may get. "
      "The CPUs for the larger number are held all the same. More tasks than the nodes may take "
      "are refused (an error).",
      "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=4\n#SBATCH --ntasks=4",
      "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=4"},
     find_tasks_against_product},
    {{"B302", Level::warning, "Fewer tasks than nodes",
      "A node without a task is not given: the job gets as many nodes as it has tasks.",
      "#SBATCH --nodes=4\n#SBATCH --ntasks=2", "#SBATCH --nodes=4\n#SBATCH --ntasks=4"},
     find_fewer_tasks_than_nodes},
    {{"B303", Level::warning, "Tasks are not shared out evenly",
      "--nodes with --ntasks fills the first node and leaves at least one task for each of the "
      "others: 4 tasks on 2 nodes become 3 and 1.",
      "#SBATCH --nodes=2\n#SBATCH --ntasks=4", "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2"},
     find_uneven_tasks},
    {{"B304", Level::note, "One CPU for each GPU is little",
      "Without --cpus-per-task a task has one CPU. A training script with data loaders starves its "
      "GPU; the finding names the node's CPUs divided by its GPUs.",
      "#SBATCH --gres=gpu:1\nsrun python train.py",
      "#SBATCH --gres=gpu:1\n#SBATCH --cpus-per-task=4\nsrun python train.py"},
     find_few_cpus},
    {{"B305", Level::warning, "More threads than CPUs",
      "OMP_NUM_THREADS is larger than the CPUs of a task, so the threads take turns.",
      "#SBATCH --cpus-per-task=4\nexport OMP_NUM_THREADS=16",
      "#SBATCH --cpus-per-task=4\nexport OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK"},
     find_too_many_threads},
}};

}  // namespace

std::span<const Entry> task_rules() {
  return kTasksRules;
}

}  // namespace berth::lint
