// Jobs for tests of steps: an allocation written down by hand, and srun lines parsed as inside the
// job's batch script.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "place/corpus_cluster_test_fixture.h"
#include "place/environment.h"
#include "place/step.h"
#include "request/counts.h"
#include "request/parse.h"

namespace berth::place::corpus {

inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// What the job holds on one node.
struct On {
  std::string node;
  Bits cores;
  Bits gpus;
  std::uint64_t memory_mb = 65536;
  std::vector<std::uint64_t> shards;  // by GPU
};

inline request::Request parsed(request::Command command, const std::string& line,
                               const request::Environment& environment = {}) {
  request::Surroundings around;
  around.environment = environment;
  around.inside_job = !environment.empty();
  std::vector<std::string> words = words_of(line);
  if (command != request::Command::sbatch) words.push_back("app");
  if (command == request::Command::sbatch) words.push_back("job.sh");
  const auto result = request::parse(command, words, "#!/bin/sh\napp\n", around);
  if (!result) {
    ADD_FAILURE() << line << ": " << result.error().what();
    return {};
  }
  return result->components.front();
}

inline cluster::NodeShare share_of(const cluster::Cluster& cluster, const On& on,
                                   const request::Request& request) {
  cluster::NodeShare share;
  share.node = *cluster.find_node(on.node);
  const cluster::Node& node = cluster.nodes[share.node];
  share.cores = on.cores;
  const auto cores = static_cast<std::uint32_t>(on.cores.count());
  share.cpus = cores * node.threads_per_core;
  share.usable_cpus = cores * std::min(request.threads_per_core.value_or(node.threads_per_core),
                                       node.threads_per_core);
  share.memory_mb = on.memory_mb;
  if (on.gpus.any()) {
    cluster::GresShare gpus{"gpu",
                            std::vector<std::uint64_t>(node.find_gres("gpu")->devices.size())};
    on.gpus.each([&](std::size_t i) { gpus.units[i] = 1; });
    share.gres.push_back(gpus);
  }
  if (!on.shards.empty()) share.gres.push_back({"shard", on.shards});
  return share;
}

class Job {
 public:
  Job(const cluster::Cluster& cluster, const std::string& options, const std::vector<On>& nodes,
      request::Command command = request::Command::sbatch)
      : cluster_(cluster), state_(facts_) {
    facts_.id = 7;
    facts_.request = parsed(command, options);
    facts_.name = facts_.request.job_name.value_or("job.sh");
    facts_.partition = "debug";
    facts_.memory = facts_.request.memory;
    auto counts = request::derive_counts(facts_.request);
    if (counts) {
      facts_.counts = *counts;
    } else {
      ADD_FAILURE() << options << ": " << counts.error().what();
    }
    for (const On& on : nodes) {
      facts_.allocation.nodes.push_back(share_of(cluster, on, facts_.request));
    }
  }

  /// Plans an srun of the batch script; nothing starts.
  StepPlan plan(const std::string& line) {
    return place_step(cluster_, facts_, srun(line), state_);
  }
  /// Plans and starts it.
  StepPlan start(const std::string& line) {
    StepPlan plan_ = plan(line);
    if (plan_.verdict == StepVerdict::starts) state_.start(plan_);
    return plan_;
  }
  /// Starts it and lets it end.
  StepPlan run(const std::string& line) {
    StepPlan plan_ = start(line);
    state_.finish(plan_.id);
    return plan_;
  }
  request::Request srun(const std::string& line) const {
    return parsed(request::Command::srun, line, batch_environment(cluster_, facts_));
  }

  [[nodiscard]] const JobFacts& facts() const { return facts_; }
  JobFacts& facts() { return facts_; }
  StepState& state() { return state_; }

 private:
  const cluster::Cluster& cluster_;
  JobFacts facts_;
  StepState state_;
};

/// "1,100,2": the masks of the tasks by rank, without 0x.
inline std::string masks(const StepPlan& plan) {
  std::string out;
  for (const TaskPlan& task : plan.tasks) {
    if (!out.empty()) out += ',';
    out += task.bound ? task.cpus.hex().substr(2) : "-";
  }
  return out;
}

/// "0|2|0,1": the GPUs of the tasks by rank.
inline std::string gpus(const StepPlan& plan) {
  std::string out;
  for (const TaskPlan& task : plan.tasks) {
    if (task.rank > 0) out += '|';
    out += task.gpus.list();
  }
  return out;
}

/// "gpu1:0,1 gpu2:2": the ranks of each node.
inline std::string ranks(const cluster::Cluster& cluster, const StepPlan& plan) {
  std::string out;
  for (const StepNode& node : plan.nodes) {
    if (!out.empty()) out += ' ';
    out += cluster.nodes[node.share.node].name + ':';
    for (std::size_t i = 0; i < node.ranks.size(); ++i) {
      out += (i > 0 ? "," : "") + std::to_string(node.ranks[i]);
    }
  }
  return out;
}

/// "gpu1 gpu2": the nodes of the step.
inline std::string nodes(const cluster::Cluster& cluster, const StepPlan& plan) {
  std::string out;
  for (const StepNode& node : plan.nodes) {
    out += (out.empty() ? "" : " ") + cluster.nodes[node.share.node].name;
  }
  return out;
}

inline std::uint32_t cpus(const StepPlan& plan) {
  std::uint32_t sum = 0;
  for (const StepNode& node : plan.nodes) sum += node.share.cpus;
  return sum;
}

/// srun's lines for a refusal.
inline std::string lines(const StepPlan& plan) {
  std::string out;
  for (const Message& message : plan.error.messages) {
    out += (out.empty() ? "" : "\n") + render(message, "srun");
  }
  return out;
}

}  // namespace berth::place::corpus
