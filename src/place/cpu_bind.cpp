#include "place/cpu_bind.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::place {
namespace {

using cluster::Node;
using request::CoreDist;
using request::CpuBindKind;

std::uint32_t usable_threads(const Node& node, const CpuBindAsk& ask) {
  return std::clamp(ask.threads_per_core.value_or(node.threads_per_core), 1U,
                    node.threads_per_core);
}

/// Hands out the CPUs of a step one by one, within the limits of cores and sockets. Each group (a
/// socket, or the whole node for block) has a cursor of its own.
class CpuWalk {
 public:
  CpuWalk(const Node& node, const Bits& cpus, const CpuBindAsk& ask, BindLevel level)
      : node_(node), ask_(ask), level_(level) {
    const bool one_group = ask.sockets == CoreDist::block;
    groups_.resize(one_group ? 1 : node.sockets);
    cpus.each([&](std::size_t cpu) { groups_[one_group ? 0 : socket_of(cpu)].push_back(cpu); });
    reset();
  }

  /// The CPUs of the next task.
  Bits next_task(std::uint32_t count) {
    Bits taken;
    if (started_ && ask_.sockets == CoreDist::cyclic) advance();
    started_ = true;
    std::size_t dry = 0;  // guards against limits that leave no CPU at all
    std::size_t last = 0;
    while (taken.count() < count && dry <= 2 * groups_.size()) {
      const auto cpu = take();
      if (!cpu) {
        if (all_exhausted()) reset();
        advance();
        ++dry;
        continue;
      }
      dry = 0;
      last = *cpu;
      if (taken.test(*cpu)) break;  // went round: everything there is has been taken
      taken.set(*cpu);
      last_group_ = group_;
      if (ask_.sockets == CoreDist::fcyclic) advance();
    }
    if (taken.any()) finish(last, count);
    return taken;
  }

 private:
  [[nodiscard]] std::size_t core_of(std::size_t cpu) const { return cpu / node_.threads_per_core; }
  [[nodiscard]] std::size_t socket_of(std::size_t cpu) const {
    return node_.socket_of(core_of(cpu));
  }
  [[nodiscard]] std::uint32_t threads_allowed() const { return usable_threads(node_, ask_); }

  [[nodiscard]] bool allowed(std::size_t cpu) const {
    if (threads_used_[core_of(cpu)] >= threads_allowed()) return false;
    if (ask_.ntasks_per_core && tasks_on_core_[core_of(cpu)] >= *ask_.ntasks_per_core) return false;
    return ask_.sockets != CoreDist::block || !ask_.ntasks_per_socket ||
           tasks_on_socket_[socket_of(cpu)] < *ask_.ntasks_per_socket;
  }

  [[nodiscard]] std::size_t next_allowed(std::size_t group) const {
    std::size_t at = cursors_[group];
    while (at < groups_[group].size() && !allowed(groups_[group][at])) ++at;
    return at;
  }

  std::optional<std::size_t> take() {
    const std::size_t at = next_allowed(group_);
    if (at >= groups_[group_].size()) return std::nullopt;
    const std::size_t cpu = groups_[group_][at];
    cursors_[group_] = at + 1;
    ++threads_used_[core_of(cpu)];
    return cpu;
  }

  void advance() { group_ = (group_ + 1) % groups_.size(); }

  [[nodiscard]] bool all_exhausted() const {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (next_allowed(g) < groups_[g].size()) return false;
    }
    return true;
  }

  void reset() {
    cursors_.assign(groups_.size(), 0);
    threads_used_.assign(node_.cores(), 0);
    tasks_on_core_.assign(node_.cores(), 0);
    tasks_on_socket_.assign(node_.sockets, 0);
  }

  /// Counts the task where it ended; at core level the rest of its last core is left alone.
  void finish(std::size_t last, std::uint32_t count) {
    ++tasks_on_core_[core_of(last)];
    ++tasks_on_socket_[socket_of(last)];
    if (level_ != BindLevel::cores && ask_.ntasks_per_core != 1U) return;
    const std::uint32_t threads = node_.threads_per_core;
    cursors_[last_group_] += count < threads ? threads - count : count % threads;
  }

  const Node& node_;
  const CpuBindAsk& ask_;
  BindLevel level_;
  std::vector<std::vector<std::size_t>> groups_;
  std::vector<std::size_t> cursors_;
  std::vector<std::uint32_t> threads_used_, tasks_on_core_, tasks_on_socket_;
  std::size_t group_ = 0;
  std::size_t last_group_ = 0;
  bool started_ = false;
};

BindLevel automatic_level(const Node& node, const Bits& cores, std::uint64_t wanted_cpus) {
  std::uint64_t whole_sockets = 0;
  bool part_socket = false;
  for (std::uint32_t s = 0; s < node.sockets; ++s) {
    const auto owned = (cores & node.socket_cores(s)).count();
    if (owned == node.cores_per_socket) {
      ++whole_sockets;
    } else if (owned > 0) {
      part_socket = true;
    }
  }
  if (wanted_cpus == whole_sockets && !part_socket) return BindLevel::sockets;
  if (wanted_cpus == cores.count()) return BindLevel::cores;
  if (wanted_cpus == std::uint64_t{cores.count()} * node.threads_per_core)
    return BindLevel::threads;
  return BindLevel::automatic;
}

/// From the CPUs a task was dealt to the units of the level it touches.
Bits widened(const Node& node, const Bits& available, const Bits& taken, BindLevel level) {
  if (level == BindLevel::threads) return taken;
  // Without knowledge of NUMA a node is one locality domain.
  if (level == BindLevel::ldoms) return Bits::first_n(node.cpus());
  Bits out;
  taken.each([&](std::size_t cpu) {
    const std::size_t core = cpu / node.threads_per_core;
    out |= node.threads_of(level == BindLevel::cores ? Bits::of({core})
                                                     : node.socket_cores(node.socket_of(core)));
  });
  return out & available;
}

std::string mask_list(const Node& node, const std::vector<Bits>& masks) {
  std::string list;
  for (const Bits& mask : masks) {
    if (!list.empty()) list += ',';
    list += padded_mask(node, mask);
  }
  return list;
}

Error refusal(std::string text) {
  return fail(Code::cpu_bind_failed, std::move(text), {}, 192).error();
}

Result<NodeBinding> bind_at_level(const Node& node, const Bits& cores, std::uint32_t tasks,
                                  std::uint32_t cpus_per_task, const CpuBindAsk& ask,
                                  BindLevel level) {
  const Bits available = node.threads_of(cores);
  const std::uint64_t usable = std::uint64_t{cores.count()} * usable_threads(node, ask);
  if (usable < tasks) {
    if (ask.overcommit) return unplaced(node, cores, tasks);
    return pass(refusal({}));
  }
  std::uint32_t count = cpus_per_task;
  if (std::uint64_t{tasks} * count > usable) count = static_cast<std::uint32_t>(usable / tasks);
  CpuWalk walk(node, available, ask, level);
  NodeBinding binding;
  binding.type = "mask_cpu:";
  for (std::uint32_t task = 0; task < tasks; ++task) {
    binding.masks.push_back(widened(node, available, walk.next_task(count), level));
  }
  binding.list = mask_list(node, binding.masks);
  return binding;
}

/// Masks and maps are re-printed: masks in lower case without 0x, maps as numbers.
std::string reprinted(const std::vector<Bits>& entries, bool as_masks) {
  std::string list;
  for (const Bits& entry : entries) {
    if (!list.empty()) list += ',';
    list += as_masks ? entry.hex().substr(2) : entry.list();
  }
  return list;
}

Result<NodeBinding> bind_cpu_list(const Node& node, const Bits& available, std::uint32_t tasks,
                                  const request::CpuBind& bind) {
  const bool fits =
      std::ranges::all_of(bind.list, [&](const Bits& entry) { return available.contains(entry); });
  if (!fits) {
    return pass(
        refusal(fmt::format("CPU binding outside of job step allocation, allocated CPUs are: {}.",
                            padded_mask(node, available))));
  }
  NodeBinding binding;
  const bool is_mask = bind.kind == CpuBindKind::mask_cpu;
  binding.type = is_mask ? "mask_cpu:" : "map_cpu:";
  binding.list = reprinted(bind.list, is_mask);
  for (std::uint32_t task = 0; task < tasks; ++task) {
    binding.masks.push_back(bind.list.empty() ? available : bind.list[task % bind.list.size()]);
  }
  return binding;
}

Result<NodeBinding> bind_ldoms(const Node& node, const Bits& available, std::uint32_t tasks,
                               const request::CpuBind& bind) {
  const bool ranked = bind.kind == CpuBindKind::rank_ldom;
  const bool is_mask = bind.kind == CpuBindKind::mask_ldom;
  const std::string word = ranked ? "rank_ldom" : is_mask ? "mask_ldom" : "map_ldom";
  if (available.count() != node.cpus()) {
    return pass(refusal("Entire node must be allocated for " + word));
  }
  NodeBinding binding;
  binding.type = ranked ? word : word + ":";
  if (!ranked) binding.list = reprinted(bind.list, is_mask);
  binding.masks.assign(tasks, available);
  return binding;
}

}  // namespace

BindLevel implied_level(const request::Request& request) {
  using request::Opt;
  if (request.threads_per_core) return BindLevel::threads;
  if (request.hint) {
    const bool threads = *request.hint == request::Hint::multithread ||
                         *request.hint == request::Hint::nomultithread;
    return threads ? BindLevel::threads : BindLevel::cores;
  }
  if (request.ntasks_per_core) {
    return *request.ntasks_per_core == 1 ? BindLevel::cores : BindLevel::threads;
  }
  if (request.ntasks_per_socket) return BindLevel::sockets;
  if (request.given.has(Opt::extra_node_info)) {
    if (request.cores_per_socket) return BindLevel::cores;
    if (request.sockets_per_node) return BindLevel::sockets;
  }
  return BindLevel::automatic;
}

Result<NodeBinding> bind_cpus(const Node& node, const Bits& cores, std::uint32_t tasks,
                              std::uint32_t cpus_per_task, const CpuBindAsk& ask) {
  const Bits available = node.threads_of(cores);
  if (ask.explicit_bind && ask.explicit_bind->kind) {
    switch (*ask.explicit_bind->kind) {
      case CpuBindKind::none:
        return unplaced(node, cores, tasks);
      case CpuBindKind::map_cpu:
      case CpuBindKind::mask_cpu:
        return bind_cpu_list(node, available, tasks, *ask.explicit_bind);
      case CpuBindKind::rank_ldom:
      case CpuBindKind::map_ldom:
      case CpuBindKind::mask_ldom:
        return bind_ldoms(node, available, tasks, *ask.explicit_bind);
      default:
        break;  // levels: ask.level says which
    }
  }
  BindLevel level = ask.level;
  if (level == BindLevel::automatic) {
    level = automatic_level(node, cores, std::uint64_t{tasks} * cpus_per_task);
  }
  if (level == BindLevel::automatic) {
    NodeBinding shared;
    shared.type = "mask_cpu:";
    shared.list = padded_mask(node, available);
    shared.masks.assign(tasks, available);
    return shared;
  }
  return bind_at_level(node, cores, tasks, cpus_per_task, ask, level);
}

Error launch_failure(const Error& cause, std::uint32_t job, std::uint32_t step,
                     const std::string& node) {
  const std::string_view text = slurm_text(Code::cpu_bind_failed);
  Error error;
  error.code = Code::cpu_bind_failed;
  error.exit_code = 192;
  error.hint = cause.hint;
  for (const Message& line : cause.messages) {
    if (!line.text.empty()) error.messages.push_back(line);
  }
  error.messages.push_back(
      {Severity::error,
       fmt::format("Task launch for StepId={}.{} failed on node {}: {}", job, step, node, text)});
  error.messages.push_back({Severity::error, fmt::format("Application launch failed: {}", text)});
  error.messages.push_back({Severity::plain, "Job step aborted"});
  return error;
}

NodeBinding unplaced(const Node& node, const Bits& cores, std::uint32_t tasks) {
  const Bits available = node.threads_of(cores);
  NodeBinding binding;
  binding.masks.assign(tasks, available);
  if (available.count() == node.cpus()) {
    binding.bound = false;
    binding.type = "none";
  } else {
    binding.type = "mask_cpu:";
    binding.list = padded_mask(node, available);
  }
  return binding;
}

std::string padded_mask(const Node& node, const Bits& cpus) {
  return "0x" + cpus.hex_padded((node.cpus() + 3) / 4);
}

}  // namespace berth::place
