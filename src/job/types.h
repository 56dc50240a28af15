// What the controller knows about jobs, steps and nodes: plain values. Only job::State changes
// them; everybody else reads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bits.h"
#include "cluster/cluster.h"
#include "cluster/usage.h"
#include "job/gpu_idle_clock.h"
#include "job/ports.h"
#include "job/power.h"
#include "job/wait_log.h"
#include "place/step.h"
#include "request/parse.h"
#include "reservation/reservation.h"
#include "wire/agent.pb.h"
#include "wire/submit.pb.h"

namespace berth::job {

using JobId = std::uint32_t;
/// Unix seconds. 0 = not known. There is no clock in this module: now is always passed in.
using Time = std::int64_t;
/// So long a job without a time limit is taken to run.
inline constexpr Time kYear = 365L * 24 * 3600;

/// Who calls, as it was proven on his connection. `privileged`: root, SlurmUser, or the
/// controller's own uid.
struct Caller {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  bool privileged = false;
};

/// Base states, with Slurm's numbers.
enum class Base : std::uint8_t {
  pending,
  running,
  suspended,
  completed,
  cancelled,
  failed,
  timeout,
  node_fail,
  preempted,
  boot_fail,
  deadline,
  out_of_memory,
};
/// "PENDING", …
std::string_view base_name(Base base);
std::optional<Base> base_of(std::string_view name);
inline bool ended(Base base) {
  return base >= Base::completed;
}

/// How a job gives way to another.
enum class PreemptMode : std::uint8_t { off, cancel, requeue, suspend };
/// "OFF", "CANCEL", …
std::string_view preempt_word(PreemptMode mode);

/// Of a job that gives way to another, or did when it ran last.
struct Preempted {
  JobId by = 0;
  Time at = 0;     // PreemptTime
  Time until = 0;  // it may run so long yet (GraceTime); of one that is suspended: until SIGSTOP
  PreemptMode how = PreemptMode::cancel;
};

/// Flags beside the base state.
struct Flags {
  bool completing = false;    // over, but some node has not said JobGone
  bool configuring = false;   // running, but some node has not said JobBegun
  bool requeued = false;      // pending again (while completing: will be)
  bool requeue_hold = false;  // and held
  bool special_exit = false;
  bool launch_failed = false;
  bool signaling = false;
  friend bool operator==(const Flags&, const Flags&) = default;
};
/// "COMPLETING", … in Slurm's display precedence.
std::vector<std::string> flag_names(const Flags& flags);

/// What one component of a submission asks for, parsed. Equal submissions (and all elements of an
/// array) share one. Script and environment are not here: they stay in the store (Job::asked_blob).
struct Submission {
  request::Request request;  // of this component
  std::string job_name;      // request::job_name_of
  std::string directory;     // --chdir, or where the command ran
  std::string submit_line;
  std::string host;
  std::uint32_t session = 0;
  std::uint32_t component = 0;
  std::uint32_t components = 1;
  std::string command_path;  // scontrol's Command=: the script or program
  std::uint64_t shape = 0;   // equal shapes place alike: memo key of the scheduler
  // Options read once, as the scheduler and State need them
  std::string account;
  std::string qos;
  std::string reservation;
  std::string licenses;
  std::string wckey;
  std::string comment;
  std::string extra;
  bool hold = false;
  bool no_kill = false;
  bool kill_on_invalid_dependency = false;
  std::optional<bool> requeue;  // --requeue, --no-requeue
  std::int32_t nice = 0;
  bool nice_ignored = false;  // it was below 0, which is for administrators
  std::optional<std::uint32_t> priority;
  int warn_signal = 0;  // --signal
  std::uint32_t warn_seconds = 60;
  bool warn_batch_only = false;
  std::optional<std::uint32_t> immediate_seconds;

  /// Text of a given option, or "".
  [[nodiscard]] std::string_view text(request::Opt option) const;
};

/// Of an array: the pending rest (task unset) or an element that was split off (task set).
struct ArrayFacts {
  JobId job_id = 0;  // of the whole array
  std::optional<std::uint32_t> task;
  Bits rest;                                            // indices still pending in this record
  std::uint32_t throttle = 0;                           // %n, 0 = none
  std::uint32_t min = 0, max = 0, count = 0, step = 1;  // of the whole array
};

struct HetFacts {
  JobId leader = 0;
  std::uint32_t offset = 0;
  std::uint32_t size = 1;
};

/// A step of a running job (also kBatchStep, kInteractiveStep).
struct Step {
  std::uint32_t id = 0;
  std::string name;
  Time start = 0;
  std::optional<Time> limit_at;  // when its own time limit is over
  std::optional<std::uint32_t> time_limit_minutes;
  std::vector<std::string> nodes;
  std::set<std::string> open_nodes;     // have not said StepEnded
  std::set<std::string> started_nodes;  // have said StepStarted
  std::uint32_t ntasks = 0;
  std::uint32_t cpus = 0;
  std::string tres;  // "cpu=2,mem=1G,node=1,gres/gpu=1"
  std::string tres_per_node;
  std::string submit_line;
  std::string host;                     // of srun
  std::vector<std::string> task_nodes;  // node of each rank
  std::int32_t exit_status = 0;         // highest so far, wait(2) form
  bool out_of_memory = false;
  bool system_failure = false;
  bool node_unfit = false;  // nothing was started, by the fault of its node
  bool ending = false;      // EndStep sent
  std::string cause;        // of ending: "TIME LIMIT", …
  wire::StepUsage usage;
  std::shared_ptr<const PortLease> ports;  // on the node of rank 0
  std::vector<JobId> het_jobs;  // components' jobs it runs in, this one too; none = only this one
};

/// A step that waits for other steps of its job. `key` is the controller's own name of the request.
struct WaitingStep {
  std::uint64_t key = 0;
  wire::CreateStep ask;
  Caller caller;
  std::shared_ptr<const request::Parsed> parsed;
  std::string last_text;  // what was said last; said again only when it changes
};

/// What exists only while a job holds an allocation.
struct Running {
  place::JobFacts facts;
  place::StepState steps;
  std::map<std::uint32_t, Step> open_steps;
  std::vector<WaitingStep> waiting;  // first come, first served
  std::set<std::string> not_begun;   // nodes that have not said JobBegun
  std::set<std::string> booting;     // nodes that are switched on for it; nothing begins before
  Time boot_until = 0;               // when these have to be up; its time limit begins then
  std::set<std::string> not_gone;    // COMPLETING: nodes that have not said JobGone
  bool ready = false;                // all nodes said JobBegun
  bool warned = false;               // --signal was sent
  Time known_end = 0;                // as State::ends_changed() has told it
  bool released = false;             // Usage was given back
  GpuIdleClock gpu_idle;             // of a heterogeneous job: in its leader
  bool keeps_no_cores = false;       // was suspended for another job, which may have its cores
  /// Nodes the job was shrunk by, until they have said JobGone; not part of the allocation.
  std::map<std::string, cluster::NodeShare> leaving;
  std::vector<std::string> node_names;  // of the allocation, in order
  explicit Running(place::JobFacts f) : facts(std::move(f)), steps(facts) {}
};

/// Steps that had not ended when their job was over: the node may still say how they ended.
struct LateSteps {
  std::uint32_t attempt = 0;
  std::map<std::uint32_t, Step> steps;
};

/// By node and GPU, and when that was stored last.
class GpuUses {
 public:
  std::vector<wire::GpuUse> all;
  Time stored = 0;

  /// What is kept of one GPU; added when it is new. Null when it would be one more than a job
  /// keeps.
  wire::GpuUse* of(const std::string& node, std::uint32_t gpu);

 private:
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> places_;  // in `all`
  std::size_t placed_ = 0;  // how many of them have their place there
};

/// More GPUs of one node are not kept.
inline constexpr std::uint32_t kMostGpusOfNode = 1024;

/// One job record: an ordinary job, the pending rest of an array, an element of it, or a component
/// of a heterogeneous job.
struct Job {
  JobId id = 0;
  std::shared_ptr<const Submission> what;
  std::uint64_t asked_blob = 0;
  std::vector<std::string> overrides;  // words of `scontrol update`, read after the command line
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string token;
  bool batch = false;
  bool interactive = false;
  bool detached = false;

  Base base = Base::pending;
  Flags flags;
  std::string reason = "None";  // squeue's word
  std::string reason_text;      // our words
  WaitLog waits;                // reasons before that, and how long each lasted
  std::uint32_t priority = 0;   // 0 = held
  bool priority_fixed = false;
  std::int32_t nice = 0;
  double priority_base = 0;  // multifactor: all of it that neither age nor nice change
  Time accrue_since = 0;     // its age grows since then; 0 = it does not
  Time accrued = 0;          // seconds it has waited before that
  /// The reservation it runs or ran in; "" = none, or it waits.
  std::string reservation;
  /// What it may use of reservations (State::view): equal numbers, equal answers.
  std::uint32_t view = 0;
  bool reservation_gone = false;  // what it asked for is deleted: it counts as not asked for
  Time reservation_over = 0;      // runs: its reservation has ended, it has to end then; 0 = no
  /// What it made of its GPUs in its last attempt; null = nothing was told.
  std::unique_ptr<GpuUses> gpu_uses;
  bool held = false;  // by the user or an administrator
  bool held_by_admin = false;
  bool requeue = true;  // may be started again
  std::uint32_t attempt = 0;
  std::uint32_t restarts = 0;
  /// Of its last attempt: so long (seconds) its nodes let it run without the controller; 0 = for
  /// ever.
  Time lease = 0;
  /// Where its last attempt may still run, because a node went away without a word, and by when its
  /// lease there is over; 0 = only the node or an administrator can tell.
  std::map<std::string, Time> may_run_on;

  Time submit_time = 0;
  Time begin_time = 0;           // not before
  bool begin_is_length = false;  // it was said as a length: "now+1hour", or a delay after a requeue
  Time eligible_time = 0;        // when nothing but resources kept it waiting; 0 = not yet
  Time start_time = 0;
  Time end_time = 0;
  Time suspend_time = 0;
  Time seconds_suspended = 0;
  Time deadline = 0;
  bool deadline_is_length = false;
  Time planned_start = 0;      // the scheduler's guess; 0 = none
  std::string planned_nodes;   // host list
  Time switch_wait_since = 0;  // it could have started on more switches than it asks for; 0 = no
  Time last_evaluation = 0;
  bool backfilled = false;

  std::int32_t exit_status = 0;  // wait(2) form
  std::int32_t derived_exit_status = 0;
  std::unique_ptr<ArrayFacts> array;
  std::unique_ptr<HetFacts> het;
  std::string licenses_taken;  // "a:2,b:1": what it holds
  std::string partition;       // the one it runs in, or the one(s) asked for while pending
  bool time_limit_decided = false;
  std::optional<std::uint32_t> time_limit_minutes;  // unset = unlimited
  bool gpu_idle_decided = false;
  bool gpu_idle_by_admin = false;  // an administrator gave it: partitions do not bound it
  std::optional<std::uint32_t> gpu_idle_seconds;  // so long its GPUs may be idle; unset = for ever
  std::uint32_t next_step = 0;
  std::optional<std::uint32_t> ended_by;  // who cancelled it
  std::string comment;
  std::string admin_comment;
  std::string failed_node;
  std::string sluid;
  std::string dependency;  // as it stands now: "afterok:12(unfulfilled)"; "" = none left
  bool dependency_failed = false;
  std::string end_cause;  // EndJob.cause while completing
  std::string prolog_error;
  /// What it holds or held (kept after the end, for history).
  cluster::Allocation allocation;
  std::vector<std::string> nodes;  // names, in order of `allocation`
  std::unique_ptr<Running> running;
  std::unique_ptr<LateSteps> late;
  std::unique_ptr<Preempted> preempted;
  std::uint32_t preemptions = 0;  // of the restarts: because it gave way

  /// It is over: the clock was set by so much since then, which its times do not show.
  Time clock_moved = 0;

  /// Nothing of it is left to be done: its times are history.
  [[nodiscard]] bool over() const;
  /// It gave way: it will end, or is suspended without its cores.
  [[nodiscard]] bool gives_way() const { return preempted && running; }
  /// Begin time, or later while its last attempt may still run.
  [[nodiscard]] Time not_before() const;
  /// Suspended for another job, which may have its cores.
  [[nodiscard]] bool parked() const { return running && running->keeps_no_cores; }
  [[nodiscard]] bool pending() const { return base == Base::pending && !flags.completing; }
  [[nodiscard]] bool holds_nodes() const { return running != nullptr; }
  [[nodiscard]] bool is_array_rest() const { return array && !array->task; }
  /// What it asks for with --reservation, as long as that can be had.
  [[nodiscard]] std::string_view asked_reservation() const {
    return reservation_gone ? std::string_view() : std::string_view(what->reservation);
  }
  /// The reservation it is in, or the one(s) it waits for.
  [[nodiscard]] std::string_view shown_reservation() const {
    return reservation.empty() ? asked_reservation() : std::string_view(reservation);
  }
  /// The id of the array, or its own.
  [[nodiscard]] JobId array_id() const { return array ? array->job_id : id; }
  /// "12", "12_3", "12_[3-9%2]", "12+1".
  [[nodiscard]] std::string shown() const;
  /// When the time limit is over (start + limit + suspended), or the grace of one that gives way;
  /// nullopt = unlimited or not running.
  [[nodiscard]] std::optional<Time> limit_at() const;
  /// When its time is over at the latest, as things stand (kYear); 0 = it is over.
  [[nodiscard]] Time over_by() const;
};

/// A GPU that an administrator took out of service.
struct GpuDrained {
  std::string reason;
  std::string by;  // "root@2026-01-31T12:00:00"
};

/// Beyond slurm.conf: what a node said and what was done to it.
struct NodeState {
  bool registered = false;  // since the controller started
  bool responding = false;
  Time silent_since = 0;  // not responding: last heard then; 0 = it was only said to be so
  bool down = false;
  bool drain = false;
  bool fail = false;
  bool invalid = false;  // registered with less than configured
  bool unknown_since_start = true;
  std::string reason;
  std::uint32_t reason_uid = 0;
  Time reason_time = 0;
  std::string comment;
  std::string extra;
  std::optional<std::uint32_t> weight;
  std::optional<std::string> features;
  Time boot_time = 0;
  std::string boot_id;
  Time agent_started = 0;
  Time last_busy = 0;
  std::string line;      // made by scontrol create: its NodeName line, as slurm.conf would have it
  bool future = false;   // State=FUTURE and never registered
  bool planned = false;  // a job that waits is going to start here
  std::string reservation;   // in force, with the whole node; "" = none
  bool maintenance = false;  // and for maintenance
  std::string arch, os, host, version;
  wire::NodeAddress address;
  std::vector<wire::GpuFound> found_gpus;         // what its agent told
  std::map<std::uint32_t, std::string> gpus_out;  // out of service, and why: as its agent told
  /// Of these: because of an Xid that is over; with what else keeps it out, "" = nothing.
  std::map<std::uint32_t, std::string> gpus_on_probation;
  std::map<std::uint32_t, GpuDrained> gpus_drained;
  bool gpus_unwatched = false;  // nobody sees whether they are in use
  double load = 0;
  std::optional<std::uint64_t> free_memory_mb;
  /// So many seconds its wall clock is ahead of the cluster's time (negative: behind); 0 = it is
  /// right, or nothing was told.
  Time clock_ahead = 0;
  static constexpr Time kMostAhead = 100 * kYear;
  std::set<JobId> jobs;        // hold something here
  std::set<JobId> completing;  // of these: over, waiting for JobGone
  NodePower power;

  /// Jobs may be started here.
  [[nodiscard]] bool usable() const {
    const bool there = power.away() ? power.wakes() : registered && responding;
    return there && !power.no_new_jobs && !down && !drain && !fail && !invalid;
  }
};

/// What of a partition only policy reads (placement reads cluster::Partition).
struct PartitionPolicy {
  std::uint32_t priority_tier = 1;
  std::optional<PreemptMode> preempt_mode;  // unset: the cluster's
  Time grace = 0;                           // GraceTime
  std::uint32_t priority_job_factor = 1;
  std::optional<std::uint32_t> over_time_minutes;
  std::optional<std::uint32_t> gpu_idle_seconds;      // of jobs that do not say; unset = none
  std::optional<std::uint32_t> max_gpu_idle_seconds;  // unset = no bound
  bool root_only = false;
  bool disable_root = false;
  bool require_reservation = false;
  std::vector<std::string> allow_accounts;  // empty = all
  std::vector<std::string> deny_accounts;
  std::vector<std::string> allow_qos;
  std::vector<std::string> deny_qos;
  std::vector<std::string> alloc_nodes;  // hosts jobs may be submitted from
  /// AllowGroups: who is in one of them. Unset = all.
  struct Members {
    std::set<std::uint32_t> gids;
    std::set<std::uint32_t> uids;
  };
  std::optional<Members> members;
  PartitionPower power;
};

/// Priority* of slurm.conf. Without accounting there are no associations, no QOS and no usage:
/// their factors are 0 whatever they weigh.
struct PriorityPolicy {
  bool multifactor = true;  // else priority/basic: first come, first served
  double weight_age = 0;
  double weight_assoc = 0;
  double weight_fair_share = 0;
  double weight_size = 0;
  double weight_partition = 0;
  double weight_qos = 0;
  std::vector<std::pair<std::string, double>> weight_tres;  // "cpu", "mem", "gres/gpu", …
  Time max_age = 7 * 24 * 3600;
  Time calc_period = 300;
  bool favor_small = false;
  bool accrue_always = false;   // age counts from the submission, held or not
  bool only_up = false;         // INCR_ONLY
  bool raw_partition = false;   // NO_NORMAL_PART
  bool raw_tres = false;        // NO_NORMAL_TRES
  bool size_over_time = false;  // SMALL_RELATIVE_TO_TIME
};

/// Preempt* of slurm.conf.
struct PreemptPolicy {
  bool by_tier = false;  // PreemptType=preempt/partition_prio
  PreemptMode mode = PreemptMode::off;
  bool lower_priority_only = false;                  // PreemptMode=PRIORITY
  Time exempt = 0;                                   // nobody gives way who runs for less than that
  std::optional<std::uint32_t> min_exempt_priority;  // nor who has this priority
  bool youngest_first = false;
  bool reclaim_licenses = false;
  bool send_user_signal = false;
  Time suspend_grace = 2;  // from SIGTSTP to SIGSTOP
};

/// Settings of slurm.conf that decide about jobs and nodes.
struct Policy {
  std::string cluster_name = "cluster";
  std::string conf_path;
  std::uint32_t kill_wait = 30;
  std::uint32_t min_job_age = 300;
  JobId first_job_id = 1;
  JobId max_job_id = 0x03ff0000;
  std::uint32_t max_job_count = 10000;
  std::size_t max_script = std::size_t{4} << 20;  // max_script_size
  std::uint32_t inactive_limit = 0;
  bool job_requeue = true;
  std::uint32_t max_batch_requeue = 5;
  std::uint32_t slurmd_timeout = 300;
  std::uint32_t return_to_service = 0;
  std::uint32_t over_time_minutes = 0;
  /// ResvOverRun: how long jobs may outlive their reservation; unset = as long as they like.
  std::optional<std::uint32_t> reservation_overrun_minutes = 0;
  std::set<std::uint32_t> admins;  // beside root: may use all reservations
  std::uint32_t complete_wait = 0;
  std::uint32_t max_step_count = 40000;
  std::vector<std::uint32_t> requeue_exit;       // exit codes of scripts that start again
  std::vector<std::uint32_t> requeue_exit_hold;  // and are held: SPECIAL_EXIT
  std::uint32_t requeue_delay = 120;             // after a node failure
  std::uint32_t requeue_lease = 3600;            // of jobs that did not ask for --requeue
  bool config_overrides = false;                 // SlurmdParameters=config_overrides
  bool kill_invalid_depend = false;
  bool job_file_append = false;
  bool emulated = false;
  std::map<std::string, std::uint64_t> licenses;  // Licenses=
  std::map<std::string, PartitionPolicy> partitions;
  PriorityPolicy priority;
  std::uint32_t max_switch_wait = 300;  // seconds a job waits for few switches at most
  PreemptPolicy preempt;
  PowerPolicy power;
  bool user_top = false;  // SlurmctldParameters=enable_user_top
  std::vector<std::string> mpi_types = {"none", "pmi2", "pmix"};
  PortRange ports;  // MpiParams=ports=…
};

}  // namespace berth::job
