// What witness.h promises.
#include "rehearsal/witness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "step/spool.h"
#include "wire/step_ids.h"

namespace berth::rehearsal {
namespace {

std::string text_of(const node::NodeStep& at) {
  return fmt::format("{}.{} (attempt {}) on {}", at.key.job, step::step_name(at.key.step),
                     at.key.attempt, at.node);
}

}  // namespace

void Counts::add(const Counts& other) {
  acknowledged += other.acknowledged;
  begun += other.begun;
  begun_again += other.begun_again;
  steps += other.steps;
  replays += other.replays;
  starts += other.starts;
  agents += other.agents;
  boots += other.boots;
  cuts += other.cuts;
  turns += other.turns;
  events += other.events;
}

std::string Counts::text() const {
  return fmt::format(
      "{} submissions acknowledged, {} attempts begun ({} of them again), {} steps of srun, {} "
      "tickets shown again; {} starts of the controller, {} of agents, {} of machines, {} cuts of "
      "the network; {} turns, {} events",
      acknowledged, begun, begun_again, steps, replays, starts, agents, boots, cuts, turns, events);
}

void Witness::say(const std::string& line) {
  // FNV-1a.
  const auto mix = [this](std::uint64_t value) { digest_ = (digest_ ^ value) * 1099511628211ULL; };
  mix(static_cast<std::uint64_t>(agenda_.now().count()));
  for (const char c : line) mix(static_cast<unsigned char>(c));
  if (!schedule_) return;
  const double seconds = std::chrono::duration<double>(agenda_.now()).count() - 1000;
  fmt::print("{:12.6f}  {}\n", seconds, line);
}

void Witness::broken(const std::string& what) {
  say("BROKEN: " + what);
  if (!fault_) fault_ = what;
}

void Witness::acknowledged(const std::string& token, job::JobId id) {
  say(fmt::format("{} was told that it is job {}", token, id));
  const auto [known, fresh] = acknowledged_.try_emplace(token, id);
  if (fresh) ++counts.acknowledged;
  if (known->second != id) {
    broken(fmt::format("doubled: {} is job {} and job {}", token, known->second, id));
  }
}

void Witness::begins(const node::NodeStep& at) {
  say("runs:  " + text_of(at));
  if (!begun_.insert(at).second) broken("doubled: step " + text_of(at) + " is started again");
  if (at.key.step == wire::kBatchStep) {
    ++counts.begun;
    if (at.key.attempt > 1) ++counts.begun_again;
    if (!attempts_.insert({at.key.job, at.key.attempt}).second) {
      broken("doubled: the script of " + text_of(at) + " is started again");
    }
  } else {
    ++counts.steps;
  }
  std::set<node::NodeStep>& running = running_[at.key.job];
  for (const node::NodeStep& other : running) {
    if (other.key.attempt == at.key.attempt) continue;
    broken(fmt::format("both at once: {} begins while {} runs", text_of(at), text_of(other)));
  }
  running.insert(at);
}

void Witness::ends(const node::NodeStep& at) {
  say("over:  " + text_of(at));
  running_[at.key.job].erase(at);
}

void Witness::said_gone(const node::NodeJob& at) {
  for (const node::NodeStep& step : running_[at.job]) {
    if (step.node != at.node || step.key.attempt != at.attempt) continue;
    broken("left: " + text_of(step) + " runs, and its agent says that the job is gone");
  }
}

void Witness::look_for_lost(const job::State& state) {
  for (const auto& [token, id] : acknowledged_) {
    if (state.records_of(id).empty()) broken(fmt::format("lost: job {} ({})", id, token));
  }
}

void Witness::look_at_store(const job::State& state) {
  look_for_lost(state);
  look_at_counters(state);
}

void Witness::look_at_counters(const job::State& state) {
  // What is taken of the nodes, from the jobs that hold it.
  const cluster::Cluster& cluster = state.cluster();
  std::vector<std::uint32_t> jobs(cluster.nodes.size());
  std::vector<std::size_t> cores(cluster.nodes.size());
  for (const auto& [id, job] : state.jobs()) {
    if (!job.running || job.running->released) continue;
    for (const cluster::NodeShare& share : job.allocation.nodes) {
      ++jobs[share.node];
      cores[share.node] += share.cores.count();
    }
  }
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const cluster::NodeUsage& usage = state.usage().at(static_cast<cluster::NodeIndex>(i));
    if (usage.jobs == jobs[i] && usage.cores.count() == cores[i]) continue;
    broken(fmt::format("counters: {} has {} jobs with {} cores, and {} with {} are counted",
                       cluster.nodes[i].name, jobs[i], cores[i], usage.jobs, usage.cores.count()));
  }
}

void Witness::look_at_places(const job::State& state, job::Time now) {
  for (const auto& [id, steps] : running_) {
    for (const node::NodeStep& at : steps) {
      const job::Job* job = state.find(id);
      if (job == nullptr || job->attempt != at.key.attempt) {
        broken("left: " + text_of(at) + " runs, and the controller has begun the job anew");
        continue;
      }
      const bool over = job->flags.completing || !job->running;
      const bool held = job->running && (!over || job->running->not_gone.contains(at.node));
      const auto away = job->may_run_on.find(at.node);
      const bool leased =
          away != job->may_run_on.end() && (away->second == 0 || now <= away->second);
      if (held || leased) continue;
      broken("left: " + text_of(at) + " runs, and the controller takes its node for free of it");
    }
  }
}

void Witness::look_at_the_end(const job::State& state) {
  look_for_lost(state);
  look_at_counters(state);
  for (const auto& [id, job] : state.jobs()) {
    if (job::ended(job.base) && !job.running) continue;
    broken(fmt::format("never ends: job {} is {}{}, {} {}", id, job::base_name(job.base),
                       job.running ? " and holds nodes" : "", job.reason, job.reason_text));
  }
  for (const auto& [id, steps] : running_) {
    for (const node::NodeStep& at : steps) broken("left: " + text_of(at) + " runs at the end");
  }
}

}  // namespace berth::rehearsal
