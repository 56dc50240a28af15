// The keys of slurm.conf that daemons and commands live by: who listens where, timeouts, hooks.
// Values have Slurm's defaults, so that a reader never asks whether a key was given.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conf/lines.h"
#include "conf/power_keys.h"
#include "conf/preempt_keys.h"
#include "conf/priority_keys.h"

namespace berth::conf {

/// SlurmctldHost=name(address); address is the name when none is given.
struct ControllerHost {
  std::string name;
  std::string address;
};

/// "defer,bf_window=2880": words, and words with a value ("" for those without).
using Parameters = std::map<std::string, std::string, std::less<>>;

/// From the first to the last.
struct PortSpan {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(const PortSpan&, const PortSpan&) = default;
};

inline constexpr std::uint32_t kDefaultTreeWidth = 16;

struct DaemonKeys {
  std::vector<ControllerHost> controllers;  // the first one is the controller
  std::uint32_t controller_port = 6817;     // the first of a range
  std::uint32_t node_port = 6818;
  std::string slurm_user = "root";
  std::string slurmd_user = "root";
  std::string auth_type = "auth/munge";

  std::string state_save_location = "/var/spool";
  std::string spool_dir = "/var/spool/slurmd";  // may hold %h and %n
  std::string controller_pid_file = "/var/run/slurmctld.pid";
  std::string node_pid_file = "/var/run/slurmd.pid";
  std::string controller_log;  // "" = the system's log
  std::string node_log;        // "" = the system's log; may hold %h and %n
  std::string controller_debug = "info";
  std::string node_debug = "info";
  std::string tmp_fs = "/tmp";

  std::uint32_t controller_timeout_seconds = 120;
  std::uint32_t node_timeout_seconds = 300;  // 0 = a silent node is never DOWN
  std::uint32_t return_to_service = 0;
  std::uint32_t kill_wait_seconds = 30;
  std::optional<bool> kill_on_bad_exit;     // unset = nobody said
  std::uint32_t wait_seconds = 0;           // 0 = srun waits for ever
  std::uint32_t inactive_seconds = 0;       // 0 = no limit
  std::uint32_t min_job_age_seconds = 300;  // 0 = ended jobs stay
  std::uint32_t batch_start_timeout_seconds = 10;
  std::uint32_t complete_wait_seconds = 0;
  std::optional<std::uint32_t> over_time_limit_minutes = 0;      // unset = unlimited
  std::optional<std::uint32_t> reservation_overrun_minutes = 0;  // likewise: ResvOverRun
  std::uint32_t unkillable_seconds = 60;
  std::string unkillable_program;
  std::uint32_t tree_width = kDefaultTreeWidth;

  std::uint32_t first_job_id = 1;
  std::uint32_t max_job_id = 67043328;
  std::uint32_t max_job_count = 10000;
  std::uint32_t max_step_count = 40000;
  std::uint32_t max_batch_requeue = 5;
  bool job_requeue = true;
  std::uint32_t requeue_lease = 3600;  // SlurmctldParameters=requeue_lease (berth's own), seconds
  bool job_file_append = false;
  std::vector<std::uint32_t> requeue_exit, requeue_exit_hold;  // exit codes, ascending

  std::vector<std::string> prolog, epilog;  // paths and glob patterns
  std::string prolog_controller, epilog_controller;
  std::string task_prolog, task_epilog, srun_prolog, srun_epilog;
  std::vector<std::string> prolog_flags;                // lower case
  std::optional<std::uint32_t> prolog_timeout_seconds;  // unset = no limit
  std::optional<std::uint32_t> epilog_timeout_seconds;
  std::string health_check_program;
  std::uint32_t health_check_seconds = 0;  // 0 = never
  std::uint32_t gather_seconds = 30;       // JobAcctGatherFrequency=task=; 0 = only at the end
  std::string gather_frequency;            // as written
  std::string gather_type;                 // JobAcctGatherType
  /// What tasks read and write is looked up, not only what the kernel tells with their end.
  [[nodiscard]] bool gathers() const { return gather_type != "jobacct_gather/none"; }
  std::string health_check_node_state = "ANY";

  std::vector<std::string> private_data;             // lower case
  std::vector<std::string> propagate_limits;         // upper case; empty = ALL
  std::vector<std::string> propagate_limits_except;  // upper case
  std::uint32_t propagate_niceness = 0;              // PropagatePrioProcess
  bool disable_root_jobs = false;
  std::string licenses;
  std::string proctrack_type = "proctrack/cgroup";
  std::string scheduler_type = "sched/backfill";
  Parameters scheduler, launch, controller, node, dependency;  // …Parameters
  std::string interactive_step_options = "--interactive --preserve-env --pty $SHELL";
  PriorityKeys priority;
  PreemptKeys preempt;
  PowerKeys power;
  std::string accounting_storage_type;
  std::vector<std::string> accounting_enforce;  // lower case
  std::vector<std::string> accounting_tres;     // what is added to the usual ones
  std::string mpi_params;                       // MpiParams as written
  std::optional<PortSpan> step_ports;           // of MpiParams: "ports=12000-12999"
  bool hydra_bootstrap = true;  // false by disable_slurm_hydra_bootstrap of MpiParams
  std::optional<std::uint32_t> failure_grace;  // of LaunchParameters, in seconds
  std::string mail_program = "/bin/mail";

  /// LaunchParameters=failure_grace=SECONDS (berth's own): how long the other tasks of a step have
  /// when one has failed; 0 = for ever, as for a site that says KillOnBadExit=0 and no grace.
  [[nodiscard]] std::uint32_t failure_grace_seconds() const;
  /// SlurmdParameters=config_overrides: what slurm.conf says counts, not what a node finds.
  [[nodiscard]] bool config_overrides() const { return node.contains("config_overrides"); }
};

/// Takes one global key. False when it is none of these.
bool apply_daemon_pair(const Pair& pair, DaemonKeys& keys, Complaints& complaints);

}  // namespace berth::conf
