#include "place/gpu_bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "request/counts.h"

namespace berth::place {
namespace {

using cluster::Device;
using cluster::Node;
using request::GpuBind;
using request::GpuBindKind;

/// One node's tasks choosing one after another.
class GpuBinder {
 public:
  GpuBinder(const Node& node, const cluster::NodeShare& share, const GpuBind& bind, bool fenced)
      : node_(node),
        bind_(bind),
        fenced_(fenced),
        gpus_(share.gpus().members()),
        set_(share.gpus()) {
    // A whole GPU carries one task of per_task; a shared one as many as the step has shares of it.
    units_.assign(set_.last() + 1, 0);
    for (const std::size_t gpu : gpus_) units_[gpu] = 1;
    if (const auto* shares = bind.gres == "gpu" ? nullptr : share.find(bind.gres)) {
      for (std::size_t i = 0; i < shares->units.size() && i < units_.size(); ++i) {
        units_[i] = shares->units[i];
      }
    }
    slots_.assign(set_.last() + 1, bind.count);
  }

  TaskGpus choose(std::uint32_t task, const Bits& mask) {
    TaskGpus out;
    switch (bind_.kind) {
      case GpuBindKind::none:
        out.gpus = set_;
        return out;
      case GpuBindKind::closest:
        for (const std::size_t gpu : gpus_) {
          if (cpus_near(gpu).intersects(mask)) out.gpus.set(gpu);
        }
        break;
      case GpuBindKind::single:
        out.gpus = single(task, mask, out.messages);
        break;
      case GpuBindKind::per_task:
        out.gpus = per_task(mask, out.messages);
        break;
      case GpuBindKind::map:
      case GpuBindKind::mask:
        out.gpus = listed(task, out.messages);
        break;
    }
    if (out.gpus.empty()) fall_back(task, out);
    if (bind_.verbose) out.messages.push_back(verbose_line(out.gpus));
    return out;
  }

 private:
  [[nodiscard]] const Device* device(std::size_t gpu) const {
    const cluster::Gres* gres = node_.find_gres("gpu");
    return gres != nullptr && gpu < gres->devices.size() ? &gres->devices[gpu] : nullptr;
  }

  [[nodiscard]] Bits cpus_near(std::size_t gpu) const {
    const Device* d = device(gpu);
    if (d == nullptr || d->any_socket(node_.sockets)) return Bits::first_n(node_.cpus());
    Bits cores;
    d->sockets.each([&](std::size_t socket) {
      cores |= node_.socket_cores(static_cast<std::uint32_t>(socket));
    });
    return node_.threads_of(cores);
  }

  /// GPUs in the order in which gres.conf describes them.
  [[nodiscard]] std::vector<std::size_t> by_record() const {
    std::vector<std::size_t> order = gpus_;
    std::ranges::sort(order, {}, [&](std::size_t gpu) {
      const Device* d = device(gpu);
      return std::pair(d == nullptr ? 0 : d->record, gpu);
    });
    return order;
  }

  Bits single(std::uint32_t task, const Bits& mask, std::vector<Message>& messages) {
    if (gpus_.size() == 1) return set_;
    const std::vector<std::size_t> order = by_record();
    const auto take_first = [&](auto suits) -> std::optional<std::size_t> {
      for (const std::size_t gpu : order) {
        if (slots_[gpu] == 0 || !suits(gpu)) continue;
        --slots_[gpu];
        return gpu;
      }
      return std::nullopt;
    };
    auto gpu = take_first([&](std::size_t g) { return cpus_near(g).contains(mask); });
    if (!gpu) gpu = take_first([&](std::size_t g) { return cpus_near(g).intersects(mask); });
    if (!gpu) gpu = take_first([](std::size_t) { return true; });
    if (!gpu) {
      messages.push_back(
          {Severity::error,
           fmt::format("_get_single_usable_gres Can't find free slot for local_proc_id = {}, "
                       "continue using block distribution",
                       task)});
      gpu = gpus_[task % gpus_.size()];
    }
    return Bits::of({*gpu});
  }

  Bits per_task(const Bits& mask, std::vector<Message>& messages) {
    Bits taken;
    std::uint64_t missing = bind_.count;
    const auto take = [&](std::size_t gpu) {
      const std::uint64_t units = std::min(missing, units_[gpu]);
      if (units == 0) return;
      units_[gpu] -= units;
      missing -= units;
      taken.set(gpu);
    };
    for (const std::size_t gpu : gpus_) {
      if (cpus_near(gpu).intersects(mask)) take(gpu);
    }
    for (const std::size_t gpu : gpus_) take(gpu);
    if (missing > 0) {
      messages.push_back(
          {Severity::error, fmt::format("Not enough gres to bind {} per task", bind_.count)});
    }
    return taken;
  }

  Bits listed(std::uint32_t task, std::vector<Message>& messages) const {
    if (bind_.list.empty()) return set_;
    const Bits& entry = bind_.list[task % bind_.list.size()];
    const cluster::Gres* gres = node_.find_gres("gpu");
    const std::size_t limit = fenced_ ? gpus_.size() : gres == nullptr ? 0 : gres->devices.size();
    if (entry.any() && entry.last() >= limit) {
      messages.push_back({Severity::error, "Invalid map or mask value specified."});
    }
    if (!fenced_) return entry & set_;
    Bits out;
    entry.each([&](std::size_t position) {
      if (position < gpus_.size()) out.set(gpus_[position]);
    });
    return out;
  }

  void fall_back(std::uint32_t task, TaskGpus& out) const {
    out.messages.push_back(
        {Severity::error,
         fmt::format("Bind request {} does not specify any devices within the allocation for task "
                     "{}. Binding to the first device in the allocation instead.",
                     bind_.text, task)});
    out.gpus = Bits::of({gpus_.front()});
  }

  [[nodiscard]] Message verbose_line(const Bits& bound) const {
    const Bits local = fenced_ ? Bits::first_n(bound.count()) : bound;
    return {Severity::bare, fmt::format("gpu-bind: usable_gres=0x{}; bit_alloc=0x{}; local_inx={}; "
                                        "global_list={}; local_list={}",
                                        bound.hex_padded(1), set_.hex_padded(1), fenced_ ? 1 : 0,
                                        bound.list(), local.list())};
  }

  const Node& node_;
  const GpuBind& bind_;
  bool fenced_;
  std::vector<std::size_t> gpus_;  // the step's, ascending
  Bits set_;
  std::vector<std::uint64_t> units_;  // left for per_task, by device
  std::vector<std::uint32_t> slots_;  // left for single, by device
};

}  // namespace

std::vector<TaskGpus> bind_gpus(const Node& node, const cluster::NodeShare& share,
                                const std::vector<Bits>& masks, const std::optional<GpuBind>& bind,
                                bool fenced) {
  std::vector<TaskGpus> tasks(masks.size());
  const Bits all = share.gpus();
  if (all.empty()) return tasks;
  if (!bind) {
    for (TaskGpus& task : tasks) task.gpus = all;
    return tasks;
  }
  GpuBinder binder(node, share, *bind, fenced);
  for (std::size_t i = 0; i < masks.size(); ++i) {
    tasks[i] = binder.choose(static_cast<std::uint32_t>(i), masks[i]);
  }
  return tasks;
}

std::optional<GpuBind> gpu_bind_of_ranks(
    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& nodes) {
  std::uint32_t gpus_each = UINT32_MAX;
  std::uint32_t tasks_each = 1;
  for (const auto& [tasks, gpus] : nodes) {
    if (tasks == 0) continue;
    if (gpus == 0) return std::nullopt;
    gpus_each = std::min(gpus_each, gpus / tasks);
    tasks_each = std::max(tasks_each, (tasks + gpus - 1) / gpus);
  }
  GpuBind bind;
  bind.kind = gpus_each > 0 ? GpuBindKind::per_task : GpuBindKind::single;
  bind.count = gpus_each > 0 ? gpus_each : tasks_each;
  bind.text = fmt::format("gres/gpu:{}:{}", gpus_each > 0 ? "per_task" : "single", bind.count);
  return bind;
}

std::optional<GpuBind> implied_gpu_bind(const std::vector<request::GresAsk>& per_task,
                                        std::optional<std::uint32_t> ntasks_per_gpu) {
  GpuBind bind;
  for (const char* name : {"gpu", "shard"}) {
    const std::uint64_t count = request::total_of(per_task, name);
    if (count == 0) continue;
    bind.kind = GpuBindKind::per_task;
    bind.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX));
    bind.gres = name;
    bind.text = fmt::format("gres/{}:per_task:{}", name, count);
    return bind;
  }
  if (!ntasks_per_gpu) return std::nullopt;
  bind.kind = GpuBindKind::single;
  bind.count = *ntasks_per_gpu;
  bind.text = fmt::format("gres/gpu:single:{}", bind.count);
  return bind;
}

}  // namespace berth::place
