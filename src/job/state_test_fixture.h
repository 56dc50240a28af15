// A controller's memory on the cluster of the recordings, with a clock that tests set.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "job/launch.h"
#include "job/state.h"
#include "place/corpus_cluster_test_fixture.h"
#include "wire/step_ids.h"

namespace berth::job::testing {

inline constexpr Time kStart = 1000000;
inline const Caller kAlice{1001, 1001, false};
inline const Caller kBob{1002, 1002, false};
inline const Caller kRoot{0, 0, true};

inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

inline wire::SubmitJob submission(const std::string& line, const std::string& command = "sbatch",
                                  const std::string& token = "") {
  wire::SubmitJob out;
  wire::Asked& asked = *out.mutable_asked();
  asked.set_command(command);
  for (const std::string& word : words_of(line)) asked.add_words(word);
  asked.add_words(command == "sbatch" ? "job.sh" : "app");
  if (command == "sbatch") asked.set_script("#!/bin/sh\nsrun app\n");
  asked.set_directory("/home/alice");
  asked.set_submit_line(command + " " + line);
  asked.set_host("login");
  out.set_interactive(command != "sbatch");
  out.set_token(token);
  return out;
}

class Controller {
 public:
  explicit Controller(Policy policy = {}, cluster::Cluster cluster = place::corpus::make())
      : state(std::move(cluster), std::move(policy)) {
    for (const cluster::Node& node : state.cluster().nodes) up(node.name);
    state.take_effects();
    state.take_dirty();
  }

  void up(const std::string& name, const wire::NodeReport& more = {}) {
    const cluster::Node& node = state.cluster().nodes[*state.cluster().find_node(name)];
    wire::NodeReport report = more;
    report.set_name(name);
    if (report.memory_mb() == 0) report.set_memory_mb(node.memory_mb);
    if (report.gres().empty()) {
      for (const cluster::Gres& gres : node.gres) {
        wire::GresFound* found = report.add_gres();
        found->set_name(gres.name);
        found->set_count(gres.total());
      }
    }
    EXPECT_TRUE(state.register_node(report, {}, now));
  }

  JobId submit(const std::string& line, const std::string& command = "sbatch",
               const Caller& who = kAlice) {
    auto ask = submission(line, command);
    blobs.push_back(ask.asked());
    auto done = state.submit(ask, blobs.size() - 1, who, now);
    if (!done) {
      ADD_FAILURE() << line << ": " << done.error().what();
      return 0;
    }
    return done->id;
  }

  /// As it would be; nothing is submitted.
  Job trial(const std::string& line) {
    auto ask = submission(line, "sbatch");
    ask.set_test_only(true);
    auto done = state.submit(ask, 0, kAlice, now);
    if (done) return std::move(done->trial.front());
    ADD_FAILURE() << line << ": " << done.error().what();
    return {};
  }

  /// Places and starts; false when it does not fit or may not start.
  bool start(JobId id) {
    std::string reason;
    const Job& job = at(id);
    if (!state.eligible(job, now, reason)) return false;
    std::vector<place::JobPlan> plans;
    cluster::Usage usage = state.usage();
    const auto parts = job.het ? state.records_of(job.het->leader) : std::vector<JobId>{id};
    for (const JobId part : parts) {
      plans.push_back(place::place_job(state.cluster(), usage, at(part).what->request));
      if (plans.back().verdict != place::Verdict::now) return false;
      usage.take(plans.back().allocation);
    }
    return state.start(id, plans, false, now);
  }
  JobId started(const std::string& line, const std::string& command = "sbatch") {
    const JobId id = submit(line, command);
    EXPECT_TRUE(start(id));
    begun(id);
    return id;
  }
  void begun(JobId id) {
    for (const std::string& node : std::vector<std::string>(at(id).nodes)) {
      wire::JobBegun message;
      message.set_node(node);
      message.set_job_id(id);
      message.set_attempt(at(id).attempt);
      state.job_begun(message, now);
    }
  }
  void step_ends(JobId id, std::uint32_t step, std::int32_t status) {
    const std::vector<std::string> nodes = at(id).running->open_steps.at(step).nodes;
    for (const std::string& node : nodes) {
      wire::StepEnded message;
      message.set_node(node);
      message.set_job_id(id);
      message.set_attempt(at(id).attempt);
      message.set_step_id(step);
      message.add_statuses(status);
      state.step_ended(message, now);
    }
  }
  void script_ends(JobId id, std::int32_t status = 0) { step_ends(id, wire::kBatchStep, status); }
  /// As a node that was started anew says it of a script.
  void script_lost(JobId id, const std::string& node) {
    wire::StepEnded message;
    message.set_node(node);
    message.set_job_id(id);
    message.set_attempt(at(id).attempt);
    message.set_step_id(wire::kBatchStep);
    message.set_system_failure(true);
    state.step_ended(message, now);
  }
  void gone(JobId id, const std::string& node) {
    wire::JobGone message;
    message.set_node(node);
    message.set_job_id(id);
    message.set_attempt(at(id).attempt);
    state.job_gone(message, now);
  }
  void gone(JobId id) {
    for (const std::string& node : std::vector<std::string>(at(id).nodes)) gone(id, node);
  }
  void runs_to_the_end(JobId id, std::int32_t status = 0) {
    script_ends(id, status);
    gone(id);
  }

  const Job& at(JobId id) const {
    const Job* job = state.find(id);
    if (job == nullptr) throw std::runtime_error("no job " + std::to_string(id));
    return *job;
  }
  std::string shown(JobId id) const {
    const Job& job = at(id);
    std::string out(base_name(job.base));
    for (const std::string& flag : flag_names(job.flags)) out += "+" + flag;
    return out + " " + job.reason;
  }
  template <class E>
  std::vector<E> effects() {
    std::vector<E> out;
    for (const Effect& effect : state.take_effects()) {
      if (const E* one = std::get_if<E>(&effect)) out.push_back(*one);
    }
    return out;
  }
  bool idle() const {
    for (cluster::NodeIndex i = 0; i < state.cluster().nodes.size(); ++i) {
      if (!state.usage().at(i).idle() || !state.node(i).jobs.empty()) return false;
    }
    return true;
  }
  static wire::JobName named(JobId id, std::optional<std::uint32_t> task = {}) {
    wire::JobName out;
    out.set_id(id);
    if (task) out.set_array_task(*task);
    return out;
  }

  Time now = kStart;
  std::vector<wire::Asked> blobs;
  State state;
};

}  // namespace berth::job::testing
