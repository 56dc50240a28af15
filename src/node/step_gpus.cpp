// What step_gpus.h promises.
#include "node/step_gpus.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "step/spool.h"
#include "step/task_use.h"
#include "wire/step_figures.h"

namespace berth::node {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
/// Programs that start programs; a loop in what /proc says must not hold us up.
constexpr int kMostAncestors = 64;

/// 0 = none, or it is gone.
std::uint32_t parent_of(std::uint32_t pid) {
  const auto stat = step::read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) return 0;
  // "4711 (name) S 12 …"
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= stat->size()) return 0;
  std::uint32_t parent = 0;
  std::from_chars(stat->data() + name_end + 4, stat->data() + stat->size(), parent);
  return parent;
}

std::uint64_t whole(double value) {
  return static_cast<std::uint64_t>(std::lround(value));
}

}  // namespace

std::optional<ProcessMark> mark_of_process(std::uint32_t pid) {
  struct stat owner{};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0) return std::nullopt;
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    ProcessMark mark;
    mark.step = step::started_with(static_cast<pid_t>(pid), "BERTH_STEP");
    if (!mark.step.empty()) {
      mark.rank = step::started_with(static_cast<pid_t>(pid), "SLURM_PROCID");
      mark.uid = owner.st_uid;
      return mark;
    }
    pid = parent_of(pid);
  }
  return std::nullopt;
}

void StepGpus::begin(Step step) {
  const NodeStep at = step.at;
  Metered& known = steps_[at];
  known.step = std::move(step);
  if (!known.step.has_gpus || known.step.ranks.empty()) return;
  for (const std::uint32_t rank : known.step.ranks) known.tasks[rank];
  marked_[known.step.mark] = &known;
}

void StepGpus::forget(const NodeStep& at) {
  told_.erase(at);
  const auto found = steps_.find(at);
  if (found == steps_.end()) return;
  const auto marked = marked_.find(found->second.step.mark);
  if (marked != marked_.end() && marked->second == &found->second) marked_.erase(marked);
  steps_.erase(found);
}

void StepGpus::keep(const std::set<NodeStep>& running) {
  std::vector<NodeStep> gone;
  for (const auto& [at, step] : steps_) {
    if (!running.contains(at)) gone.push_back(at);
  }
  for (const NodeStep& at : gone) forget(at);
}

std::optional<StepGpus::Task> StepGpus::whose(std::uint32_t pid) {
  const auto mark = look_(pid);
  if (!mark) return std::nullopt;
  const auto at = marked_.find(mark->step);
  // A variable can be set by anybody: another user's process is not the step's.
  if (at == marked_.end() || at->second->step.uid != mark->uid) return std::nullopt;
  std::uint32_t rank = 0;
  const char* const end = mark->rank.data() + mark->rank.size();
  const auto [stopped, error] = std::from_chars(mark->rank.data(), end, rank);
  const bool known = error == std::errc() && stopped == end && at->second->tasks.contains(rank);
  return Task{at->second, known ? rank : at->second->tasks.begin()->first};
}

void StepGpus::add(const GpuRound& round) {
  if (marked_.empty()) return;
  std::map<std::uint32_t, std::optional<Task>> owners;  // by pid
  TasksOn on;
  std::map<Task, std::uint64_t> memory;
  for (const survey::Process& process : round.processes) {
    const auto [entry, fresh] = owners.try_emplace(process.pid);
    if (fresh) entry->second = whose(process.pid);
    if (!entry->second) continue;
    on[process.gpu].insert(*entry->second);
    memory[*entry->second] += process.memory_mb.value_or(0);
  }
  std::map<Task, double> busy;
  for (const auto& [gpu, tasks] : on) {
    const auto sample = round.samples.find(gpu);
    if (sample == round.samples.end()) continue;
    const double share = static_cast<double>(sample->second.busy_percent.value_or(0)) /
                         static_cast<double>(tasks.size());
    for (const Task& task : tasks) busy[task] += share;
  }
  for (auto& [mark, step] : marked_) {
    ++step->rounds;
    for (const auto& [number, index] : step->step.gpus) {
      const auto sample = round.samples.find(number);
      if (sample == round.samples.end() || !sample->second.power_mw) continue;
      step->energy_mj = step->energy_mj.value_or(0) + *sample->second.power_mw;  // of one second
    }
    look_for_crowd(round, on, *step);
    for (auto& [rank, use] : step->tasks) {
      const Task task{step, rank};
      const auto seen = memory.find(task);
      use.memory_now_mb = seen == memory.end() ? 0 : seen->second;
      use.memory_most_mb = std::max(use.memory_most_mb, use.memory_now_mb);
      const auto worked = busy.find(task);
      if (worked == busy.end()) continue;
      use.busy_sum += worked->second;
      use.busy_most = std::max(use.busy_most, worked->second);
    }
  }
}

void StepGpus::look_for_crowd(const GpuRound& round, const TasksOn& on, Metered& step) {
  Crowd crowd{.at = step.step.at, .ranks = {}, .crowded = {}, .idle = {}};
  for (const auto& [number, index] : step.step.gpus) {
    Bits ranks;
    if (const auto here = on.find(number); here != on.end()) {
      for (const Task& task : here->second) {
        if (task.step == &step) ranks.set(task.rank);
      }
    }
    const auto sample = round.samples.find(number);
    const bool busy = sample == round.samples.end() || sample->second.busy_percent.value_or(1) > 0;
    if (ranks.empty() && !busy) crowd.idle.set(index);
    if (ranks.count() < 2) continue;
    crowd.crowded.set(index);
    crowd.ranks |= ranks;
  }
  if (crowd.idle.empty() || crowd.crowded.empty()) {
    step.crowded_rounds = 0;
    return;
  }
  ++step.crowded_rounds;
  step.crowd = std::move(crowd);
}

std::vector<StepGpus::Crowd> StepGpus::take_crowds() {
  // Programs take their time to start; one that has begun on a single GPU goes on there.
  constexpr int kLooks = 10;
  std::vector<Crowd> out;
  for (auto& [mark, step] : marked_) {
    if (step->crowded_rounds == kLooks && told_.insert(step->step.at).second) {
      out.push_back(step->crowd);
    }
  }
  return out;
}

void StepGpus::put(const NodeStep& at, bool ended, wire::StepFigures& figures) const {
  const auto found = steps_.find(at);
  if (found == steps_.end() || found->second.rounds == 0) return;
  for (const auto& [rank, use] : found->second.tasks) {
    const std::uint64_t most = use.memory_most_mb * kMiB;
    wire::note(*figures.mutable_gpu_memory(), rank, ended ? most : use.memory_now_mb * kMiB, most);
    wire::note(*figures.mutable_gpu_busy(), rank,
               whole(use.busy_sum / static_cast<double>(found->second.rounds)),
               whole(use.busy_most));
  }
  if (const auto energy = found->second.energy_mj) {
    wire::note(*figures.mutable_gpu_energy(), found->second.tasks.begin()->first, *energy, *energy);
  }
}

}  // namespace berth::node
