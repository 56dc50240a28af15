#include "request/counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace berth::request {
namespace {

constexpr std::uint64_t kMostTasks = 0xFFFFFFFEULL;

/// Slurm reports these in two lines: what is wrong, then the general text.
std::unexpected<Error> invalid_spec(std::string text, std::string hint) {
  Error error;
  error.code = Code::invalid_gres;
  error.messages = {{Severity::error, "Failed to validate job spec. " + std::move(text)},
                    {Severity::error, std::string(slurm_text(Code::invalid_gres))}};
  error.hint = std::move(hint);
  return std::unexpected<Error>(std::move(error));
}

std::unexpected<Error> no_gpu_for(std::string_view what, std::uint64_t count,
                                  std::string_view option) {
  Error error;
  error.code = Code::invalid_gres;
  error.messages = {
      {Severity::error,
       fmt::format("Requested {}=gres/gpu:{} but did not request any GPU.", what, count)},
      {Severity::error, std::string(slurm_text(Code::invalid_gres))}};
  error.hint = fmt::format(
      "{} is an amount for each GPU: add --gpus=N, --gpus-per-node=N or "
      "--gpus-per-task=N",
      option);
  return std::unexpected<Error>(std::move(error));
}

/// GPU counts of the four spellings, 0 where one was not given.
struct Gpus {
  std::uint64_t job, node, socket, task;
  explicit Gpus(const Counts& c)
      : job(total_of(c.per_job, "gpu")),
        node(total_of(c.per_node, "gpu")),
        socket(total_of(c.per_socket, "gpu")),
        task(total_of(c.per_task, "gpu")) {}
};

std::vector<GresAsk> capped(std::vector<GresAsk> asks) {
  for (GresAsk& ask : asks) ask.count = std::min(ask.count, kMostDevices);
  return asks;
}

/// Works the rules off one after another; each function is one group of rows of the table.
class Derivation {
 public:
  explicit Derivation(const Request& request) : r_(request) {}

  Result<Counts> run() {
    copy_given();
    imply_tasks();
    if (auto ok = check_per_gpu_amounts(); !ok) return pass(ok.error());
    if (auto ok = per_task(); !ok) return pass(ok.error());
    if (auto ok = per_socket(); !ok) return pass(ok.error());
    if (auto ok = per_job_against_nodes(); !ok) return pass(ok.error());
    if (auto ok = tasks_from_gpus(); !ok) return pass(ok.error());
    add_tasks_times_per_task();
    settle_nodes();
    imply_bind();
    if (c_.tasks && *c_.tasks > kMostTasks) {
      return fail(Code::invalid_task_count, std::string(slurm_text(Code::invalid_task_count)));
    }
    return std::move(c_);
  }

 private:
  [[nodiscard]] bool fixed_nodes() const { return r_.nodes && r_.nodes->min == r_.nodes->max; }

  void set_tasks(std::uint64_t tasks) {
    c_.tasks = static_cast<std::uint32_t>(std::min<std::uint64_t>(tasks, 0xFFFFFFFFULL));
  }

  void copy_given() {
    c_.tasks = r_.ntasks;
    c_.tasks_explicit = r_.ntasks.has_value();
    c_.ntasks_per_node = r_.ntasks_per_node;
    c_.ntasks_per_socket = r_.ntasks_per_socket;
    c_.sockets_per_node = r_.sockets_per_node;
    c_.cpus_per_task = r_.cpus_per_task;
    c_.per_job = capped(r_.gres_per_job);
    c_.per_node = capped(r_.gres_per_node);
    c_.per_socket = capped(r_.gres_per_socket);
    c_.per_task = capped(r_.gres_per_task);
    gpus_ = Gpus(c_);
    const std::set<std::string> hosts(r_.nodelist.begin(), r_.nodelist.end());
    hosts_ = static_cast<std::uint32_t>(hosts.size());
    if (r_.command == Command::srun && r_.ntasks) {
      hosts_ = std::min(hosts_, *r_.ntasks);  // srun cuts the list to its tasks
    }
    c_.min_nodes = r_.nodes ? r_.nodes->min : std::max<std::uint32_t>(hosts_, 1);
  }

  /// Task counts that follow from the shape alone.
  void imply_tasks() {
    if (c_.tasks) return;
    const bool gpu_per_task = !r_.gres_per_task.empty();
    if (fixed_nodes() && (gpu_per_task || r_.ntasks_per_gpu)) {
      if (r_.ntasks_per_gpu) {
        set_tasks(std::uint64_t{r_.nodes->min} * *r_.ntasks_per_gpu);
      } else if (r_.ntasks_per_node) {
        set_tasks(std::uint64_t{r_.nodes->min} * *r_.ntasks_per_node);
      } else if (!r_.cpus_per_task) {
        set_tasks(r_.nodes->min);
      }
    } else if (r_.ntasks_per_node && (r_.command == Command::srun || fixed_nodes())) {
      set_tasks(std::uint64_t{c_.min_nodes} * *r_.ntasks_per_node);
    } else if (fixed_nodes()) {
      imply_tasks_from_shape();
    }
  }

  /// -B sockets:cores:threads on a fixed number of nodes is also a number of tasks.
  void imply_tasks_from_shape() {
    std::uint64_t product = r_.nodes->min;
    int factors = 0;
    const bool threads_given = r_.threads_per_core && !r_.hint;
    for (const auto& factor : {r_.sockets_per_node, r_.cores_per_socket,
                               threads_given ? r_.threads_per_core : std::nullopt}) {
      if (!factor) continue;
      product = std::min(product * *factor, kMostTasks + 1);
      ++factors;
    }
    if (factors == 3 || (factors > 0 && r_.command != Command::srun)) set_tasks(product);
  }

  Result<void> check_per_gpu_amounts() {
    // --ntasks-per-gpu with a task count asks for GPUs too.
    const bool any_gpu =
        gpus_.job + gpus_.node + gpus_.socket + gpus_.task > 0 || r_.ntasks_per_gpu.has_value();
    if (any_gpu) return {};
    if (r_.cpus_per_gpu) return no_gpu_for("cpus_per_tres", *r_.cpus_per_gpu, "--cpus-per-gpu");
    if (r_.memory && r_.memory->per == MemoryPer::gpu) {
      return no_gpu_for("mem_per_tres", r_.memory->mb, "--mem-per-gpu");
    }
    return {};
  }

  Result<void> per_task() {
    if (r_.gres_per_task.empty()) return {};
    if (!c_.tasks && gpus_.job == 0) {
      return invalid_spec(
          "--gpus-per-task or --tres-per-task used without either --gpus or -n/--ntasks is not "
          "allowed.",
          "say how many tasks: add --ntasks=N (or --nodes=N --ntasks-per-node=M); the job then "
          "gets "
          "tasks × GPUs per task");
    }
    if (gpus_.task == 0) return {};
    if (gpus_.job > 0) {
      if (gpus_.job % gpus_.task != 0) {
        return invalid_spec(
            "--gpus is not multiple of --gpus-per-task.",
            fmt::format("{} GPUs cannot be shared out {} to a task: use --gpus={}", gpus_.job,
                        gpus_.task, (gpus_.job / gpus_.task + 1) * gpus_.task));
      }
      const std::uint64_t tasks = gpus_.job / gpus_.task;
      if (c_.tasks && (r_.ntasks || fixed_nodes()) && tasks != *c_.tasks) {
        return invalid_spec(
            "Based on --gpus and --gpus-per-task number of requested tasks differ from "
            "-n/--ntasks.",
            fmt::format("--gpus={} and --gpus-per-task={} make {} tasks, --ntasks says {}: leave "
                        "--gpus out (berth multiplies), or use --gpus={}",
                        gpus_.job, gpus_.task, tasks, *c_.tasks, *c_.tasks * gpus_.task));
      }
      set_tasks(tasks);
    }
    if (gpus_.node > 0) {
      if (gpus_.node % gpus_.task != 0) {
        return invalid_spec("--gpus-per-node is not multiple of --gpus-per-task.",
                            fmt::format("{} GPUs on a node cannot be shared out {} to a task",
                                        gpus_.node, gpus_.task));
      }
      const auto tasks = static_cast<std::uint32_t>(gpus_.node / gpus_.task);
      if (c_.ntasks_per_node && *c_.ntasks_per_node != tasks) {
        return invalid_spec(
            "Based on --gpus-per-node and --gpus-per-task requested number of tasks per node "
            "differ "
            "from --ntasks-per-node.",
            fmt::format("{} GPUs a node and {} a task make {} tasks a node, --ntasks-per-node says "
                        "{}: leave --gres/--gpus-per-node out",
                        gpus_.node, gpus_.task, tasks, *c_.ntasks_per_node));
      }
      c_.ntasks_per_node = tasks;
    }
    return {};
  }

  Result<void> per_socket() {
    if (gpus_.socket == 0) return {};
    if (gpus_.task > 0) {
      if (gpus_.socket % gpus_.task != 0) {
        return invalid_spec("--gpus-per-socket is not multiple of --gpus-per-task.", "");
      }
      const auto tasks = static_cast<std::uint32_t>(gpus_.socket / gpus_.task);
      if (c_.ntasks_per_socket && *c_.ntasks_per_socket != tasks) {
        return invalid_spec(
            "Based on --gpus-per-socket and --gpus-per-task requested number of tasks per socket "
            "differ from --ntasks-per-socket.",
            "");
      }
      c_.ntasks_per_socket = tasks;
    }
    if (gpus_.node > 0) {
      if (gpus_.node % gpus_.socket != 0) {
        return invalid_spec("--gpus-per-node is not multiple of --gpus-per-socket.", "");
      }
      const auto sockets = static_cast<std::uint32_t>(gpus_.node / gpus_.socket);
      if (c_.sockets_per_node && *c_.sockets_per_node != sockets) {
        return invalid_spec(
            "Based on --gpus-per-node and --gpus-per-socket requested number of sockets per node "
            "differ from --sockets-per-node.",
            "");
      }
      c_.sockets_per_node = sockets;
    } else if (!c_.sockets_per_node) {
      return invalid_spec("--gpus-per-socket option used without --sockets-per-node.",
                          "say on how many sockets: add --sockets-per-node=N");
    }
    return {};
  }

  Result<void> per_job_against_nodes() {
    if (gpus_.job == 0) return {};
    if (r_.nodes && gpus_.job < r_.nodes->min) {
      return invalid_spec(
          "--gpus < -N", fmt::format("every node gets at least one GPU: {} GPUs cannot cover {} "
                                     "nodes; --gpus is for the whole job, --gpus-per-node for each "
                                     "node",
                                     gpus_.job, r_.nodes->min));
    }
    if (gpus_.node > 0) {
      if (gpus_.job % gpus_.node != 0) {
        return invalid_spec(
            "--gpus is not multiple of --gpus-per-node.",
            fmt::format("{} GPUs cannot be made of nodes with {} each", gpus_.job, gpus_.node));
      }
      const std::uint64_t nodes = gpus_.job / gpus_.node;
      if (r_.nodes && (nodes < r_.nodes->min || nodes > r_.nodes->max)) {
        return invalid_spec(
            "Based on --gpus and --gpus-per-node required nodes count is out of requested nodes "
            "range.",
            fmt::format("{} GPUs at {} a node are {} nodes, -N says otherwise", gpus_.job,
                        gpus_.node, nodes));
      }
    }
    return {};
  }

  /// --ntasks-per-gpu: GPUs make tasks, or tasks make GPUs.
  Result<void> tasks_from_gpus() {
    if (!r_.ntasks_per_gpu) return {};
    const std::uint64_t per_gpu = *r_.ntasks_per_gpu;
    const std::uint64_t gpus = gpus_.job > 0 ? gpus_.job : gpus_.node * c_.min_nodes;
    if (gpus > 0) {
      if (!r_.ntasks || *r_.ntasks < gpus * per_gpu) set_tasks(gpus * per_gpu);
      return {};
    }
    if (!c_.tasks) {
      return invalid_spec("--ntasks-per-gpu needs either a GPU specification or -n/--ntasks.",
                          "add --gpus=N (tasks = N × tasks per GPU) or --ntasks=N");
    }
    if (per_gpu == 0 || *c_.tasks % per_gpu != 0) {
      return invalid_spec(
          "-n/--ntasks has to be a multiple of --ntasks-per-gpu.",
          fmt::format("{} tasks cannot share GPUs {} to a GPU", *c_.tasks, per_gpu));
    }
    c_.per_job.push_back({"gpu", "", *c_.tasks / per_gpu});
    return {};
  }

  /// A per-task request is also a per-job request of tasks × count.
  void add_tasks_times_per_task() {
    if (!c_.tasks) return;
    for (const GresAsk& ask : c_.per_task) {
      const auto same = std::ranges::find_if(c_.per_job, [&](const GresAsk& job) {
        return job.name == ask.name && (job.type == ask.type || job.type.empty());
      });
      if (same == c_.per_job.end()) {
        c_.per_job.push_back({ask.name, ask.type, ask.count * *c_.tasks});
      }
    }
    if (r_.cpus_per_gpu && gpus_.task > 0 && !c_.cpus_per_task) {
      c_.cpus_per_task = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(gpus_.task * *r_.cpus_per_gpu, 0xFFFFFFFFULL));
    }
  }

  void settle_nodes() {
    if (r_.nodes) {
      c_.sizes = r_.nodes->sizes;
      c_.max_nodes = r_.nodes->max;
    } else if (hosts_ == 0 && r_.ntasks && r_.ntasks_per_node && *r_.ntasks_per_node > 0) {
      c_.min_nodes = (*r_.ntasks + *r_.ntasks_per_node - 1) / *r_.ntasks_per_node;
    }
    if (gpus_.job > 0 && gpus_.node > 0) {
      c_.min_nodes = static_cast<std::uint32_t>(gpus_.job / gpus_.node);
      c_.max_nodes = c_.min_nodes;
    }
    // sbatch and salloc leave this to the controller, after the checks above.
    if (!c_.tasks && r_.ntasks_per_node) {
      set_tasks(std::uint64_t{c_.min_nodes} * *r_.ntasks_per_node);
    }
    const std::uint64_t per_job_gpus = total_of(c_.per_job, "gpu");
    if (c_.max_nodes) {
      if (r_.ntasks) c_.max_nodes = std::min(*c_.max_nodes, *r_.ntasks);
      if (per_job_gpus > 0) {
        c_.max_nodes =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(*c_.max_nodes, per_job_gpus));
      }
    } else if (c_.tasks) {
      c_.max_nodes = c_.tasks;
      c_.max_nodes_implied = true;
    }
    if (r_.ntasks && *r_.ntasks < c_.min_nodes) {
      c_.warnings.push_back({Severity::warning,
                             fmt::format("can't run {} processes on {} nodes, setting nnodes to {}",
                                         *r_.ntasks, c_.min_nodes, *r_.ntasks)});
      c_.min_nodes = *r_.ntasks;
      c_.max_nodes = *r_.ntasks;
    }
    if (c_.max_nodes) c_.max_nodes = std::max(*c_.max_nodes, c_.min_nodes);
    const bool wish =
        c_.max_nodes && !c_.max_nodes_implied && !r_.use_min_nodes && per_job_gpus == 0;
    c_.desired_nodes = wish ? *c_.max_nodes : c_.min_nodes;
  }

  void imply_bind() {
    if (r_.gpu_bind) {
      c_.gpu_bind = r_.gpu_bind;
      return;
    }
    for (const char* name : {"gpu", "shard"}) {
      const std::uint64_t per_task = total_of(c_.per_task, name);
      if (per_task == 0) continue;
      GpuBind bind;
      bind.kind = GpuBindKind::per_task;
      bind.count = static_cast<std::uint32_t>(per_task);
      bind.gres = name;
      bind.text = fmt::format("gres/{}:per_task:{}", name, per_task);
      c_.gpu_bind = std::move(bind);
      return;
    }
    if (r_.ntasks_per_gpu) {
      GpuBind bind;
      bind.kind = GpuBindKind::single;
      bind.count = *r_.ntasks_per_gpu;
      bind.text = fmt::format("gres/gpu:single:{}", bind.count);
      c_.gpu_bind = std::move(bind);
    }
  }

  const Request& r_;
  Counts c_;
  Gpus gpus_{c_};
  std::uint32_t hosts_ = 0;  // distinct hosts of -w that count
};

}  // namespace

std::uint64_t total_of(const std::vector<GresAsk>& asks, std::string_view name) {
  std::uint64_t sum = 0;
  for (const GresAsk& ask : asks) {
    if (ask.name == name) sum += std::min(ask.count, UINT64_MAX - sum);
  }
  return sum;
}

Result<Counts> derive_counts(const Request& request) {
  return Derivation(request).run();
}

}  // namespace berth::request
