#include "place/step_resources.h"

#include <algorithm>

namespace berth::place {
namespace {

using cluster::GresShare;
using cluster::Node;
using cluster::NodeShare;
using request::GresAsk;

const cluster::Device* device_of(const Node& node, const std::string& name, std::size_t index) {
  const cluster::Gres* gres = node.find_gres(name);
  return gres != nullptr && index < gres->devices.size() ? &gres->devices[index] : nullptr;
}

bool has_type(const Node& node, const std::string& name, std::size_t index,
              const std::string& type) {
  if (type.empty()) return true;
  const cluster::Device* device = device_of(node, name, index);
  return device != nullptr && cluster::is_one_of(device->type, type);
}

bool near_any(const Node& node, const std::string& name, std::size_t index, const Bits& cores) {
  const cluster::Device* device = device_of(node, name, index);
  if (device == nullptr || device->sockets.empty()) return cores.any();
  bool near = false;
  device->sockets.each([&](std::size_t socket) {
    near |= cores.intersects(node.socket_cores(static_cast<std::uint32_t>(socket)));
  });
  return near;
}

GresShare* find_share(std::vector<GresShare>& shares, const std::string& name) {
  const auto at = std::ranges::find(shares, name, &GresShare::name);
  return at == shares.end() ? nullptr : &*at;
}

/// Takes from `room` what a running step holds on the same node.
void subtract(StepRoom& room, const NodeShare& held) {
  room.free_cores -= held.cores;
  room.free_memory_mb -= std::min(room.free_memory_mb, held.memory_mb);
  for (const GresShare& share : held.gres) {
    GresShare* free = find_share(room.free, share.name);
    if (free == nullptr) continue;
    for (std::size_t i = 0; i < share.units.size() && i < free->units.size(); ++i) {
      free->units[i] -= std::min(free->units[i], share.units[i]);
    }
  }
}

void apply_running(StepRoom& room, const StepAsk& ask, std::span<const StepPlan> running) {
  for (const StepPlan& step : running) {
    if (step.launcher) continue;
    for (const StepNode& node : step.nodes) {
      if (node.share.node != room.job->node) continue;
      room.idle = false;
      if (step.counted && !ask.overlap) subtract(room, node.share);
    }
  }
}

/// CPUs of the job's cores as the step may use them.
std::uint32_t cpus_of(const StepRoom& room, const StepAsk& ask, const Bits& cores) {
  const auto count = static_cast<std::uint32_t>(cores.count());
  if (ask.cpu_bind.threads_per_core) return count * threads_used(*room.node, ask);
  const auto all = static_cast<std::uint32_t>(room.job->cores.count());
  if (all == 0) return 0;
  return static_cast<std::uint32_t>(std::uint64_t{room.job->usable_cpus} * count / all);
}

/// The least of a resource without which the node is of no use.
std::vector<GresAsk> least_needed(const StepRoom& room, const StepGres& gres, std::uint32_t nodes) {
  if (gres.basis == GresBasis::per_step) {
    std::vector<GresAsk> asks = gres.asks;
    for (GresAsk& ask : asks) ask.count = ask.count >= nodes ? 1 : 0;
    return asks;
  }
  return gres_needed(room, gres, 1, {});
}

bool gres_fits(const StepRoom& room, const std::vector<GresAsk>& asks) {
  return std::ranges::all_of(
      asks, [&](const GresAsk& ask) { return room.free_of(ask.name, ask.type) >= ask.count; });
}

void check_gres(StepRoom& room, const StepAsk& ask) {
  for (const StepGres& gres : ask.gres) {
    if (!gres_fits(room, least_needed(room, gres, ask.min_nodes))) {
      room.obstacle = StepObstacle::gres;
      room.missing = gres.name;
      return;
    }
    if (gres.basis != GresBasis::per_task || gres.count() == 0) continue;
    const std::uint64_t tasks = ceil_div(room.free_of(gres.name, ""), gres.count());
    room.usable = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(room.usable, product_or_max(tasks, ask.task_cpus())));
  }
}

void check_memory(StepRoom& room, const StepAsk& ask) {
  if (!ask.memory) return;
  const request::Memory& memory = *ask.memory;
  switch (memory.per) {
    case request::MemoryPer::node:
      if (room.free_memory_mb < memory.mb) room.obstacle = StepObstacle::memory;
      break;
    case request::MemoryPer::cpu:
      room.usable = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(room.usable, room.free_memory_mb / memory.mb));
      break;
    case request::MemoryPer::gpu:
      break;  // known when the GPUs are: take_share
  }
}

StepRoom room_on(const cluster::Cluster& cluster, const JobFacts& job, std::size_t position,
                 const StepAsk& ask, std::span<const StepPlan> running) {
  StepRoom room;
  room.position = position;
  room.job = &job.allocation.nodes[position];
  room.node = &cluster.nodes[room.job->node];
  room.free_cores = room.job->cores;
  room.free_memory_mb = room.job->memory_mb;
  room.free = room.job->gres;
  apply_running(room, ask, running);
  if (!room.node->usable) room.obstacle = StepObstacle::node_down;
  const bool untouched = room.free_cores == room.job->cores;
  room.usable = ask.exact || untouched ? cpus_of(room, ask, room.free_cores) : 0;
  if (room.candidate()) check_memory(room, ask);
  if (room.candidate()) check_gres(room, ask);
  const std::uint32_t least = ask.overcommit ? 1 : ask.task_cpus();
  if (room.candidate() && room.usable < least) room.obstacle = StepObstacle::cpus;
  return room;
}

// ---- Taking

/// Devices near an unused core first, then any, ascending.
std::optional<GresShare> take_devices(const StepRoom& room, const std::string& name,
                                      const std::vector<GresAsk>& asks) {
  const auto at = std::ranges::find(room.free, name, &GresShare::name);
  GresShare taken{name, {}};
  if (at == room.free.end()) return std::nullopt;
  std::vector<std::uint64_t> left = at->units;
  taken.units.assign(left.size(), 0);
  for (const GresAsk& ask : asks) {
    std::uint64_t missing = ask.count;
    for (const bool near_only : {true, false}) {
      for (std::size_t i = 0; i < left.size() && missing > 0; ++i) {
        if (!has_type(*room.node, name, i, ask.type)) continue;
        if (near_only && !near_any(*room.node, name, i, room.free_cores)) continue;
        const std::uint64_t units = std::min(missing, left[i]);
        taken.units[i] += units;
        left[i] -= units;
        missing -= units;
      }
    }
    if (missing > 0) return std::nullopt;
  }
  return taken;
}

/// Cores in the order of the second level of -m, `wanted` more of them, added to `chosen`.
void pick_cores(const Node& node, Bits from, std::uint64_t wanted, std::uint64_t per_task,
                request::CoreDist order, Bits& chosen) {
  from -= chosen;
  std::uint64_t run = per_task;
  if (order == request::CoreDist::block) run = UINT64_MAX;
  if (order == request::CoreDist::fcyclic) run = 1;
  for (std::uint32_t socket = 0; chosen.count() < wanted && from.any();
       socket = (socket + 1) % node.sockets) {
    const Bits here = from & node.socket_cores(socket);
    std::uint64_t taken = 0;
    for (const std::size_t core : here.members()) {
      if (taken == run || chosen.count() == wanted) break;
      chosen.set(core);
      from.reset(core);
      ++taken;
    }
  }
}

/// Sockets that every (or any) GPU of the step is near.
Bits cores_near(const Node& node, const Bits& gpus, bool every) {
  Bits cores = every ? Bits::first_n(node.cores()) : Bits();
  gpus.each([&](std::size_t gpu) {
    Bits near;
    const cluster::Device* device = device_of(node, "gpu", gpu);
    if (device == nullptr || device->any_socket(node.sockets)) {
      near = Bits::first_n(node.cores());
    } else {
      device->sockets.each(
          [&](std::size_t s) { near |= node.socket_cores(static_cast<std::uint32_t>(s)); });
    }
    if (every) {
      cores &= near;
    } else {
      cores |= near;
    }
  });
  return cores;
}

/// CPUs of one task, so rounded that a core is not shared when --ntasks-per-core forbids it.
std::uint64_t unshared_cpus(const Node& node, const StepAsk& ask) {
  const std::uint64_t cpus = ask.task_cpus();
  const auto limit = ask.cpu_bind.ntasks_per_core;
  if (!limit || *limit == 0 || *limit >= node.threads_per_core) return cpus;
  const std::uint64_t slot = ceil_div(node.threads_per_core, *limit);
  return ceil_div(cpus, slot) * slot;
}

std::uint64_t cores_wanted(const StepRoom& room, const StepAsk& ask, std::uint32_t tasks,
                           const Bits& gpus) {
  const std::uint32_t threads = threads_used(*room.node, ask);
  if (ask.cpus_per_gpu) {
    const std::uint64_t cpus = std::uint64_t{gpus.count()} * *ask.cpus_per_gpu;
    return ceil_div(std::max<std::uint64_t>(cpus, tasks), threads);
  }
  return ceil_div(tasks * unshared_cpus(*room.node, ask), threads);
}

bool takes_all_cores(const StepRoom& room, const StepAsk& ask, std::uint32_t tasks) {
  if (!ask.exact) return true;
  if (ask.overcommit || ask.cpu_bind.ntasks_per_core) return false;
  return tasks == room.node->cores() || ask.cpus == ask.job_cpus;
}

Result<Bits> take_cores(const StepRoom& room, const StepAsk& ask, std::uint32_t tasks,
                        const Bits& gpus) {
  if (takes_all_cores(room, ask, tasks)) {
    if (room.free_cores == room.job->cores) return room.job->cores;
    return fail(Code::too_many_cpus, {});
  }
  const std::uint64_t wanted = cores_wanted(room, ask, tasks, gpus);
  const std::uint64_t per_task = std::max<std::uint64_t>(ceil_div(wanted, std::max(tasks, 1U)), 1);
  const auto order = ask.cpu_bind.sockets;
  Bits chosen;
  if (gpus.any()) {
    for (const bool every : {true, false}) {
      pick_cores(*room.node, room.free_cores & cores_near(*room.node, gpus, every), wanted,
                 per_task, order, chosen);
    }
  }
  if (gpus.empty() || !ask.enforce_binding) {
    pick_cores(*room.node, room.free_cores, wanted, per_task, order, chosen);
  }
  if (chosen.count() < wanted && !(ask.overcommit && chosen.any())) {
    return fail(Code::too_many_cpus, {});
  }
  return chosen;
}

std::uint64_t memory_taken(const StepRoom& room, const StepAsk& ask, const NodeShare& share) {
  if (!ask.memory) return 0;
  switch (ask.memory->per) {
    case request::MemoryPer::node:
      return ask.memory->mb;
    case request::MemoryPer::cpu:
      return std::min(product_or_max(ask.memory->mb, share.usable_cpus), room.free_memory_mb);
    case request::MemoryPer::gpu:
      return product_or_max(ask.memory->mb, share.gpus().count());
  }
  return 0;
}

}  // namespace

std::uint64_t StepRoom::free_of(const std::string& name, const std::string& type) const {
  const auto at = std::ranges::find(free, name, &GresShare::name);
  if (at == free.end()) return 0;
  std::uint64_t units = 0;
  for (std::size_t i = 0; i < at->units.size(); ++i) {
    if (has_type(*node, name, i, type)) units += at->units[i];
  }
  return units;
}

std::uint32_t StepRoom::tasks(const StepAsk& ask) const {
  std::uint32_t cpus = ask.task_cpus();
  if (ask.cpu_bind.ntasks_per_core == 1U) cpus = std::max(cpus, node->threads_per_core);
  std::uint64_t fit = std::max(usable / cpus, 1U);
  if (ask.ntasks_per_node && ask.layout.method != request::NodeDist::plane) {
    fit = std::min(fit, std::uint64_t{*ask.ntasks_per_node} * ask.task_cpus());
  }
  return static_cast<std::uint32_t>(fit);
}

std::vector<StepRoom> find_room(const cluster::Cluster& cluster, const JobFacts& job,
                                const StepAsk& ask, std::span<const StepPlan> running) {
  std::vector<StepRoom> rooms;
  for (std::size_t i = 0; i < job.allocation.nodes.size(); ++i) {
    rooms.push_back(room_on(cluster, job, i, ask, running));
  }
  return rooms;
}

std::uint32_t threads_used(const Node& node, const StepAsk& ask) {
  return std::clamp(ask.cpu_bind.threads_per_core.value_or(node.threads_per_core), 1U,
                    node.threads_per_core);
}

std::vector<GresAsk> gres_needed(const StepRoom& room, const StepGres& gres, std::uint32_t tasks,
                                 const std::vector<GresAsk>& of_step) {
  std::vector<GresAsk> asks = gres.asks;
  switch (gres.basis) {
    case GresBasis::per_node:
      break;
    case GresBasis::per_task:
      for (GresAsk& ask : asks) ask.count = product_or_max(ask.count, tasks);
      break;
    case GresBasis::per_task_group:
      asks = {{gres.name, "", ceil_div(tasks, gres.tasks_per_unit)}};
      break;
    case GresBasis::per_step:
      asks = of_step;
      break;
    case GresBasis::all_of_job: {
      const GresShare* share = room.job->find(gres.name);
      asks = {{gres.name, "", share == nullptr ? 0 : share->total()}};
      break;
    }
  }
  return asks;
}

std::vector<std::vector<GresAsk>> split_over_nodes(const std::vector<GresAsk>& total,
                                                   std::span<const StepRoom* const> nodes,
                                                   bool overlap) {
  std::vector<std::vector<GresAsk>> parts(nodes.size());
  for (const GresAsk& ask : total) {
    std::uint64_t left = ask.count;
    const bool one_each = ask.count >= nodes.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::uint64_t later = one_each ? nodes.size() - 1 - i : 0;
      std::uint64_t part = left;
      if (i + 1 < nodes.size()) {
        const std::uint64_t most = overlap ? 1 : nodes[i]->free_of(ask.name, ask.type);
        part = std::min(most, left - std::min(left, later));
      }
      parts[i].push_back({ask.name, ask.type, part});
      left -= part;
    }
  }
  return parts;
}

Result<NodeShare> take_share(const StepRoom& room, const StepAsk& ask, std::uint32_t tasks,
                             const std::vector<GresAsk>& of_step) {
  NodeShare share;
  share.node = room.job->node;
  share.tasks = tasks;
  for (const StepGres& gres : ask.gres) {
    const std::vector<GresAsk> asks = gres_needed(room, gres, tasks, of_step);
    if (std::ranges::all_of(asks, [](const GresAsk& a) { return a.count == 0; })) continue;
    auto taken = take_devices(room, gres.name, asks);
    if (!taken) return fail(Code::insufficient_gres, {});
    share.gres.push_back(*std::move(taken));
  }
  auto cores = take_cores(room, ask, tasks, share.gpus());
  if (!cores) return pass(cores.error());
  share.cores = *std::move(cores);
  share.cpus = static_cast<std::uint32_t>(share.cores.count()) * room.node->threads_per_core;
  share.usable_cpus = cpus_of(room, ask, share.cores);
  share.memory_mb = memory_taken(room, ask, share);
  if (ask.memory && share.memory_mb > room.free_memory_mb) {
    return fail(Code::memory_unavailable, {});
  }
  return share;
}

}  // namespace berth::place
