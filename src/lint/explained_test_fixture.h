// A script from its text to its findings, for tests: parsed, placed on the recorded cluster and
// read as `berth explain` does it, with only what lint needs.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "lint/lint.h"
#include "place/corpus_cluster_test_fixture.h"
#include "place/environment.h"
#include "request/parse.h"

namespace berth::lint::test {

class Explained {
 public:
  explicit Explained(cluster::Cluster cluster = place::corpus::make())
      : cluster_(std::move(cluster)) {}

  Input input;  // to be changed by a test before findings(): environment, directory_exists

  cluster::Cluster& cluster() { return cluster_; }

  std::vector<Finding> sbatch(std::string_view script, std::vector<std::string> words = {}) {
    script_ = script;
    input.script = script_;
    input.script_name = "job.sh";
    words.emplace_back("job.sh");
    if (!prepare(request::Command::sbatch, words)) return check(input);
    read_steps();
    return check(input);
  }

  std::vector<Finding> srun(std::vector<std::string> words) {
    words.emplace_back("./app");
    if (!prepare(request::Command::srun, words)) return check(input);
    if (plans_[0].verdict == place::Verdict::now) {
      step_plans_.push_back(place::place_own_step(cluster_, job_, components_[0]));
      input.steps.push_back({nullptr, &components_[0], &step_plans_.back(), nullptr});
    }
    return check(input);
  }

 private:
  bool prepare(request::Command command, const std::vector<std::string>& words) {
    input.arguments = words;
    input.cluster = &cluster_;
    request::Surroundings around;
    around.environment = input.environment;
    auto parsed = request::parse(command, words, input.script, around);
    if (!parsed) {
      error_ = parsed.error();
      input.parse_error = &error_;
      return false;
    }
    components_ = std::move(parsed->components);
    input.components = &components_;
    const cluster::Usage usage(cluster_);
    for (const auto& component : components_) {
      plans_.push_back(place::place_job(cluster_, usage, component));
    }
    input.plans = &plans_;
    job_.request = components_[0];
    job_.counts = plans_[0].counts;
    job_.allocation = plans_[0].allocation;
    job_.partition = plans_[0].partition;
    job_.time_limit_minutes = plans_[0].time_limit_minutes;
    job_.memory = plans_[0].memory;
    return true;
  }

  void read_steps() {
    const bool placed = plans_[0].verdict == place::Verdict::now;
    const auto environment =
        placed ? place::batch_environment(cluster_, job_) : request::Environment{};
    read_ = script::read_script(script_, environment, {});
    input.read = &read_;
    place::StepState state(job_);
    for (const script::Command& command : read_.commands) {
      if (command.launcher == script::Launcher::none) continue;
      StepSeen seen{&command, nullptr, nullptr, nullptr};
      if (command.launcher == script::Launcher::srun && placed)
        step(command, environment, state, seen);
      input.steps.push_back(seen);
    }
  }

  void step(const script::Command& command, const request::Environment& environment,
            place::StepState& state, StepSeen& seen) {
    request::Surroundings around;
    around.environment = environment;
    around.inside_job = true;
    const std::vector<std::string> words(
        command.words.begin() + static_cast<std::ptrdiff_t>(command.arguments_at),
        command.words.end());
    auto parsed = request::parse(request::Command::srun, words, "", around);
    if (!parsed) {
      errors_.push_back(parsed.error());
      seen.error = &errors_.back();
      return;
    }
    requests_.push_back(std::move(parsed->components[0]));
    seen.request = &requests_.back();
    step_plans_.push_back(place::place_step(cluster_, job_, requests_.back(), state));
    const place::StepPlan& plan = step_plans_.back();
    seen.plan = &plan;
    if (plan.verdict != place::StepVerdict::starts) return;
    state.start(plan);
    if (!command.background && command.chain == 0) state.finish(plan.id);
  }

  cluster::Cluster cluster_;
  std::string script_;
  Error error_;
  std::vector<request::Request> components_;
  std::vector<place::JobPlan> plans_;
  place::JobFacts job_;
  script::Script read_;
  std::deque<Error> errors_;
  std::deque<request::Request> requests_;
  std::deque<place::StepPlan> step_plans_;
};

/// Codes in order, joined by blanks.
inline std::string codes(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& each : findings) out += (out.empty() ? "" : " ") + each.code;
  return out;
}

inline bool has(const std::vector<Finding>& findings, std::string_view code) {
  for (const Finding& each : findings) {
    if (each.code == code) return true;
  }
  return false;
}

}  // namespace berth::lint::test
