// Rules about what a task sees: bindings that hide GPUs, fences between them, numbers by hand.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "lint/ranks.h"
#include "lint/rule.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::lint {
namespace {

using request::GpuBindKind;
using request::Opt;

struct Seen {
  Bits gpus;  // that at least one task sees
  std::size_t tasks = 0;
};

std::map<cluster::NodeIndex, Seen> seen_by_node(const place::StepPlan& plan) {
  std::map<cluster::NodeIndex, Seen> seen;
  for (const place::TaskPlan& task : plan.tasks) {
    seen[task.node].gpus |= task.gpus;
    ++seen[task.node].tasks;
  }
  return seen;
}

void find_unseen_gpus(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    if (!is_srun(step) || step.plan == nullptr || step.request == nullptr) continue;
    const auto& bind = step.plan->gpu_bind;
    const bool binds =
        bind && (bind->kind == GpuBindKind::per_task || bind->kind == GpuBindKind::single);
    if (!binds) continue;
    const auto seen = seen_by_node(*step.plan);
    for (const place::StepNode& node : step.plan->nodes) {
      const auto at = seen.find(node.share.node);
      if (at == seen.end()) continue;
      const std::size_t tasks = at->second.tasks;
      const Bits unseen = node.share.gpus() - at->second.gpus;
      if (unseen.empty()) continue;
      const std::size_t held = node.share.gpus().count();
      report.add(line_of(step),
                 fmt::format("The step holds {} on {} but its {} bound to {} ({}{}): {} seen "
                             "by nobody.",
                             count(held, "GPU"), facts.node_name(node.share.node),
                             tasks == 1 ? "task is" : fmt::format("{} tasks are", tasks),
                             held - unseen.count(), bind->text,
                             step.request->given.from_environment(Opt::gpu_bind) ||
                                     step.request->given.from_environment(Opt::tres_bind)
                                 ? ", inherited from the job"
                                 : "",
                             unseen.count() == 1 ? fmt::format("GPU {} is", unseen.list())
                                                 : fmt::format("GPUs {} are", unseen.list())),
                 tasks > 1 && held % tasks == 0
                     ? fmt::format("srun --gpu-bind=per_task:{} …", held / tasks)
                     : "srun --gpu-bind=none …");
      break;
    }
  }
}

void find_no_peer_access(const Facts& facts, Report& report) {
  if (facts.input.cluster == nullptr || !facts.input.cluster->settings.constrain_devices) return;
  for (const StepSeen& step : facts.input.steps) {
    if (!is_srun(step) || step.plan == nullptr || step.request == nullptr) continue;
    const auto& bind = step.plan->gpu_bind;
    if (!bind || bind->kind == GpuBindKind::none) continue;
    if (step.plan->allow_task_sharing) continue;
    if (ignores_gpus(bare_program(step.request->argv))) continue;
    const auto ranks = ranks_of_step(facts, *step.plan);
    const auto several = std::ranges::find_if(
        ranks, [](const auto& here) { return here.ranks.size() > 1 && !here.gpus.empty(); });
    if (several == ranks.end()) continue;
    report.add(line_of(step),
               fmt::format("Each task may open its own GPU only, so NCCL and CUDA-aware MPI cannot "
                           "copy from GPU to GPU between ranks {} on {}.",
                           listed(several->ranks), several->node),
               "srun --gres-flags=allow-task-sharing …");
  }
}

/// The digits after CUDA_VISIBLE_DEVICES= when they are written out; {} for anything else.
std::vector<std::uint32_t> written_devices(std::string_view line) {
  constexpr std::string_view kName = "CUDA_VISIBLE_DEVICES=";
  const std::size_t at = line.find(kName);
  if (at == std::string_view::npos || text::trim(line).starts_with('#')) return {};
  std::string_view value = line.substr(at + kName.size());
  if (value.starts_with('"') || value.starts_with('\'')) value.remove_prefix(1);
  value = value.substr(0, value.find_first_not_of("0123456789,"));
  std::vector<std::uint32_t> devices;
  for (const std::string_view each : text::split(value, ',')) {
    if (const auto number = text::parse_number(each, 4095)) {
      devices.push_back(static_cast<std::uint32_t>(*number));
    }
  }
  return devices;
}

/// Whether these numbers are right wherever the job lands.
bool always_right(const Facts& facts, const Job& job, const std::vector<std::uint32_t>& devices) {
  const std::size_t have = job.gpus_on(0);
  const bool in_range = std::ranges::all_of(devices, [&](std::uint32_t id) { return id < have; });
  if (facts.input.cluster->settings.constrain_devices) return in_range;
  const auto& share = job.plan->allocation.nodes.front();
  const cluster::Gres* gpu = facts.input.cluster->nodes[share.node].find_gres("gpu");
  return in_range && gpu != nullptr && gpu->devices.size() == have;
}

void find_written_devices(const Facts& facts, Report& report) {
  if (facts.jobs.empty() || !facts.jobs.front().placed() || facts.input.cluster == nullptr) return;
  const Job& job = facts.jobs.front();
  std::string_view rest = facts.input.script;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const auto devices = written_devices(line);
    if (devices.empty() || always_right(facts, job, devices)) continue;
    const Bits have = job.plan->allocation.nodes.front().gpus();
    std::string text =
        fmt::format("CUDA_VISIBLE_DEVICES={} is written by hand. ", fmt::join(devices, ","));
    text += have.empty() ? "The job asks for no GPU, so these belong to others."
                         : fmt::format(
                               "The job may get any {} of its node (here GPU {}), so these "
                               "may belong to others.",
                               count(have.count(), "GPU"), have.list());
    report.add(number, std::move(text),
               have.empty()
                   ? facts.as_directive(fmt::format("--gres=gpu:{}", devices.size())) +
                         "      (and leave the variable out)"
                   : "leave it out: it is already set to the GPUs of the job\n"
                     "one for each of several programs:   srun --exact -n1 --gres=gpu:1 … &");
  }
}

void find_exclusive_without_gpus(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    if (job.request->exclusive != request::Exclusive::node || job.asks_for_gpus()) continue;
    if (!job.placed() || job.gpus_on(0) == 0 || job.request->gres_none) continue;
    const auto nodes = facts.candidates(*job.request);
    const bool only_gpu_nodes = std::ranges::all_of(nodes, [&](cluster::NodeIndex node) {
      return facts.input.cluster->nodes[node].find_gres("gpu") != nullptr;
    });
    report.add(only_gpu_nodes ? Level::warning : Level::note, line_of(*job.request, Opt::exclusive),
               fmt::format("--exclusive takes all {} GPUs of {}, but no option asks for them: the "
                           "tasks of srun see none.",
                           job.gpus_on(0), facts.node_name(job, 0)),
               facts.as_directive(fmt::format("--gres=gpu:{}", job.gpus_on(0))));
  }
}

void find_fewer_tasks_than_meant(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    const Job* job = facts.job_of(step);
    if (step.command != nullptr || step.plan == nullptr || job == nullptr) continue;
    if (gpus_in(job->request->gres_per_task) == 0 || job->request->ntasks) continue;
    const auto meant = job->tasks();
    if (!meant || step.plan->ntasks == 0 || step.plan->ntasks >= *meant) continue;
    report.add(0,
               fmt::format("The GPUs asked for are enough for {}, but srun runs {}.",
                           count(*meant, "task"), step.plan->ntasks),
               fmt::format("srun -n {} …", *meant));
  }
}

constexpr std::array<Entry, 5> kGpuBindingRules = {{
    {{"B109", Level::warning, "A step holds GPUs that none of its tasks sees",
      "A binding (often the one that --gpus-per-task of the job implies, which steps inherit) "
      "shows each task fewer GPUs than the step takes. The rest is held and unused.",
      "#SBATCH --ntasks=2\n#SBATCH --gpus-per-task=1\nsrun -n1 --gres=gpu:2 python train.py",
      "#SBATCH --ntasks=2\n#SBATCH --gpus-per-task=1\n"
      "srun -n1 --gres=gpu:2 --gpu-bind=none python train.py"},
     find_unseen_gpus},
    {{"B110", Level::note, "GPUs of different tasks cannot reach each other",
      "Where the cluster fences devices (ConstrainDevices=yes), a task with GPUs of its own cannot "
      "open its neighbour's, and NCCL falls back from NVLink to copies through memory. "
      "allow-task-sharing fences the step instead of the task; gpu_fence=step in SlurmdParameters "
      "does so for all steps.",
      "srun --gpus-per-task=1 python train.py",
      "srun --gpus-per-task=1 --gres-flags=allow-task-sharing python train.py"},
     find_no_peer_access},
    {{"B111", Level::warning, "CUDA_VISIBLE_DEVICES is written by hand",
      "The variable is set to the GPUs the job was given. Numbers written into a script are only "
      "right when the job owns the whole node, or when the cluster renumbers the GPUs of a job "
      "from "
      "0.",
      "#SBATCH --gres=gpu:1\nexport CUDA_VISIBLE_DEVICES=0", "#SBATCH --gres=gpu:1"},
     find_written_devices},
    {{"B112", Level::warning, "--exclusive alone shows no GPUs",
      "A whole node includes its GPUs, but steps get only what was asked for by name.",
      "#SBATCH --exclusive\nsrun python train.py",
      "#SBATCH --exclusive\n#SBATCH --gres=gpu:4\nsrun python train.py"},
     find_exclusive_without_gpus},
    {{"B115", Level::note, "srun runs fewer tasks than its GPUs are for",
      "srun does not derive its number of tasks from --gpus and --gpus-per-task; without -n it "
      "runs "
      "one task a node.",
      "srun --gpus=4 --gpus-per-task=1 python train.py",
      "srun -n 4 --gpus-per-task=1 python train.py"},
     find_fewer_tasks_than_meant},
}};

}  // namespace

std::span<const Entry> gpu_binding_rules() {
  return kGpuBindingRules;
}

}  // namespace berth::lint
