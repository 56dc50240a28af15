// Rules about the lines that start processes: srun, mpirun, torchrun and what they multiply to.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "lint/ranks.h"
#include "lint/rule.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::lint {
namespace {

using request::Opt;
using script::Launcher;

/// "srun --ntasks=4 --ntasks-per-node=1": one launcher on each node, with all its CPUs.
std::string srun_once_a_node(const Job& job) {
  std::string srun = "srun";
  if (job.tasks() != job.nodes()) {
    srun += fmt::format(" --ntasks={} --ntasks-per-node=1", job.nodes());
    if (job.request->cpus_per_task && job.placed()) {
      srun += fmt::format(" --cpus-per-task={}", job.plan->allocation.nodes.front().usable_cpus);
    }
  }
  return srun;
}

/// The torchrun line that belongs on every node.
std::string torchrun_everywhere(const Job& job, const TorchLaunch& launch) {
  const std::size_t gpus = std::max<std::size_t>(1, job.gpus_on(0));
  const std::string program =
      launch.program.empty() ? "train.py" : fmt::format("{}", fmt::join(launch.program, " "));
  return fmt::format(
      "{} torchrun --nnodes={} --nproc-per-node={} --rdzv-backend=c10d "
      "--rdzv-endpoint=$(scontrol show hostnames | head -n1):$((20000 + SLURM_JOB_ID % 10000)) {}",
      srun_once_a_node(job), job.nodes(), launch.processes(gpus), shortened(program, 40));
}

void find_launcher_on_first_node(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    const Job* job = facts.job_of(step);
    if (step.command == nullptr || job == nullptr || job->nodes() < 2) continue;
    const Launcher launcher = step.command->launcher;
    if (launcher != Launcher::torchrun && launcher != Launcher::torch_distributed &&
        launcher != Launcher::accelerate && launcher != Launcher::deepspeed) {
      continue;
    }
    const bool deepspeed = launcher == Launcher::deepspeed;
    if (deepspeed && deepspeed_reaches_hosts(step.command->words)) continue;
    const auto torch = read_torch(step.command->words);
    const std::string name = torch ? torch->name : deepspeed ? "deepspeed" : "accelerate launch";
    const std::size_t others = job->nodes() - 1;
    std::string text = fmt::format("{} without srun runs on the first node only{}", name,
                                   job->placed() ? " (" + facts.node_name(*job, 0) + ")" : "");
    if (torch && torch->nodes.value_or(1) > 1) {
      text += fmt::format(" and waits for {} that nobody starts.",
                          count(*torch->nodes - 1, "other launcher"));
    } else {
      const std::size_t idle = job->placed() ? job->all_gpus() - job->gpus_on(0) : 0;
      text += fmt::format(": {}. The other {} idle{}.",
                          torch ? count(torch->processes(job->gpus_on(0)), "process") + " there"
                                : "its processes are there",
                          others == 1 ? "node stays" : fmt::format("{} nodes stay", others),
                          idle > 0 ? fmt::format(", with {}", count(idle, "GPU")) : "");
    }
    report.add(line_of(step), std::move(text),
               torch ? torchrun_everywhere(*job, *torch)
               : deepspeed
                   ? "scontrol show hostnames | sed \"s/$/ slots=$SLURM_GPUS_ON_NODE/\" > hosts\n"
                     "deepspeed --hostfile=hosts …"
                   : fmt::format("{} bash -c 'accelerate launch --machine_rank $SLURM_NODEID …'",
                                 srun_once_a_node(*job)));
  }
}

/// Whether something in the script may start processes on other nodes. Looks at the text, because
/// what a script calls by other names (functions, wrappers) it still writes out somewhere.
bool reaches_other_nodes(const Facts& facts) {
  constexpr std::array<std::string_view, 13> kWays = {"srun",
                                                      "mpirun",
                                                      "mpiexec",
                                                      "pdsh",
                                                      "ssh ",
                                                      "parallel",
                                                      "torchrun",
                                                      "deepspeed",
                                                      "accelerate",
                                                      "torch.distributed",
                                                      "SLURM_JOB_NODELIST",
                                                      "prun",
                                                      "clush"};
  std::string_view rest = facts.input.script;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (text::trim(line).starts_with('#')) continue;
    for (const std::string_view way : kWays) {
      if (line.find(way) != std::string_view::npos) return true;
    }
  }
  return false;
}

void find_program_on_first_node(const Facts& facts, Report& report) {
  if (facts.jobs.size() != 1 || facts.input.read == nullptr) return;
  const Job& job = facts.jobs.front();
  if (job.nodes() < 2 || reaches_other_nodes(facts)) return;
  for (const script::Command& command : facts.input.read->commands) {
    if (command.words.empty() || !is_python(command.words.front())) continue;
    report.add(command.line,
               fmt::format("{} runs once, on the first of {} nodes; the others stay idle.",
                           shortened(command.text, 40), job.nodes()),
               "srun " + shortened(command.text));
    return;
  }
}

void find_launchers_multiplied(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    if (!is_srun(step) || step.plan == nullptr || step.request == nullptr) continue;
    const auto torch = read_torch(step.request->argv);
    const Job* job = facts.job_of(step);
    if (!torch || job == nullptr) continue;
    for (const RanksOnNode& here : ranks_of_step(facts, *step.plan)) {
      const std::size_t tasks = here.ranks.size();
      const std::size_t each = torch->processes(here.gpus.count());
      if (tasks < 2 || each < 2) continue;
      report.add(
          line_of(step),
          fmt::format(
              "srun starts {} on {}, and each starts {}: {} × {} = {} processes{}.",
              count(tasks, "launcher"), here.node, count(each, "process"), tasks, each,
              tasks * each,
              here.gpus.empty() ? "" : fmt::format(" for {}", count(here.gpus.count(), "GPU"))),
          "one launcher a node:   " + torchrun_everywhere(*job, *torch) +
              "\nor no launcher:   srun python " +
              (torch->program.empty() ? "train.py" : shortened(torch->program.front(), 40)) +
              "      (rank = SLURM_PROCID, local rank = SLURM_LOCALID)");
      break;
    }
  }
}

void find_nested_mpirun(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    if (!is_srun(step) || step.request == nullptr) continue;
    const auto program = bare_program(step.request->argv);
    if (script::recognise(program).launcher != Launcher::mpirun) continue;
    const std::uint32_t tasks = step.plan != nullptr ? step.plan->ntasks : 0;
    report.add(
        line_of(step),
        fmt::format("srun starts mpirun {}, and each mpirun starts all ranks again, or hangs "
                    "because its CPUs are taken by srun.",
                    tasks > 1 ? fmt::format("{} times", tasks) : "inside a step"),
        "mpirun …      (without srun), or  srun --mpi=pmix ./app      (without mpirun)");
  }
}

void find_mpirun_count(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    const Job* job = facts.job_of(step);
    if (!is_launcher(step, Launcher::mpirun) || job == nullptr) continue;
    const auto words = launcher_words(step);
    const auto asked = mpirun_processes(words);
    const auto slots = mpirun_slots(facts, *job);
    if (!asked || slots.empty() || step.command->uncertain || mpirun_per_node(words)) continue;
    const std::uint64_t have = std::accumulate(slots.begin(), slots.end(), std::uint64_t{0});
    if (*asked == have) continue;
    if (*asked > have) {
      const bool even = !job->request->ntasks && *asked % job->nodes() == 0;
      report.add(
          line_of(step),
          fmt::format("mpirun -np {} finds {} in the job: Open MPI refuses, others put several "
                      "ranks on a CPU.",
                      *asked, count(have, "slot")),
          facts.as_directive(even ? fmt::format("--ntasks-per-node={}", *asked / job->nodes())
                                  : fmt::format("--ntasks={}", *asked)));
    } else {
      report.add(Level::note, line_of(step),
                 fmt::format("mpirun -np {} leaves {} of the job's {} slots unused.", *asked,
                             have - *asked, have),
                 "mpirun without -np uses them all");
    }
  }
}

void find_submission_inside(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    if (is_launcher(step, Launcher::salloc)) {
      report.add(Level::warning, line_of(step),
                 "salloc inside a batch script asks for a second job and waits for it, while this "
                 "one holds its nodes.",
                 "srun, which runs inside this job");
    } else if (is_launcher(step, Launcher::sbatch)) {
      report.add(Level::note, line_of(step),
                 "sbatch inside the script submits another job; it does not run inside this one.",
                 "to start it after this one:   sbatch --dependency=afterok:$SLURM_JOB_ID …");
    }
  }
}

void find_processes_against_gpus(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    const Job* job = facts.job_of(step);
    if (job == nullptr || !job->placed()) continue;
    const bool srun = is_srun(step) && step.request != nullptr && step.plan != nullptr;
    if (step.command == nullptr && !srun) continue;
    const auto torch = read_torch(srun ? step.request->argv : step.command->words);
    if (!torch || !torch->per_node) continue;
    std::size_t seen = job->gpus_on(0);
    if (srun) seen = step.plan->tasks.empty() ? 0 : step.plan->tasks.front().gpus.count();
    if (seen == 0 || *torch->per_node == seen) continue;
    const bool more = *torch->per_node > seen;
    report.add(more ? Level::warning : Level::note, line_of(step),
               more ? fmt::format("{} processes on a node that gives {}: the last {} find no GPU "
                                  "(\"invalid device ordinal\").",
                                  *torch->per_node, count(seen, "GPU"), *torch->per_node - seen)
                    : fmt::format("{} for {}: {} stay idle on each node.",
                                  count(*torch->per_node, "process"), count(seen, "GPU"),
                                  seen - *torch->per_node),
               fmt::format("--nproc-per-node={}", seen));
  }
}

void find_wrong_node_count(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    if (!is_srun(step) || step.plan == nullptr || step.request == nullptr) continue;
    const auto torch = read_torch(step.request->argv);
    if (!torch || !torch->nodes || step.plan->ntasks == 0) continue;
    if (*torch->nodes == step.plan->ntasks) continue;
    const bool several_a_node = step.plan->ntasks > step.plan->nodes.size();
    if (several_a_node && torch->processes(1) > 1) continue;  // find_launchers_multiplied says it
    report.add(line_of(step),
               fmt::format("--nnodes={} waits for {}, and srun starts {}: training {}.",
                           *torch->nodes, count(*torch->nodes, "launcher"), step.plan->ntasks,
                           *torch->nodes > step.plan->ntasks ? "never begins"
                                                             : "begins without some of them"),
               fmt::format("--nnodes=$SLURM_NNODES      ({} here)", step.plan->nodes.size()));
  }
}

/// Calls fn(line number, value) for each NAME=value written in the script.
template <class Fn>
void each_assignment(std::string_view script, std::string_view name, Fn&& fn) {
  for (int number = 1; !script.empty(); ++number) {
    const std::size_t end = script.find('\n');
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(end == std::string_view::npos ? script.size() : end + 1);
    const std::size_t at = line.find(name);
    if (at == std::string_view::npos || text::trim(line).starts_with('#')) continue;
    if (at > 0 && line[at - 1] != ' ' && line[at - 1] != '\t') continue;
    std::string_view value = line.substr(at + name.size());
    if (value.starts_with('"') || value.starts_with('\'')) value.remove_prefix(1);
    fn(number, value.substr(0, value.find_first_of(" \t;\"'&")));
  }
}

void find_fixed_port(const Facts& facts, Report& report) {
  each_assignment(facts.input.script, "MASTER_PORT=", [&](int line, std::string_view value) {
    if (!text::parse_number(value, 65535)) return;
    report.add(line,
               fmt::format("MASTER_PORT={} is the same for every job: two of them on one node, and "
                           "the second fails with \"address already in use\".",
                           value),
               "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))");
  });
}

void find_local_master(const Facts& facts, Report& report) {
  if (facts.jobs.empty() || facts.jobs.front().nodes() < 2) return;
  each_assignment(facts.input.script, "MASTER_ADDR=", [&](int line, std::string_view value) {
    if (value != "localhost" && value != "127.0.0.1") return;
    report.add(
        line,
        fmt::format("MASTER_ADDR={} is a different machine on each of the {} nodes: the ranks "
                    "never meet.",
                    value, facts.jobs.front().nodes()),
        "export MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)");
  });
}

/// The task variable that the batch shell would expand in this text; "" when there is none.
std::string expanded_too_early(std::string_view text) {
  bool single = false;
  bool quoted = false;  // inside "…", where ' means nothing
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && !single) {
      ++i;
    } else if (text[i] == '"' && !single) {
      quoted = !quoted;
    } else if (text[i] == '\'' && !quoted) {
      single = !single;
    } else if (text[i] == '$' && !single) {
      std::string_view rest = text.substr(i + 1);
      if (rest.starts_with('{')) rest.remove_prefix(1);
      for (const std::string_view name : {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"}) {
        if (rest.starts_with(name)) return std::string(name);
      }
    }
  }
  return {};
}

void find_expanded_too_early(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    if (!is_launcher(step, Launcher::srun)) continue;
    if (step.plan != nullptr && step.plan->ntasks == 1) continue;
    const std::string name = expanded_too_early(step.command->text);
    if (name.empty()) continue;
    report.add(
        line_of(step),
        fmt::format("${} is replaced before srun runs, so every task gets the batch script's "
                    "value, 0.",
                    name),
        fmt::format("srun bash -c 'python train.py --rank ${}'      (single quotes)", name));
  }
}

/// berth bind that refuses to run: then all ranks do.
void find_bind_refused(const Facts& facts, Report& report) {
  for (const StepSeen& step : facts.input.steps) {
    const auto bind = bind_of(step);
    if (!bind) continue;
    if (!*bind) {
      report.add(line_of(step), fmt::format("berth bind: {}.", bind->error().what()),
                 bind->error().hint);
      continue;
    }
    const Job* job = facts.job_of(step);
    const auto each = (*bind)->gpus_per_rank;
    if (!each || job == nullptr || !is_launcher(step, Launcher::mpirun)) continue;
    for (const RanksOnNode& here : ranks_of_mpirun(facts, *job, *step.command)) {
      const std::size_t wanted = here.ranks.size() * *each;
      if (wanted <= here.held.count()) continue;
      report.add(line_of(step),
                 fmt::format("berth bind --gpus-per-rank {}: {} on {} want {}, and the job has {} "
                             "there.",
                             *each, count(here.ranks.size(), "rank"), here.node,
                             count(wanted, "GPU"), here.held.count()),
                 "divide what there is:   berth bind without --gpus-per-rank");
      break;
    }
  }
}

constexpr std::array<Entry, 12> kLaunchersRules = {{
    {{"B401", Level::warning, "A launcher without srun runs on the first node only",
      "A batch script runs on the first node. torchrun, python -m torch.distributed.* and "
      "accelerate "
      "start processes on the machine they run on; srun must start one of them on each node.",
      "#SBATCH --nodes=4\ntorchrun --nproc-per-node=4 train.py",
      "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=1\nsrun torchrun --nnodes=4 --nproc-per-node=4 "
      "--rdzv-backend=c10d --rdzv-endpoint=$(scontrol show hostnames | head -n1):$((20000 + "
      "SLURM_JOB_ID % 10000)) train.py"},
     find_launcher_on_first_node},
    {{"B402", Level::warning, "A program without srun runs on the first node only",
      "Nothing in the script reaches the other nodes of the job: they stay idle.",
      "#SBATCH --nodes=2\npython train.py", "#SBATCH --nodes=2\nsrun python train.py"},
     find_program_on_first_node},
    {{"B403", Level::warning, "srun multiplies torchrun",
      "With as many tasks as GPUs on a node, srun starts a launcher in each, and every launcher "
      "starts as many processes again: 4 × 4 = 16 processes for 4 GPUs.",
      "#SBATCH --ntasks-per-node=4\nsrun torchrun --nproc-per-node=4 train.py",
      "#SBATCH --ntasks-per-node=1\nsrun torchrun --nproc-per-node=4 train.py"},
     find_launchers_multiplied},
    {{"B404", Level::warning, "mpirun inside srun",
      "mpirun is a launcher like srun. One inside the other starts the ranks several times or "
      "waits "
      "for CPUs that the outer step holds.",
      "srun mpirun -np 4 ./app", "srun --mpi=pmix -n 4 ./app"},
     find_nested_mpirun},
    {{"B405", Level::warning, "mpirun -np does not fit the job",
      "mpirun finds as many slots as the job has tasks. More ranks are refused or share CPUs; "
      "fewer "
      "leave some unused (a note).",
      "#SBATCH --ntasks=4\nmpirun -np 8 ./app", "#SBATCH --ntasks=8\nmpirun ./app"},
     find_mpirun_count},
    {{"B406", Level::warning, "A job is submitted from inside a job",
      "sbatch in a batch script submits another job (a note: often wanted). salloc waits for a "
      "second "
      "allocation while the first one is held.",
      "salloc -n4 ./app", "srun -n4 ./app"},
     find_submission_inside},
    {{"B407", Level::warning, "torchrun starts another number of processes than there are GPUs",
      "Processes beyond the visible GPUs fail with \"invalid device ordinal\"; fewer leave GPUs "
      "idle "
      "(a note).",
      "#SBATCH --gres=gpu:2\ntorchrun --nproc-per-node=4 train.py",
      "#SBATCH --gres=gpu:2\ntorchrun --nproc-per-node=2 train.py"},
     find_processes_against_gpus},
    {{"B408", Level::warning, "--nnodes is not the number of launchers",
      "torchrun waits until --nnodes launchers have met. srun starts one in each task.",
      "#SBATCH --nodes=2\nsrun torchrun --nnodes=4 …",
      "#SBATCH --nodes=2\nsrun torchrun --nnodes=$SLURM_NNODES …"},
     find_wrong_node_count},
    {{"B409", Level::note, "MASTER_PORT is the same for every job",
      "Two jobs on one node cannot listen on one port.", "export MASTER_PORT=29500",
      "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))"},
     find_fixed_port},
    {{"B410", Level::warning, "MASTER_ADDR is each node itself",
      "localhost is another machine on every node, so the ranks of the other nodes never find the "
      "first.",
      "#SBATCH --nodes=2\nexport MASTER_ADDR=localhost",
      "export MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)"},
     find_local_master},
    {{"B411", Level::warning, "A task's variable is expanded by the batch script",
      "SLURM_PROCID, SLURM_LOCALID and SLURM_NODEID differ in each task, but outside single quotes "
      "the batch shell replaces them before srun starts anything.",
      "srun python train.py --rank $SLURM_PROCID",
      "srun bash -c 'python train.py --rank $SLURM_PROCID'"},
     find_expanded_too_early},
    {{"B412", Level::error, "berth bind refuses to run",
      "It gives each rank so many GPUs of its own as --gpus-per-rank says, and ends with an error "
      "where the job has fewer on the node. Without --gpus-per-rank it divides what there is, and "
      "lets ranks share a GPU where they are more.",
      "#SBATCH --nodes=1 --ntasks=4 --gpus=4\nmpirun berth bind --gpus-per-rank 2 ./app",
      "#SBATCH --nodes=1 --ntasks=4 --gpus=4\nmpirun berth bind ./app"},
     find_bind_refused},
}};

}  // namespace

std::span<const Entry> launcher_rules() {
  return kLaunchersRules;
}

}  // namespace berth::lint
