#include "place/step_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "place/environment.h"
#include "place/gpu_bind.h"
#include "place/step_gres.h"
#include "request/counts.h"

namespace berth::place {
namespace {

using request::CoreDist;
using request::CpuBindKind;
using request::NodeDist;
using request::Opt;
using request::Request;

std::optional<std::size_t> position_of(const cluster::Cluster& cluster, const JobFacts& job,
                                       const std::string& name) {
  const auto node = cluster.find_node(name);
  if (!node) return std::nullopt;
  const auto& nodes = job.allocation.nodes;
  const auto at = std::ranges::find(nodes, *node, &cluster::NodeShare::node);
  if (at == nodes.end()) return std::nullopt;
  return static_cast<std::size_t>(at - nodes.begin());
}

/// Works the rules off in their order; each function is one row of the table of spec §1.1.
class AskMaker {
 public:
  AskMaker(const cluster::Cluster& cluster, const JobFacts& job, const Request& srun,
           std::vector<Message>& warnings)
      : cluster_(cluster),
        job_(job),
        srun_(srun),
        warnings_(warnings),
        job_nodes_(static_cast<std::uint32_t>(job.allocation.nodes.size())) {}

  Result<StepAsk> in_job() {
    plain_values();
    cpu_binding();
    distribution();
    if (auto ok = list_nodes(); !ok) return pass(ok.error());
    node_count();
    task_count();
    fit_nodes_to_tasks();
    if (auto ok = check_nodes(); !ok) return pass(ok.error());
    if (auto ok = check_host_list(); !ok) return pass(ok.error());
    devices();
    turn_exclusion_into_list();
    if (ask_.tasks) settle_tasks(ask_, *ask_.tasks);
    return std::move(ask_);
  }

  Result<StepAsk> own_job() {
    plain_values();
    cpu_binding();
    distribution();
    if (arbitrary() && !srun_.nodelist.empty()) {
      if (auto ok = list_nodes(); !ok) return pass(ok.error());
    }
    ask_.min_nodes = ask_.max_nodes = job_nodes_;
    own_task_count();
    if (auto ok = check_host_list(); !ok) return pass(ok.error());
    devices();
    ask_.listed.clear();
    if (ask_.tasks) settle_tasks(ask_, *ask_.tasks);
    return std::move(ask_);
  }

 private:
  [[nodiscard]] bool arbitrary() const { return ask_.layout.method == NodeDist::arbitrary; }
  void warn(std::string text) { warnings_.push_back({Severity::warning, std::move(text)}); }

  void plain_values() {
    ask_.ntasks_per_node = srun_.ntasks_per_node;
    ask_.ntasks_per_node_own = srun_.given.on_command_line(Opt::ntasks_per_node);
    ask_.cpus_per_task = srun_.cpus_per_task;
    ask_.cpus_per_gpu = srun_.cpus_per_gpu;
    ask_.ntasks_per_gpu = srun_.ntasks_per_gpu;
    for (const auto& share : job_.allocation.nodes) ask_.job_cpus += share.usable_cpus;
    const bool asked = srun_.exact || srun_.exclusive != request::Exclusive::no ||
                       srun_.cpus_per_task || srun_.cpus_per_gpu;
    ask_.exact = asked && !srun_.given.has(Opt::whole);
    ask_.overlap = srun_.overlap;
    ask_.overcommit = srun_.overcommit;
    ask_.immediate = srun_.immediate;
    ask_.enforce_binding =
        srun_.gres_flags.enforce_binding || cluster_.settings.enforce_binding_gres;
    ask_.allow_task_sharing = srun_.gres_flags.allow_task_sharing ||
                              (cluster_.settings.step_fence && !srun_.gres_flags.no_task_sharing);
    if (srun_.memory && srun_.memory->mb > 0 && cluster_.settings.memory_is_consumed) {
      ask_.memory = srun_.memory;
    }
    ask_.all_memory = srun_.memory && srun_.memory->mb == 0;
    ask_.least_gpu_memory_mb = srun_.gpu_mem_min_mb.value_or(0);
    ask_.tres_per_task = tres_per_task_text(srun_);
  }

  void cpu_binding() {
    CpuBindAsk& bind = ask_.cpu_bind;
    // rank is obsolete and means nothing: the same as no kind at all
    auto kind = CpuBindKind::rank;
    if (srun_.cpu_bind && srun_.cpu_bind->kind) kind = *srun_.cpu_bind->kind;
    const bool given = srun_.cpu_bind && srun_.cpu_bind->kind;
    bind.verbose = srun_.cpu_bind && srun_.cpu_bind->verbose;
    bind.threads_per_core = srun_.threads_per_core;
    if (srun_.ntasks_per_core != 0U) bind.ntasks_per_core = srun_.ntasks_per_core;
    if (srun_.ntasks_per_socket != 0U) bind.ntasks_per_socket = srun_.ntasks_per_socket;
    bind.overcommit = srun_.overcommit;
    if (srun_.hint && !given && !bind.threads_per_core &&
        *srun_.hint != request::Hint::multithread) {
      bind.threads_per_core = 1;
    }
    if (cluster_.settings.one_task_per_core && !bind.threads_per_core && !bind.ntasks_per_core) {
      bind.threads_per_core = 1;
    }
    bind.level = implied_level(srun_);
    if (kind == CpuBindKind::rank) return;
    switch (kind) {
      case CpuBindKind::sockets:
        bind.level = BindLevel::sockets;
        break;
      case CpuBindKind::cores:
        bind.level = BindLevel::cores;
        break;
      case CpuBindKind::threads:
        bind.level = BindLevel::threads;
        break;
      case CpuBindKind::ldoms:
        bind.level = BindLevel::ldoms;
        break;
      default:
        bind.explicit_bind = srun_.cpu_bind;
        break;
    }
  }

  void distribution() {
    CoreDist& sockets = ask_.cpu_bind.sockets;
    if (cluster_.settings.core_default_dist_block) sockets = CoreDist::block;
    if (!srun_.distribution) return;
    const auto& given = *srun_.distribution;
    if (given.sockets) sockets = *given.sockets;
    ask_.layout.pack = given.pack.value_or(false);
    ask_.layout.plane_size = given.plane_size.value_or(1);
    if (given.nodes == NodeDist::plane) sockets = CoreDist::block;
    // pack alone is a way of dealing out blocks
    ask_.distribution_given = given.nodes.has_value() || ask_.layout.pack;
    ask_.layout.method = given.nodes.value_or(NodeDist::block);
    ask_.distribution = given.text;
    if (!given.nodes && ask_.layout.pack) ask_.distribution = "block,pack";
  }

  Result<void> list_nodes() {
    for (const std::string& name : srun_.nodelist) {
      const auto position = position_of(cluster_, job_, name);
      if (!position) {
        return pass(step_error(job_, Code::node_config_unavailable,
                               fmt::format("{} is not a node of this job", name)));
      }
      if (arbitrary()) ask_.layout.positions.push_back(*position);
      if (std::ranges::find(ask_.listed, *position) == ask_.listed.end()) {
        ask_.listed.push_back(*position);
      }
    }
    std::ranges::sort(ask_.listed);
    for (const std::string& name : srun_.exclude) {
      if (const auto position = position_of(cluster_, job_, name)) excluded_.insert(*position);
    }
    // A job laid out by a host list hands the word on, but the list itself stays behind.
    if (arbitrary() && ask_.layout.positions.empty()) ask_.layout.method = NodeDist::block;
    return {};
  }

  void node_count() {
    ask_.nodes_given = srun_.given.on_command_line(Opt::nodes);
    ask_.min_nodes = ask_.max_nodes = job_nodes_;
    if (srun_.nodes) {
      ask_.min_nodes = srun_.nodes->min;
      ask_.max_nodes = srun_.nodes->max;
    }
    if (arbitrary()) {
      ask_.min_nodes = ask_.max_nodes = static_cast<std::uint32_t>(ask_.listed.size());
    }
    if (ask_.layout.pack && !ask_.nodes_given) {
      ask_.fewest_nodes = true;
      ask_.min_nodes = 1;
    }
    if (ask_.max_nodes > ask_.min_nodes) {
      ask_.max_nodes = std::max(ask_.min_nodes, std::min(ask_.max_nodes, nodes_left()));
    }
  }

  [[nodiscard]] std::uint32_t nodes_left() const {
    return job_nodes_ - static_cast<std::uint32_t>(excluded_.size());
  }

  void set_tasks(std::uint64_t tasks) {
    ask_.tasks = static_cast<std::uint32_t>(std::min<std::uint64_t>(tasks, UINT32_MAX));
  }

  void task_count() {
    const auto per_node = srun_.ntasks_per_node;
    ask_.tasks = srun_.ntasks;
    if (srun_.given.from_environment(Opt::ntasks) && ask_.nodes_given && per_node)
      ask_.tasks.reset();
    if (ask_.tasks) return;
    if (arbitrary()) {
      set_tasks(ask_.layout.positions.size());
    } else if (per_node) {
      set_tasks(std::uint64_t{ask_.max_nodes} * *per_node);
    } else if (!ask_.cpus_per_task) {
      set_tasks(ask_.max_nodes);
    }
  }

  void own_task_count() {
    ask_.tasks = srun_.ntasks;
    if (!ask_.tasks && srun_.ntasks_per_node) {
      set_tasks(std::uint64_t{job_nodes_} * *srun_.ntasks_per_node);
    }
    ask_.all_job_cpus = !ask_.tasks && !srun_.ntasks_per_gpu;
    if (!ask_.tasks && arbitrary() && !ask_.layout.positions.empty()) {
      set_tasks(ask_.layout.positions.size());
    }
    if (!ask_.tasks && (srun_.ntasks_per_gpu || !ask_.cpus_per_task)) set_tasks(job_nodes_);
    if (srun_.ntasks_per_gpu && !srun_.ntasks) set_tasks(job_.counts.tasks.value_or(*ask_.tasks));
  }

  void fit_nodes_to_tasks() {
    if (!ask_.tasks) return;
    const std::uint32_t tasks = *ask_.tasks;
    if (tasks < ask_.min_nodes) {
      warn(fmt::format("can't run {} processes on {} nodes, setting nnodes to {}", tasks,
                       ask_.min_nodes, tasks));
      ask_.min_nodes = ask_.max_nodes = tasks;
    }
    ask_.max_nodes = std::min(ask_.max_nodes, std::max(tasks, 1U));
    const auto per_node = ask_.ntasks_per_node;
    if (!per_node) return;
    if (tasks > std::uint64_t{ask_.max_nodes} * *per_node) {
      warn(
          fmt::format("can't honor --ntasks-per-node set to {} which doesn't match the requested "
                      "tasks {} with the maximum number of requested nodes {}. Ignoring "
                      "--ntasks-per-node.",
                      *per_node, tasks, ask_.max_nodes));
      ask_.ntasks_per_node.reset();
    } else if (ask_.layout.pack && tasks > *per_node) {
      warn(
          fmt::format("can't honor --ntasks-per-node set to {} which doesn't match the requested "
                      "tasks {} and -mpack, which forces min number of nodes to 1",
                      *per_node, tasks));
      ask_.ntasks_per_node.reset();
    }
  }

  Result<void> check_nodes() {
    if (ask_.tasks == 0U) {
      return fail(Code::invalid_task_count, std::string(slurm_text(Code::invalid_task_count)));
    }
    if (ask_.min_nodes > nodes_left()) {
      Error error =
          fail(Code::invalid_node_count,
               fmt::format("Only allocated {} nodes asked for {}", nodes_left(), ask_.min_nodes))
              .error();
      if (!excluded_.empty()) {
        error.messages.push_back({Severity::error, "Are required nodes explicitly excluded?"});
        error.hint = fmt::format(
            "the step asks for as many nodes as the job has; say -N{} to run on what is left",
            nodes_left());
      }
      return pass(std::move(error));
    }
    if (!srun_.relative) return {};
    ask_.relative = *srun_.relative;
    if (std::uint64_t{*srun_.relative} + ask_.min_nodes <= job_nodes_) return {};
    return fail(Code::invalid_node_count,
                fmt::format("--relative and {} option incompatible with count of allocated nodes "
                            "({}+{}>{})",
                            ask_.nodes_given ? "--nodes" : "SLURM_JOB_NUM_NODES", *srun_.relative,
                            ask_.min_nodes, job_nodes_));
  }

  Result<void> check_host_list() {
    if (!arbitrary()) return {};
    auto& positions = ask_.layout.positions;
    const std::uint32_t tasks = ask_.tasks.value_or(0);
    if (positions.size() == tasks) return {};
    const request::Given* list = srun_.given.find(Opt::nodelist);
    const bool from_file = list == nullptr || list->text.find('/') != std::string::npos;
    if (!from_file) {
      return fail(Code::invalid_task_count,
                  fmt::format("You asked for {} tasks but hostlist specified {} nodes", tasks,
                              positions.size()));
    }
    if (positions.size() > tasks) {
      positions.resize(tasks);
      const std::set<std::size_t> distinct(positions.begin(), positions.end());
      ask_.listed.assign(distinct.begin(), distinct.end());
      ask_.min_nodes = ask_.max_nodes = static_cast<std::uint32_t>(distinct.size());
      return {};
    }
    Error error = fail(Code::invalid_task_count, "Too few NodeNames in Slurm Hostfile").error();
    error.messages.push_back({Severity::error, "Failure getting NodeNames from hostfile"});
    error.hint = fmt::format("the host file has {} lines, the step {} tasks: add -n{}",
                             positions.size(), tasks, positions.size());
    return pass(std::move(error));
  }

  void devices() {
    const GresRequest wanted = requested_gres(job_, srun_);
    ask_.step_gpus = wanted.gpus_of_step();
    ask_.gres = step_gres(wanted, ask_.ntasks_per_gpu);
    ask_.gpu_bind = srun_.gpu_bind;
    ask_.bind_gpus_to_ranks = srun_.launcher == request::Launcher::mpi;
    // These take the GPU of their local rank, out of all that the step has on the node.
    const bool sees_all =
        srun_.launcher == request::Launcher::torch || srun_.launcher == request::Launcher::jax;
    if (!ask_.gpu_bind && sees_all) {
      ask_.gpu_bind = request::GpuBind{};
      ask_.gpu_bind->text = "gres/gpu:none";
    }
    if (!ask_.gpu_bind) ask_.gpu_bind = implied_gpu_bind(wanted.per_task, ask_.ntasks_per_gpu);
    if (!ask_.ntasks_per_gpu || !ask_.tasks) return;
    const std::uint64_t gpus = gpus_in_all();
    set_tasks(std::max<std::uint64_t>(*ask_.tasks, product_or_max(gpus, *ask_.ntasks_per_gpu)));
  }

  /// GPUs of the step as far as they are known before its nodes are.
  [[nodiscard]] std::uint64_t gpus_in_all() const {
    for (const StepGres& gres : ask_.gres) {
      if (gres.name != "gpu") continue;
      if (gres.basis == GresBasis::per_node) return product_or_max(gres.count(), ask_.max_nodes);
      if (gres.basis == GresBasis::per_step) return gres.count();
      if (gres.basis != GresBasis::all_of_job) return 0;
      std::uint64_t gpus = 0;
      for (const auto& share : job_.allocation.nodes) gpus += share.gpus().count();
      return gpus;
    }
    return 0;
  }

  /// -x becomes a list: the first nodes that are left, without rotation.
  void turn_exclusion_into_list() {
    if (excluded_.empty()) return;
    std::erase_if(ask_.listed, [&](std::size_t p) { return excluded_.contains(p); });
    for (std::size_t p = 0; p < job_nodes_ && ask_.listed.size() < ask_.max_nodes; ++p) {
      const bool taken = std::ranges::find(ask_.listed, p) != ask_.listed.end();
      if (!taken && !excluded_.contains(p)) ask_.listed.push_back(p);
    }
    std::ranges::sort(ask_.listed);
  }

  const cluster::Cluster& cluster_;
  const JobFacts& job_;
  const Request& srun_;
  std::vector<Message>& warnings_;
  std::uint32_t job_nodes_;
  std::set<std::size_t> excluded_;
  StepAsk ask_;
};

/// The step's distribution when -m does not say: tasks that do not outnumber the nodes go round.
void choose_distribution(StepAsk& ask) {
  if (ask.distribution_given) return;
  const bool cyclic = *ask.tasks <= ask.min_nodes && !ask.all_memory;
  ask.layout.method = cyclic ? NodeDist::cyclic : NodeDist::block;
  // "*:block" keeps its later levels behind the word that was chosen.
  const std::size_t colon = ask.distribution.find(':');
  const std::string rest = colon == std::string::npos ? "" : ask.distribution.substr(colon);
  ask.distribution = ask.all_memory ? "" : (cyclic ? "cyclic" : "block") + rest;
}

}  // namespace

std::uint64_t StepGres::count() const {
  std::uint64_t sum = 0;
  for (const auto& ask : asks) sum = sum > UINT64_MAX - ask.count ? UINT64_MAX : sum + ask.count;
  return sum;
}

Result<StepAsk> ask_in_job(const cluster::Cluster& cluster, const JobFacts& job,
                           const Request& srun, std::vector<Message>& warnings) {
  return AskMaker(cluster, job, srun, warnings).in_job();
}

Result<StepAsk> ask_for_own_job(const cluster::Cluster& cluster, const JobFacts& job,
                                const Request& srun) {
  std::vector<Message> none;  // the job's own request has warned already
  return AskMaker(cluster, job, srun, none).own_job();
}

void settle_tasks(StepAsk& ask, std::uint32_t tasks) {
  ask.tasks = tasks;
  ask.layout.tasks = tasks;
  if (ask.all_job_cpus) {
    ask.cpus = ask.job_cpus;
  } else if (ask.overcommit) {
    ask.cpus = ask.min_nodes;
  } else {
    ask.cpus = std::uint64_t{tasks} * ask.task_cpus();
  }
  choose_distribution(ask);
}

Error step_error(const JobFacts& job, Code code, std::string hint) {
  return fail(code, fmt::format("Unable to create step for job {}: {}", job.id, slurm_text(code)),
              std::move(hint))
      .error();
}

}  // namespace berth::place
