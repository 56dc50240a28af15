// What each step of this agent's nodes may open and use, by cgroup.conf and gres.conf: from a
// step's spec to the groups around its tasks.
//
// What is asked for and cannot be had is said with the node (it drains), and a step with GPUs is
// refused rather than run where it could open those of others. Pretended nodes have no memory and
// no cores to limit; of their GPUs those are fenced that are really there.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cgroup/gpu_devices.h"
#include "cgroup/limits.h"
#include "cgroup/tree.h"
#include "cluster/cluster.h"
#include "conf/cgroup_conf.h"
#include "device/machine.h"
#include "node/cgroups.h"
#include "wire/agent.pb.h"
#include "wire/supervise.pb.h"

namespace berth::node {

/// What the files of this machine say, as far as it matters here.
struct FenceConf {
  std::optional<conf::CgroupConf> limits;    // unset: jobs are not fenced
  std::vector<cluster::Node> nodes;          // with the files of their devices
  std::optional<std::uint64_t> step_pids{};  // max_step_pids; unset = by the step's size
  /// GPUs that nobody can be given: their files need not be known.
  Bits missing_gpus{};
};

class Fencing {
 public:
  /// Nothing is fenced.
  Fencing() = default;
  /// `said`: what the controller reads in its cgroup.conf; a node that cannot do it must not
  /// pretend to.
  Fencing(cgroup::Kernel& kernel, const FenceConf& conf, const wire::NodeConfig& said,
          const Cgroups& groups, const device::Machine& machine, bool emulated);

  /// Why the fence has holes: "" = it has none.
  [[nodiscard]] std::string trouble() const;
  [[nodiscard]] bool active() const { return tree_.fences() || refuses_gpus_; }
  [[nodiscard]] bool fences_devices() const { return devices_; }
  [[nodiscard]] bool fences_memory() const { return memory_.ram || memory_.swap; }
  [[nodiscard]] bool fences_cores() const { return cores_; }
  [[nodiscard]] bool limits_processes() const {
    return tree_.means().processes != cgroup::Version::none;
  }

  /// Of the groups of v1 of a step, or of what is named like one: pretended nodes of one agent have
  /// the same job in one place.
  [[nodiscard]] std::string name_of(const std::string& node, const std::string& step) const {
    return by_job_ ? step : node + '_' + step;
  }
  /// nullopt: the step needs no fence. `cgroup`: the step's, made.
  Result<std::optional<wire::StepFence>> put_up(const wire::StepSpec& spec,
                                                const std::string& cgroup);
  /// For what runs in a job beside its steps, with all that the job has: its groups are named so.
  Result<std::optional<wire::StepFence>> put_up_beside(const wire::BeginJob& job,
                                                       const std::string& name,
                                                       const std::string& cgroup);
  /// The step is gone.
  /// False while somebody else is in a group of its job.
  bool tidy(std::uint32_t uid, std::uint32_t job) { return tree_.tidy(uid, job); }
  /// Ends what is in groups of v1 of these steps and removes them. False while some are left.
  using Which = std::function<bool(std::uint32_t job, const std::string& name)>;
  bool clear(const Which& which) const;
  /// What steps left that ended without an agent.
  void sweep() { tree_.sweep(); }
  void leave() { tree_.leave(); }

 private:
  using Devices = std::set<cgroup::DeviceId>;
  struct Node {
    std::map<std::string, std::vector<Devices>> gres;  // by name and index
    Devices all;
    cluster::Node shape;
  };
  [[nodiscard]] Node read_node(const cluster::Node& node, const device::Machine& machine,
                               bool all_files, const Bits& missing_gpus);
  Result<std::optional<wire::StepFence>> put_up(const wire::StepSpec& spec, const std::string& name,
                                                const std::string& cgroup);
  [[nodiscard]] static Devices devices_of(const Node& node, const wire::NodeShare& share,
                                          const wire::TaskSpec* task);
  [[nodiscard]] cgroup::Limits limits_of(const Node& node, const wire::NodeShare& share) const;
  [[nodiscard]] std::uint64_t process_limit(const Node& node, const wire::StepSpec& spec,
                                            const wire::NodeShare& share) const;
  void ask_for_devices(const Node& node, const wire::StepSpec& spec, cgroup::StepAsk& ask) const;

  cgroup::Tree tree_;
  cgroup::GpuDevices gpus_;
  cgroup::MemoryRules memory_;
  bool devices_ = false;
  bool cores_ = false;
  std::optional<std::uint64_t> step_pids_;  // as in FenceConf
  std::uint64_t machine_pids_ = 0;
  bool refuses_gpus_ = false;
  bool by_job_ = false;  // a group above a step is of one job on one node
  const device::Machine* machine_ = nullptr;
  std::map<std::string, Node> nodes_;
  std::vector<std::string> missing_;
};

}  // namespace berth::node
