#include "place/step_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "place/gpu_bind.h"
#include "place/layout.h"
#include "place/step_nodes.h"
#include "place/step_resources.h"
#include "place/step_wait.h"
#include "text/size.h"

namespace berth::place {
namespace {

/// One attempt at a step: nodes, layout, and what is taken on each node.
struct Attempt {
  std::vector<StepNode> nodes;
  std::size_t rotation = 0;
};

class StepPlacer {
 public:
  StepPlacer(const cluster::Cluster& cluster, const JobFacts& job, StepAsk ask,
             std::span<const StepPlan> running, std::size_t rotation)
      : cluster_(cluster),
        job_(job),
        ask_(std::move(ask)),
        running_(running),
        rotation_(rotation) {}

  /// `plan.id` is set; everything else is filled in. Returns where the next step starts to look.
  std::size_t place(StepPlan& plan) {
    if (auto ok = check_threads(); !ok) return refuse(plan, ok.error());
    if (auto ok = check_gpu_memory(); !ok) return refuse(plan, ok.error());
    if (!ask_.tasks) {
      std::uint32_t tasks = tasks_that_fit(ask_, find_room(cluster_, job_, ask_, running_));
      if (tasks == 0) tasks = tasks_that_fit(ask_, find_room(cluster_, job_, ask_, {}));
      if (tasks == 0) return refuse(plan, Code::too_many_cpus);
      settle_tasks(ask_, tasks);
    }
    // "Never" is what an empty job could not do either.
    const auto ever = attempt({});
    if (!ever) {
      if (ever.error().code == Code::too_many_cpus && tasks_too_wide()) return wait_for_ever(plan);
      return refuse(plan, ever.error().code);
    }
    const auto now = running_.empty() ? ever : attempt(running_);
    if (!now) return wait(plan);
    describe(plan);
    plan.nodes = now->nodes;
    if (auto ok = bind_tasks(plan); !ok) return refuse(plan, ok.error());
    plan.verdict = StepVerdict::starts;
    return now->rotation;
  }

 private:
  Result<void> check_threads() const {
    const auto asked = ask_.cpu_bind.threads_per_core;
    const auto job = job_.request.threads_per_core;
    if (!asked || !job || *asked <= *job) return {};
    return pass(step_error(job_, Code::threads_per_core_over_job,
                           fmt::format("the job has --threads-per-core={}", *job)));
  }

  /// A step does not choose among the job's GPUs by what they are: all of them must have so much.
  Result<void> check_gpu_memory() const {
    if (ask_.least_gpu_memory_mb == 0) return {};
    for (const cluster::NodeShare& share : job_.allocation.nodes) {
      const cluster::Node& node = cluster_.nodes[share.node];
      const cluster::Gres* gpus = node.find_gres("gpu");
      std::optional<std::size_t> small;
      share.gpus().each([&](std::size_t i) {
        const bool fits = gpus != nullptr && i < gpus->devices.size() &&
                          gpus->devices[i].known_memory_mb() >= ask_.least_gpu_memory_mb;
        if (!fits && !small) small = i;
      });
      if (!small) continue;
      return pass(
          step_error(job_, Code::invalid_gres,
                     fmt::format("GPU {} of {}, which the job has, is not known to have {} "
                                 "of memory: give --gpu-mem-min to the job",
                                 *small, node.name, text::format_mb(ask_.least_gpu_memory_mb))));
    }
    return {};
  }

  Result<Attempt> attempt(std::span<const StepPlan> running) const {
    const std::vector<StepRoom> rooms = find_room(cluster_, job_, ask_, running);
    auto choice = choose_nodes(ask_, rooms, rotation_);
    if (!choice) return pass(choice.error());
    std::vector<const StepRoom*> nodes;
    std::vector<std::uint32_t> capacity;
    for (const std::size_t p : choice->positions) {
      nodes.push_back(&rooms[p]);
      capacity.push_back(rooms[p].tasks(ask_));
    }
    const std::uint64_t most = std::uint64_t{cluster_.settings.max_tasks_per_node} * nodes.size();
    if (*ask_.tasks > most) return fail(Code::invalid_task_count, {});
    const Layout layout = lay_out(layout_over(choice->positions), capacity);
    const auto parts = split_over_nodes(ask_.step_gpus, nodes, ask_.overlap);
    Attempt out;
    out.rotation = choice->rotation;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto tasks = static_cast<std::uint32_t>(layout[i].size());
      if (tasks > cluster_.settings.max_tasks_per_node) {
        return fail(Code::invalid_task_count, {});
      }
      auto share = take_share(*nodes[i], ask_, tasks, parts[i]);
      if (!share) return pass(share.error());
      StepNode node;
      node.share = *std::move(share);
      node.ranks = layout[i];
      out.nodes.push_back(std::move(node));
    }
    return out;
  }

  /// Host lists count positions in the job; the layout counts positions in the step.
  [[nodiscard]] LayoutAsk layout_over(const std::vector<std::size_t>& positions) const {
    LayoutAsk layout = ask_.layout;
    for (std::size_t& p : layout.positions) {
      const auto at = std::ranges::lower_bound(positions, p);
      p = static_cast<std::size_t>(at - positions.begin());
    }
    return layout;
  }

  std::size_t refuse(StepPlan& plan, const Error& error) {
    plan.verdict = StepVerdict::refused;
    plan.error = error;
    return rotation_;
  }

  std::size_t refuse(StepPlan& plan, Code code) {
    return refuse(plan, step_error(job_, code, hint(code)));
  }

  /// What the job has, for a refusal that only says what was too much.
  [[nodiscard]] std::string hint(Code code) const {
    if (code == Code::too_many_cpus) {
      return fmt::format("the step wants {} CPUs ({} tasks), the job has {} on {} nodes",
                         ask_.cpus.value_or(ask_.task_cpus()), ask_.tasks.value_or(1),
                         ask_.job_cpus, job_.allocation.nodes.size());
    }
    if (code == Code::invalid_gres || code == Code::insufficient_gres) {
      std::vector<std::string> have;
      for (const auto& share : job_.allocation.nodes) {
        const auto* gpus = share.find("gpu");
        have.push_back(fmt::format("{}: {}", cluster_.nodes[share.node].name,
                                   gpus == nullptr ? 0 : gpus->total()));
      }
      return fmt::format("GPUs of the job: {}", fmt::join(have, ", "));
    }
    if (code == Code::memory_unavailable && ask_.memory && !job_.allocation.nodes.empty()) {
      return fmt::format("the step wants {} MB, the job has {} MB on {}", ask_.memory->mb,
                         job_.allocation.nodes.front().memory_mb,
                         cluster_.nodes[job_.allocation.nodes.front().node].name);
    }
    return {};
  }

  std::size_t wait(StepPlan& plan) {
    const auto rooms = find_room(cluster_, job_, ask_, running_);
    StepWait why = explain_wait(ask_, rooms, running_);
    describe(plan);
    plan.waits_for = std::move(why.text);
    plan.waits_for_steps = std::move(why.steps);
    plan.verdict = StepVerdict::waits;
    if (ask_.immediate) refuse(plan, step_error(job_, Code::nodes_busy, plan.waits_for));
    return rotation_;
  }

  /// Whether too few nodes of the job hold the CPUs of a single task. A step that also asks for
  /// memory or devices is then not refused but waits, as recorded (step_too_big).
  [[nodiscard]] bool tasks_too_wide() const {
    if (ask_.overcommit || (!ask_.memory && ask_.gres.empty())) return false;
    const auto wide_enough = std::ranges::count_if(job_.allocation.nodes, [&](const auto& share) {
      return share.usable_cpus >= ask_.task_cpus();
    });
    return static_cast<std::uint64_t>(wide_enough) < std::max(ask_.min_nodes, 1U);
  }

  std::size_t wait_for_ever(StepPlan& plan) {
    std::uint32_t most = 0;
    for (const auto& share : job_.allocation.nodes) most = std::max(most, share.usable_cpus);
    describe(plan);
    plan.verdict = StepVerdict::waits;
    plan.waits_for = fmt::format(
        "{} CPUs for a task on each of {} nodes, but the job has at most {} CPUs on a node: this "
        "step can never start; end it and ask for fewer CPUs a task, or for a larger job",
        ask_.task_cpus(), std::max(ask_.min_nodes, 1U), most);
    if (ask_.immediate) refuse(plan, step_error(job_, Code::nodes_busy, plan.waits_for));
    return rotation_;
  }

  void describe(StepPlan& plan) const {
    plan.ntasks = *ask_.tasks;
    plan.cpus_per_task = ask_.cpus_per_task;
    if (ask_.ntasks_per_node_own) plan.ntasks_per_node = ask_.ntasks_per_node;
    plan.gpu_bind = ask_.gpu_bind;
    plan.tres_per_task = ask_.tres_per_task;
    plan.allow_task_sharing = ask_.allow_task_sharing;
    plan.distribution = ask_.distribution;
    if (ask_.layout.method == request::NodeDist::plane) plan.plane_size = ask_.layout.plane_size;
    plan.counted = !ask_.overlap;
    plan.exact = ask_.exact;
  }

  /// CPUs of one task on a node: c, or with --cpus-per-gpu what the node's GPUs bring.
  [[nodiscard]] std::uint32_t cpus_per_task_on(const StepNode& node) const {
    if (!ask_.cpus_per_gpu || ask_.cpus_per_task || node.ranks.empty()) return ask_.task_cpus();
    const auto tasks = static_cast<std::uint32_t>(node.ranks.size());
    return std::max(node.share.usable_cpus / tasks, 1U);
  }

  Result<void> bind_tasks(StepPlan& plan) const {
    plan.tasks.assign(plan.ntasks, {});
    if (ask_.bind_gpus_to_ranks && !plan.gpu_bind) {
      std::vector<std::pair<std::uint32_t, std::uint32_t>> nodes;
      for (const StepNode& at : plan.nodes) {
        nodes.emplace_back(at.ranks.size(), at.share.gpus().count());
      }
      plan.gpu_bind = gpu_bind_of_ranks(nodes);
    }
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      StepNode& at = plan.nodes[i];
      const cluster::Node& node = cluster_.nodes[at.share.node];
      const auto tasks = static_cast<std::uint32_t>(at.ranks.size());
      auto binding = bind_node(node, at, tasks);
      if (!binding) {
        return pass(launch_failure(binding.error(), job_.id, plan.id, node.name));
      }
      if (!binding->type.empty()) at.cpu_bind_type = binding->type;
      at.cpu_bind_list = binding->list;
      at.cpu_bind_verbose = ask_.cpu_bind.verbose;
      fill_tasks(plan, i, *binding);
    }
    return {};
  }

  Result<NodeBinding> bind_node(const cluster::Node& node, const StepNode& at,
                                std::uint32_t tasks) const {
    if (cluster_.settings.task_affinity) {
      return bind_cpus(node, at.share.cores, tasks, cpus_per_task_on(at), ask_.cpu_bind);
    }
    NodeBinding binding;  // nobody sets masks
    binding.bound = false;
    binding.masks.assign(tasks, node.threads_of(at.share.cores));
    return binding;
  }

  void fill_tasks(StepPlan& plan, std::size_t node_id, const NodeBinding& binding) const {
    const StepNode& at = plan.nodes[node_id];
    const cluster::Node& node = cluster_.nodes[at.share.node];
    std::vector<Bits> reach = binding.masks;
    if (!binding.bound) reach.assign(reach.size(), Bits::first_n(node.cpus()));
    const auto gpus =
        bind_gpus(node, at.share, reach, plan.gpu_bind, cluster_.settings.constrain_devices);
    for (std::size_t local = 0; local < at.ranks.size(); ++local) {
      TaskPlan& task = plan.tasks[at.ranks[local]];
      task.rank = at.ranks[local];
      task.local_id = static_cast<std::uint32_t>(local);
      task.node_id = static_cast<std::uint32_t>(node_id);
      task.node = at.share.node;
      task.bound = binding.bound;
      task.cpus = binding.masks[local];
      task.gpus = gpus[local].gpus;
      task.messages = gpus[local].messages;
    }
  }

  const cluster::Cluster& cluster_;
  const JobFacts& job_;
  StepAsk ask_;
  std::span<const StepPlan> running_;
  std::size_t rotation_;
};

}  // namespace

std::size_t place_ask(const cluster::Cluster& cluster, const JobFacts& job, StepAsk ask,
                      std::span<const StepPlan> running, std::size_t rotation, StepPlan& plan) {
  return StepPlacer(cluster, job, std::move(ask), running, rotation).place(plan);
}

}  // namespace berth::place
