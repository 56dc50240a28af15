// A cgroup for each step, in the v2 hierarchy wherever it is mounted: for membership, killing and
// knowing that nothing is left. A directory is used once: what is born into a cgroup that was
// killed before is killed at birth.
//
//   a machine's own node   <slice>/slurmstepd.scope/job_5/step_0: where exporters look for jobs
//   pretended nodes, and agents without root   <own cgroup>/berth.<spool>/node.5.1.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "step/spool.h"

namespace berth::node {

class Cgroups {
 public:
  struct Wish {
    std::string spool;
    bool by_job = false;         // of a real node: a directory for each job
    bool whole_machine = false;  // and the agent is root: where exporters look
    std::string slice;
  };
  /// None: steps are kept together by other means.
  Cgroups() = default;
  /// Says in `why_not` what stood in the way.
  static Cgroups find(const Wish& wish, std::string& why_not);

  [[nodiscard]] bool usable() const { return !base_.empty(); }
  [[nodiscard]] const std::string& base() const { return base_; }
  /// Of this agent's directories in the hierarchies of v1: "slurm", or another name where another
  /// agent of this machine has that one.
  [[nodiscard]] const std::string& v1_name() const { return v1_name_; }

  /// Of a step's cgroup, below the base.
  [[nodiscard]] std::string name_of(const std::string& node, const step::StepKey& key) const;
  /// Of what runs in a job beside its steps.
  [[nodiscard]] std::string name_of(const std::string& node, std::uint32_t job,
                                    std::uint32_t attempt, const std::string& name) const;
  /// A fresh one, "" when there is none to be had.
  [[nodiscard]] std::string make(const std::string& name) const;
  [[nodiscard]] std::string path_of(const std::string& name) const { return base_ + '/' + name; }
  /// Those that exist: of steps, and what others made beside them.
  [[nodiscard]] std::vector<std::string> names() const;
  /// The job in whose group this name is, where it is none of a step ("job_5/gpu_probe").
  [[nodiscard]] std::optional<std::uint32_t> foreign_in(const std::string& name) const;
  /// What a step's cgroup stood in, when no other step does. False while others are in it.
  bool tidy(const std::string& path) const;
  /// Removes the base when it is empty.
  void leave() const;

 private:
  std::string base_;
  std::string v1_name_ = "slurm";
  bool by_job_ = false;
};

}  // namespace berth::node
