// The node agent: one connection to the controller, one socket for clients, jobs and steps of one
// node or of many pretended ones.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/boot_clock.h"
#include "base/cluster_clock.h"
#include "conf/gpu_parameters.h"
#include "net/loop.h"
#include "net/pid_file.h"
#include "node/controller_clock.h"
#include "node/gate.h"
#include "node/gpu_health.h"
#include "node/gpu_idle.h"
#include "node/gpu_memory.h"
#include "node/gpu_meter.h"
#include "node/gpu_watch.h"
#include "node/inventory.h"
#include "node/jobs.h"
#include "node/machine_job_host.h"
#include "node/options.h"
#include "node/orders.h"
#include "node/step_gpus.h"
#include "node/steps.h"
#include "node/switchboard.h"
#include "node/uplink.h"

namespace berth::node {

/// Runs until SIGTERM. Supervisors go on without it.
Result<void> run_agent(const Options& options);

class Agent {
 public:
  struct Place {
    std::string run;
    std::string spool;
    std::string conf{};  // a real node's slurm.conf; "" = jobs are told the controller's
    std::string supervisor;
    std::string pmix_helper{};  // "" = none
    bool emulated = false;
    uid_t slurm_uid = 0;
    net::Address tcp_controller;  // when there is no socket in `run`
    net::Address tcp_listen;
    std::uint64_t open_files = 0;
    /// Of a pretended cluster: its nodes as slurm.conf and scontrol have them now.
    std::function<Result<Inventory>(const std::vector<std::string>& created)> look_again;
    /// Of a real node: what the machine has now.
    std::function<Result<Inventory>()> look_at_machine{};
    /// cgroup.conf and the devices as the files say now.
    std::function<Result<FenceConf>()> read_fences{};
  };
  static Result<std::unique_ptr<Agent>> open(net::Loop& loop, Log& log, Inventory inventory,
                                             Place place);
  /// Takes up what an earlier agent left, then serves.
  Result<void> start();
  ~Agent();

 private:
  Agent(net::Loop& loop, Log& log, Inventory inventory, Place place, Fence& fence);
  void adopt();
  void adopt_node(const std::string& node);
  void clear_leftover_cgroups();
  void set_up_fences();
  void tell_fence_trouble();
  /// Drains the node; kept until the controller is there.
  void tell_trouble(const std::string& node, const std::string& reason);
  wire::RegisterNodes registration() const;
  /// Whether it may serve.
  bool registered(const wire::Registered& message);
  bool nodes_changed();
  void meet_nodes();
  [[nodiscard]] std::string hosts_file() const { return place_.spool + "/hosts"; }
  [[nodiscard]] bool write_names() const;
  Result<void> switch_nodes(const wire::SwitchNodes& message, uid_t caller);
  void take(const wire::Frame& frame);
  void signal(const wire::SignalStep& message);
  void suspend(const wire::SuspendJob& message);
  // agent_measure.cpp
  void measure(const wire::MeasureOnNodes& message);
  void measured(const NodeStep& at, const Steps::Question& question, const Steps::Answer& known);
  void meter_steps(const GpuRound& round);
  [[nodiscard]] net::Address controller() const;
  /// With a controller on another machine.
  [[nodiscard]] Result<tls::Stream> session() const;
  /// Asks for a new certificate long before the one it has ends; looks again each day.
  void renew_identity();
  void identity_renewed(const wire::IdentityRenewed& message);
  void remember(const wire::StoreMemory& memory);
  void write_memory(bool synced);
  void check_health();
  // agent_clock.cpp
  void time_told(std::uint64_t question, const ControllerClock::Told& told);
  /// By this tickets are judged.
  [[nodiscard]] std::int64_t ticket_time() const;
  // agent_orders.cpp
  class OrderHost;
  std::unique_ptr<Orders::Host> make_order_host();
  [[nodiscard]] std::string lease_file() const;
  void take_up_orders();
  // agent_gpus.cpp
  void watch_gpus();
  void tell_gpus(const NodeJob& job);
  void tell_gpus_of_all();
  // agent_memory.cpp
  GpuMeter::Owns see_gpu_memory(const GpuRound& round, const std::vector<Jobs::Holder>& holders);
  void over_gpu_memory(const GpuMemory::Key& key, const GpuMemoryUse& use,
                       const std::vector<Jobs::Holder>& holders);
  void name_over_user(const GpuMemory::Key& key, const GpuMemoryUse& use,
                      const std::vector<NodeJob>& untold, const std::vector<Jobs::Holder>& holders);
  void tell_gpu_idle(const wire::AskGpuIdle& message);
  // agent_missing.cpp
  void remember_gpus() const;
  void await_missing_gpus();
  void seek_missing_gpus(bool thoroughly);
  bool look_for_missing_gpus();
  // agent_health.cpp
  void gpus_seen(const GpuRound& round);
  void xid_seen(const survey::Xid& xid);
  void gpus_freed(const NodeJob& job);
  void tell_health();
  void send_health();
  void put_gpus_out(google::protobuf::RepeatedPtrField<wire::GpuOut>& out) const;

  net::Loop& loop_;
  Log& log_;
  Inventory inventory_;
  Place place_;
  Switchboard switchboard_;
  std::vector<std::string> limits_;
  std::unique_ptr<Fence> fence_;
  Cgroups cgroups_;
  Fencing fencing_;
  Children children_;
  step::CrashPoints crash_;
  Surroundings here_;
  std::string new_key_;  // of a certificate that was asked for
  Uplink uplink_;
  Steps steps_;
  Receivers receivers_;
  MachineJobHost job_host_;
  Jobs jobs_;
  MachineTime machine_time_;
  ControllerClock controller_clock_;
  std::int64_t clock_ahead_ = 0;  // as it was logged last
  std::unique_ptr<Orders::Host> order_host_;
  Orders orders_;
  BootAlarm lease_alarm_;
  Gate gate_;
  GpuMeter meter_;
  StepGpus step_gpus_;
  GpuIdle idle_;
  conf::GpuParameters gpu_parameters_;
  GpuMemory gpu_memory_;
  GpuHealth health_;
  GpuHealth::Out gpus_out_;  // as the controller was told
  bool watching_ = false;    // GpuWatch runs
  net::TimerId missing_timer_ = net::TimerId::none;
  bool gpus_wait_for_jobs_ = false;   // they are back, and would be counted in another order
  std::int64_t rounds_to_meter_ = 0;  // it is given one round a second
  GpuWatch gpu_watch_;
  std::map<std::string, std::string> untold_trouble_;  // by node
  std::map<std::string, std::string> refusals_;        // of nodes, as they were logged last
  wire::StoreMemory memory_;                           // of the controller's store, as it was told
  net::TimerId memory_timer_ = net::TimerId::none;
  std::int64_t started_ = 0;
  std::string instance_;
  net::TimerId renewal_timer_ = net::TimerId::none;
  net::TimerId health_timer_ = net::TimerId::none;
  bool by_tcp_ = false;
};

}  // namespace berth::node
