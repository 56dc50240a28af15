// Rules about how many GPUs there are for how many tasks: sharing by accident, totals read wrongly.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "lint/gpu_hint.h"
#include "lint/ranks.h"
#include "lint/rule.h"

namespace berth::lint {
namespace {

using request::Opt;
using request::Request;
using script::Launcher;

/// The GPU option that decides for a step: its own, else the job's.
struct GpuSource {
  std::string option;  // "--gres=gpu:4"
  int line = 0;
  Opt opt = Opt::gres;
};

std::optional<GpuSource> gpu_source(const Facts& facts, const StepSeen& step) {
  if (step.request != nullptr && step.command != nullptr) {
    const auto own = gpu_option(*step.request);
    if (own && step.request->given.on_command_line(*own)) {
      return GpuSource{spelled(*step.request, *own), line_of(step), *own};
    }
  }
  const Job* job = facts.job_of(step);
  if (job == nullptr) return std::nullopt;
  const auto opt = gpu_option(*job->request);
  if (!opt) return std::nullopt;
  const int line = line_of(*job->request, *opt);
  return GpuSource{spelled(*job->request, *opt), line != 0 ? line : line_of(step), *opt};
}

/// Ranks of a step that nothing binds and that share a node; {} when all is well.
std::vector<RanksOnNode> unbound_ranks(const Facts& facts, const StepSeen& step) {
  std::vector<RanksOnNode> ranks;
  if (bind_of(step)) return {};
  if (is_srun(step) && step.plan != nullptr && step.request != nullptr) {
    if (step.plan->gpu_bind) return {};
    if (read_torch(step.request->argv) || ignores_gpus(bare_program(step.request->argv))) return {};
    ranks = ranks_of_step(facts, *step.plan);
  } else if (is_launcher(step, Launcher::mpirun) && facts.job_of(step) != nullptr) {
    // A wrapper that reads the local rank chooses its GPU itself.
    if (step.command->text.find("LOCAL_RANK") != std::string::npos) return {};
    ranks = ranks_of_mpirun(facts, *facts.job_of(step), *step.command);
  }
  std::erase_if(ranks, [](const RanksOnNode& here) {
    return here.ranks.size() < 2 || here.gpus.empty() || !here.same;
  });
  return ranks;
}

/// As many ranks and as many GPUs on each of these nodes.
bool all_alike(const std::vector<RanksOnNode>& nodes) {
  return std::ranges::all_of(nodes, [&](const RanksOnNode& here) {
    return here.ranks.size() == nodes.front().ranks.size() &&
           here.gpus.count() == nodes.front().gpus.count();
  });
}

/// "ranks 0 and 1 (and 2 and 3) will both use GPU 0".
std::string who_collides(const Facts& facts, const std::vector<RanksOnNode>& nodes) {
  const RanksOnNode& first = nodes.front();
  std::string others;
  if (nodes.size() == 2) {
    others = fmt::format(" (and {})", listed(nodes[1].ranks));
  } else if (nodes.size() > 2) {
    others = fmt::format(" (and so on, on {} more nodes)", nodes.size() - 1);
  }
  const bool renumbered = facts.input.cluster->settings.constrain_devices;
  return fmt::format("ranks {}{} will {} use GPU {}", listed(first.ranks), others,
                     first.ranks.size() == 2 && all_alike(nodes) ? "both" : "all",
                     renumbered ? 0 : first.gpus.next());
}

/// The program of an mpirun line, to be shown in a hint.
std::string program_of(const StepSeen& step) {
  const std::vector<std::string> words = launcher_words(step);
  const std::vector<std::string> program = mpirun_program(words);
  const bool quoted = std::ranges::any_of(
      program, [](const std::string& word) { return word.find(' ') != std::string::npos; });
  if (program.empty() || quoted) return "./app";
  return shortened(fmt::format("{}", fmt::join(program, " ")), 40);
}

/// The mpirun line with berth bind before the program: each rank takes its GPUs.
std::string mpirun_binding(const StepSeen& step) {
  const std::vector<std::string> words = launcher_words(step);
  const std::size_t options = words.size() - mpirun_program(words).size();
  std::string start = "mpirun …";
  if (options < words.size()) {
    start = shortened(fmt::format("{}", fmt::join(std::span(words).first(options), " ")));
  }
  return fmt::format("{} berth bind {}", start, program_of(step));
}

/// "(instead of --gres=gpu:4; 2 GPUs instead of 4)".
std::string change_of(const Job& job, const GpuSource& source, std::size_t gpus) {
  const std::size_t now = job.all_gpus();
  return gpus == now
             ? fmt::format("(instead of {}; {} as before)", source.option, count(gpus, "GPU"))
             : fmt::format("(instead of {}; {} instead of {})", source.option, count(gpus, "GPU"),
                           now);
}

/// The line that gives each task so many GPUs of its own, tried out; "" when there is none.
std::string own_gpus(const Facts& facts, const Job& job, const StepSeen& step,
                     const GpuSource& source, std::uint64_t per_task) {
  const bool own = step.command != nullptr && step.request != nullptr &&
                   source.line == line_of(step) && step.request->given.on_command_line(source.opt);
  const std::string option = fmt::format("--gpus-per-task={}{}", gpu_type_prefix(job), per_task);
  const std::string on_srun = "srun " + option;
  if (own) {
    return step_takes_per_task(facts, job, step, per_task, true)
               ? fmt::format("{}      (instead of {})", on_srun, source.option)
               : "";
  }
  // A directive counts for all tasks of the job, so it helps a step that runs them all.
  const auto held = gpus_with_per_task(facts, job, per_task);
  const bool all_tasks = !is_srun(step) || job.tasks() == step.plan->ntasks;
  if (held && all_tasks) {
    return fmt::format("{}      {}", facts.as_directive(option), change_of(job, source, *held));
  }
  return step_takes_per_task(facts, job, step, per_task, false) ? on_srun + " …" : "";
}

std::string sharing_hint(const Facts& facts, const Job& job, const StepSeen& step,
                         const GpuSource& source, const std::vector<RanksOnNode>& nodes) {
  const std::size_t tasks = nodes.front().ranks.size();
  const std::size_t gpus = nodes.front().gpus.count();
  const std::string one = own_gpus(facts, job, step, source, 1);
  std::string hint;
  if (!is_srun(step)) {
    if (!one.empty()) {
      hint = fmt::format("one GPU for each rank:   {},  and  srun --mpi=pmix {}\n", one,
                         program_of(step));
    }
    return hint + "keep mpirun, and divide the GPUs:   " + mpirun_binding(step);
  }
  std::vector<std::string> lines;
  if (!one.empty()) lines.push_back("one GPU for each task:   " + one);
  std::size_t share = 1;  // tasks for a GPU, on the node with most
  for (const RanksOnNode& here : nodes) {
    share = std::max(share, (here.ranks.size() + here.gpus.count() - 1) / here.gpus.count());
  }
  if (share > 1) {
    lines.push_back(fmt::format("{} for each GPU, on purpose:   srun --gpu-bind=single:{} …",
                                count(share, "task"), share));
  } else if (one.empty()) {
    lines.emplace_back("one GPU for each task:   srun --gpu-bind=single:1 …");
  } else if (all_alike(nodes) && gpus % tasks == 0) {
    const std::string all = own_gpus(facts, job, step, source, gpus / tasks);
    if (!all.empty()) lines.push_back("all of them:   " + all);
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

/// "; 3 GPUs on each node would stay idle": what follows from the numbers of ranks and GPUs.
std::string what_follows(const std::vector<RanksOnNode>& nodes, std::string_view noun) {
  const std::size_t tasks = nodes.front().ranks.size();
  const std::size_t gpus = nodes.front().gpus.count();
  if (!all_alike(nodes)) {
    std::string out;
    for (std::size_t i = 0; i < std::min<std::size_t>(nodes.size(), 4); ++i) {
      out += fmt::format("{}{} for {} on {}", i == 0 ? "; there are " : ", ",
                         count(nodes[i].ranks.size(), noun), count(nodes[i].gpus.count(), "GPU"),
                         nodes[i].node);
    }
    return out + (nodes.size() > 4 ? ", …" : "");
  }
  if (gpus == 1) return {};
  const char* where = nodes.size() > 1 ? " on each node" : "";
  if (tasks < gpus) {
    return fmt::format("; {}{} would stay idle", count(gpus - 1, "GPU"), where);
  }
  return fmt::format("; there are {} {}s for {} GPUs{}", tasks, noun, gpus,
                     nodes.size() > 1 ? where : fmt::format(" on {}", nodes.front().node));
}

void find_shared(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    auto nodes = unbound_ranks(facts, step);
    std::erase_if(nodes, [](const auto& n) { return n.ranks.size() == n.gpus.count(); });
    const auto source = gpu_source(facts, step);
    const Job* job = facts.job_of(step);
    if (nodes.empty() || !source || facts.input.cluster == nullptr || job == nullptr) continue;
    const std::size_t gpus = nodes.front().gpus.count();
    const bool even =
        std::ranges::all_of(nodes, [&](const auto& n) { return n.gpus.count() == gpus; });
    const bool per_node = source->opt == Opt::gres || source->opt == Opt::gpus_per_node;
    const std::string_view noun = is_srun(step) ? "task" : "rank";
    report.add(source->line,
               fmt::format("{} {}every {} sees {}: {}{}.", source->option,
                           per_node ? "is per node, and " : "binds nothing: ", noun,
                           !even       ? "all GPUs of its node"
                           : gpus == 1 ? "the one GPU there"
                           : gpus == 2 ? "both GPUs"
                                       : fmt::format("all {} GPUs", gpus),
                           who_collides(facts, nodes), what_follows(nodes, noun)),
               sharing_hint(facts, *job, step, *source, nodes));
  }
}

/// --gpu-bind=closest: tasks near the same GPUs see them in the same order.
void find_same_closest(const Facts& facts, const StepSeen& step, Report& report) {
  std::map<std::pair<cluster::NodeIndex, std::size_t>, std::vector<std::uint32_t>> by_first;
  for (const place::TaskPlan& task : step.plan->tasks) {
    if (!task.gpus.empty()) by_first[{task.node, task.gpus.next()}].push_back(task.rank);
  }
  for (const auto& [where, ranks] : by_first) {
    if (ranks.size() < 2) continue;
    return report.add(line_of(step),
                      fmt::format("--gpu-bind=closest shows ranks {} on {} the same GPUs, with "
                                  "GPU {} first. The program must choose, or they share it.",
                                  listed(ranks), facts.node_name(where.first), where.second),
                      "when it does not:   srun --gpu-bind=single:1 …");
  }
}

void find_choice_left_to_program(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    const bool closest = is_srun(step) && step.plan != nullptr && step.plan->gpu_bind &&
                         step.plan->gpu_bind->kind == request::GpuBindKind::closest;
    if (closest) {
      find_same_closest(facts, step, report);
      continue;
    }
    auto nodes = unbound_ranks(facts, step);
    std::erase_if(nodes, [](const auto& n) {
      return n.ranks.size() != n.gpus.count() || n.gpus.count() < 2;
    });
    if (nodes.empty()) continue;
    const bool srun = is_srun(step);
    report.add(
        line_of(step),
        fmt::format("Each of the {} {} on a node sees all {} GPUs. The program must choose "
                    "the one with number {} itself, or all use the first.",
                    nodes.front().ranks.size(), srun ? "tasks" : "ranks",
                    nodes.front().gpus.count(),
                    srun ? "SLURM_LOCALID" : "OMPI_COMM_WORLD_LOCAL_RANK"),
        "when it does not:   " + (srun ? "srun --gpu-bind=single:1 …" : mpirun_binding(step)));
  }
}

/// berth bind divides all GPUs of a node, unless it is told how many a rank takes.
bool bind_takes_all(const Facts& facts, const Job& job, const StepSeen& step) {
  const auto bind = bind_of(step);
  if (!bind || !*bind || !is_launcher(step, Launcher::mpirun)) return false;
  if (!(*bind)->gpus_per_rank) return true;
  const auto nodes = ranks_of_mpirun(facts, job, *step.command);
  return std::ranges::all_of(nodes, [&](const RanksOnNode& here) {
    return here.ranks.size() * *(*bind)->gpus_per_rank == here.held.count();
  });
}

/// A binding by which the tasks see every GPU of their nodes: then none is asked for in vain.
bool bound_to_all(const StepSeen& step) {
  if (!is_srun(step) || step.plan == nullptr || !step.plan->gpu_bind) return false;
  std::size_t held = 0;
  for (const place::StepNode& node : step.plan->nodes) held += node.share.gpus().count();
  std::map<cluster::NodeIndex, Bits> seen;
  for (const place::TaskPlan& task : step.plan->tasks) seen[task.node] |= task.gpus;
  std::size_t used = 0;
  for (const auto& [node, gpus] : seen) used += gpus.count();
  return held > 0 && used == held;
}

void find_read_as_total(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const std::uint64_t each = gpus_in(job.request->gres_per_node);
    const std::size_t nodes = job.nodes();
    if (nodes < 2 || each < 2 || !job.request->gres_per_job.empty()) continue;
    std::uint64_t processes = 0;
    for (const StepSeen& step : facts.input.steps) {
      if (facts.job_of(step) != &job) continue;
      const bool all = bound_to_all(step) || bind_takes_all(facts, job, step);
      processes = std::max(processes, all ? UINT64_MAX : processes_of(facts, step).value_or(0));
    }
    // One process for each node may well drive all its GPUs; more than that, and no more than one
    // node's GPUs, is the mark of a count that was meant for the whole job.
    if (processes <= nodes || processes > each) continue;
    const Opt opt = job.request->given.has(Opt::gres) ? Opt::gres : Opt::gpus_per_node;
    report.add(line_of(*job.request, opt),
               fmt::format("{} counts on each node: {} nodes × {} = {} GPUs, for {}.",
                           spelled(*job.request, opt), nodes, each, nodes * each,
                           count(processes, "process")),
               fmt::format("{} GPUs in all:   {}", processes,
                           processes % nodes == 0
                               ? facts.as_directive(fmt::format("--{}={}{}", long_name(opt),
                                                                opt == Opt::gres ? "gpu:" : "",
                                                                processes / nodes))
                               : facts.as_directive(fmt::format("--gpus={}", processes))));
  }
}

void find_per_task_under_mpirun(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    const Job* job = facts.job_of(step);
    if (!is_launcher(step, Launcher::mpirun) || job == nullptr || bind_of(step)) continue;
    const std::uint64_t per_task = gpus_in(job->request->gres_per_task);
    const bool other =
        gpus_in(job->request->gres_per_node) + gpus_in(job->request->gres_per_job) > 0;
    if (per_task == 0) continue;
    const Opt opt =
        job->request->given.has(Opt::gpus_per_task) ? Opt::gpus_per_task : Opt::tres_per_task;
    const bool fenced =
        facts.input.cluster != nullptr && facts.input.cluster->settings.constrain_devices;
    const std::string what =
        other ? "every rank sees all GPUs of its node"
              : fmt::format(
                    "its ranks get no CUDA_VISIBLE_DEVICES at all, and all ranks of a node "
                    "use the first GPU {}",
                    fenced ? "they find" : "of the machine, whoever it belongs to");
    report.add(line_of(step),
               fmt::format("mpirun does not know {}: {}.", spelled(*job->request, opt), what),
               fmt::format("let srun start the ranks:   srun --mpi=pmix {}\n"
                           "or keep mpirun:   {}",
                           program_of(step), mpirun_binding(step)));
  }
}

void find_uneven_split(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const std::uint64_t asked = gpus_in(job.request->gres_per_job);
    const bool only_total = gpus_in(job.request->gres_per_node) == 0 &&
                            gpus_in(job.request->gres_per_task) == 0 &&
                            !job.request->ntasks_per_gpu;
    if (asked == 0 || !only_total || !job.placed() || job.nodes() < 2) continue;
    std::vector<std::uint32_t> counts;
    for (std::size_t i = 0; i < job.nodes(); ++i) {
      counts.push_back(static_cast<std::uint32_t>(job.gpus_on(i)));
    }
    const auto [least, most] = std::ranges::minmax(counts);
    if (least == most || asked % job.nodes() != 0) continue;
    std::string sum;
    for (std::size_t i = 0; i < std::min<std::size_t>(counts.size(), 8); ++i) {
      sum += fmt::format("{}{} on {}", i == 0 ? "" : ", ", counts[i], facts.node_name(job, i));
    }
    if (counts.size() > 8) sum += ", …";
    report.add(line_of(*job.request, Opt::gpus),
               fmt::format("{} over {} nodes is not shared out evenly: {}.",
                           spelled(*job.request, Opt::gpus), job.nodes(), sum),
               facts.as_directive(fmt::format("--gpus-per-node={}", asked / job.nodes())) +
                   "      (instead of --gpus)");
  }
}

void find_total_read_as_per_node(const Facts& facts, Report& report) {
  for (const Job& job : facts.jobs) {
    const std::uint64_t asked = gpus_in(job.request->gres_per_job);
    const bool only_total =
        gpus_in(job.request->gres_per_node) == 0 && gpus_in(job.request->gres_per_task) == 0;
    if (asked < 2 || !only_total || job.nodes() < 2) continue;
    if (job.request->ntasks_per_node != asked) continue;
    report.add(
        line_of(*job.request, Opt::gpus),
        fmt::format("{} is the total of the job: {} nodes share {} GPUs, but {} tasks run on "
                    "each node.",
                    spelled(*job.request, Opt::gpus), job.nodes(), asked, asked),
        facts.as_directive(fmt::format("--gpus-per-node={}", asked)) +
            fmt::format("      ({} GPUs in all)", asked * job.nodes()));
  }
}

constexpr std::array<Entry, 6> kGpuSharingRules = {{
    {{"B104", Level::warning, "Tasks of a node see the same GPUs and will use the same one",
      "--gres, --gpus and --gpus-per-node give the GPUs to the job. They bind nothing: every task "
      "of a node sees all of them, in the same order, and a program that takes \"the first GPU\" "
      "takes the same one in every task. Give each task its own GPUs with --gpus-per-task, or bind "
      "with --gpu-bind. A step that says --gpu-bind=none is left alone.",
      "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n#SBATCH --gres=gpu:4\nsrun python train.py",
      "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n#SBATCH --gpus-per-task=1\nsrun python "
      "train.py"},
     find_shared},
    {{"B105", Level::warning, "--gres counts on each node, not for the whole job",
      "A job of N nodes with --gres=gpu:C holds N × C GPUs. When no more processes are started "
      "than "
      "one node has GPUs, the count was probably meant as a total.",
      "#SBATCH --nodes=2\n#SBATCH --gres=gpu:4\nsrun -n 4 python train.py",
      "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n#SBATCH --gres=gpu:2\nsrun python train.py"},
     find_read_as_total},
    {{"B106", Level::note, "The program must choose its GPU",
      "As many tasks on a node as GPUs, and nothing bound: each task sees all of them. That is "
      "what "
      "JAX and most PyTorch scripts expect (device number = SLURM_LOCALID); a program that does "
      "not "
      "choose uses the first GPU in every task.",
      "#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:4\nsrun ./solver",
      "srun --gpu-bind=single:1 ./solver"},
     find_choice_left_to_program},
    {{"B107", Level::warning, "mpirun does not know --gpus-per-task",
      "GPUs by task are handed out when srun starts a task. mpirun starts its ranks itself, "
      "through "
      "one daemon a node that is given no GPU variable. Start the ranks with srun, or let berth "
      "bind "
      "give each rank of mpirun its GPUs.",
      "#SBATCH --gpus-per-task=1\nmpirun -np 4 ./app",
      "#SBATCH --gpus-per-task=1\nsrun --mpi=pmix ./app       # or: mpirun -np 4 berth bind ./app"},
     find_per_task_under_mpirun},
    {{"B108", Level::warning, "--gpus is not shared out evenly",
      "--gpus is a total. With several nodes the first ones take as many as they can and leave one "
      "for each later node: 4 GPUs on 2 nodes become 3 and 1.",
      "#SBATCH --nodes=2\n#SBATCH --gpus=4", "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=2"},
     find_uneven_split},
    {{"B113", Level::warning, "--gpus is the total of the job, not of a node",
      "The same number in --gpus and --ntasks-per-node of a job with several nodes looks like a "
      "count meant for each node.",
      "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus=4",
      "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4"},
     find_total_read_as_per_node},
}};

}  // namespace

std::span<const Entry> gpu_sharing_rules() {
  return kGpuSharingRules;
}

}  // namespace berth::lint
