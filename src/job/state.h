// The controller's memory: cluster, what is taken of it, jobs, steps, nodes; and every transition
// as a method. A method changes memory, marks records to be stored (take_dirty) and says what has
// to be done outside (take_effects). The controller stores first and carries out afterwards;
// replies to clients likewise come after the commit. No clock, no files, no sockets: the same calls
// give the same state.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/cluster.h"
#include "cluster/usage.h"
#include "job/effect.h"
#include "job/priority.h"
#include "job/types.h"
#include "place/place.h"
#include "wire/info.pb.h"
#include "wire/record.pb.h"

namespace berth::job {

/// One commit. Ended jobs stay in the store (history) after they left memory.
struct Dirty {
  std::vector<wire::JobRecord> jobs;
  std::vector<wire::StepRecord> steps;
  std::vector<wire::NodeRecord> nodes;
  std::vector<wire::PartitionRecord> partitions;
  std::vector<wire::ReservationRecord> reservations;
  std::vector<std::string> deleted_reservations;
  std::vector<JobId> forgotten;  // left memory (MinJobAge): only if the store has use for it
  std::optional<JobId> next_job_id;
  std::optional<Time> leases_rest_until;
  /// Must be on disk before effects and replies (all but the creation of steps and node chatter).
  bool sync = false;
  [[nodiscard]] bool empty() const {
    return jobs.empty() && steps.empty() && nodes.empty() && partitions.empty() &&
           reservations.empty() && deleted_reservations.empty() && forgotten.empty() &&
           !next_job_id && !leases_rest_until;
  }
};

/// What the store has, for load().
struct Stored {
  std::vector<wire::JobRecord> jobs;
  std::vector<wire::NodeRecord> nodes;
  std::vector<wire::PartitionRecord> partitions;  // already applied to the cluster by the caller
  std::vector<wire::ReservationRecord> reservations;
  JobId next_job_id = 0;
  /// Until then nodes that have not registered may let jobs run whose leases are over.
  Time leases_rest_until = 0;
  /// By so much the clock was set since there are such moments (State::shift).
  Time adopted = 0;
};

struct Submitted {
  JobId id = 0;
  std::vector<JobId> components;  // of a heterogeneous job, else empty
  std::vector<Message> warnings;
  bool again = false;      // the token was known: nothing new
  std::vector<Job> trial;  // --test-only: the jobs as they would be
};

/// scancel of one job (JobName already resolved by pick()).
struct Cancel {
  Caller caller;
  std::optional<int> signal;  // unset: terminate
  bool batch_only = false;
  bool full = false;
  bool hurry = false;
};

/// `scontrol update NodeName=`. Unset = leave.
struct NodeChange {
  std::optional<std::string>
      state;  // DOWN DRAIN RESUME UNDRAIN FAIL IDLE NORESP POWER_*, upper case
  std::optional<std::string> reason;
  std::optional<std::string> comment;
  std::optional<std::string> extra;
  std::optional<std::uint32_t> weight;
  std::optional<std::string> features;
  Caller caller;
};

/// `scontrol update gpu=`.
struct GpuChange {
  Bits gpus;           // as jobs count them on the node
  bool drain = false;  // else they are resumed
  std::string reason;
  std::string by;  // "root@2026-01-31T12:00:00"
  Caller caller;
};

/// `scontrol update JobId=` of what is not an option of sbatch (the rest: update_words).
struct JobChange {
  std::optional<std::uint32_t> priority;
  std::optional<std::int32_t> nice;
  std::optional<std::optional<std::uint32_t>> time_limit_minutes;  // inner unset = unlimited
  std::optional<std::string> comment;
  std::optional<std::string> admin_comment;
  std::optional<std::uint32_t> array_throttle;
  std::optional<bool> requeue;
  std::optional<Time> begin_time;
  bool begin_is_length = false;  // it was said as a length
  std::optional<Time> deadline;
  bool deadline_is_length = false;
  std::optional<std::string> dependency;  // "" = none
  std::optional<Time> end_time;           // of a running job: sets its time limit
  std::optional<std::optional<std::uint32_t>> gpu_idle_seconds;  // inner unset = for ever

  /// Comments and nothing else: jobs that have ended take these.
  [[nodiscard]] bool is_comment() const {
    JobChange rest = *this;
    rest.comment.reset();
    rest.admin_comment.reset();
    return (comment || admin_comment) && rest == JobChange{};
  }
  bool operator==(const JobChange&) const = default;
};

/// Refusals of actions on jobs, with Slurm's text: job_error(JobFault::no_such_job).
enum class JobFault {
  no_such_job,     // Invalid job id specified
  not_yours,       // Access/permission denied
  already_done,    // Job/step already completing or completed
  not_pending,     // Job is no longer pending execution
  not_running,     // Job is not running
  not_suspended,   // Job is not suspended
  disabled,        // Requested operation is presently disabled
  bad_dependency,  // Job dependency problem
  bad_update,      // Invalid ... for update
  not_batch,       // Only batch jobs are accepted for operation
};
std::string_view fault_text(JobFault fault);
Error job_error(JobFault fault);

/// What the scheduler has to look at since it last did.
struct Wake {
  bool everything = false;     // something was freed or changed: a whole pass
  std::vector<JobId> arrived;  // new or newly eligible jobs; nothing else changed
  [[nodiscard]] bool any() const { return everything || !arrived.empty(); }
};

/// Jobs that were started before one that came first, since this State was made.
struct Backfilled {
  std::uint64_t jobs = 0;
  std::uint64_t components = 0;  // of these: of heterogeneous jobs
};

/// What a job may use of reservations.
struct View {
  std::vector<std::string> names;  // tried in this order
  bool only = false;               // it asked for them: nothing else will do
};

/// Nodes that are being switched on for a job.
struct Waking {
  std::vector<std::string> nodes;
  Time since = 0;  // 0: none of them is yet (ResumeRate)
  Time until = 0;  // DOWN after that (ResumeTimeout)
};

/// Order of consideration: who asks for a reservation, partition tier, priority, submit time, id.
struct QueueKey {
  std::uint32_t tier = 0;
  std::uint32_t priority = 0;
  Time submit = 0;
  JobId id = 0;
  bool reserved = false;
  friend bool operator<(const QueueKey& a, const QueueKey& b) {
    if (a.reserved != b.reserved) return a.reserved;
    if (a.tier != b.tier) return a.tier > b.tier;
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.submit != b.submit) return a.submit < b.submit;
    return a.id < b.id;
  }
};

class State {
 public:
  struct Memory;  // memory.h, for this module alone

  State(cluster::Cluster cluster, Policy policy);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // ---- Reading ---------------------------------------------------------------------------------
  [[nodiscard]] const cluster::Cluster& cluster() const;
  [[nodiscard]] const cluster::Usage& usage() const;
  [[nodiscard]] const Policy& policy() const;
  /// All jobs in memory by id: pending, running and those that ended less than MinJobAge ago.
  [[nodiscard]] const std::map<JobId, Job>& jobs() const;
  /// Jobs that hold nodes.
  [[nodiscard]] const std::set<JobId>& holding() const;
  /// Nodes where the end of a job that holds them has come to be another, or not to be known.
  [[nodiscard]] const cluster::ChangeLog& ends_changed() const;
  [[nodiscard]] const Job* find(JobId id) const;
  /// By array id and index: the element's own record, or the pending rest that holds the index.
  [[nodiscard]] const Job* find_element(JobId array, std::uint32_t task) const;
  /// All records of an array (rest and elements), or of a heterogeneous job, by its id; else the
  /// job.
  [[nodiscard]] std::vector<JobId> records_of(JobId id) const;
  /// Records a JobName means, without splitting arrays (for reading).
  [[nodiscard]] std::vector<JobId> named(const wire::JobName& name) const;
  [[nodiscard]] const NodeState& node(cluster::NodeIndex index) const;
  [[nodiscard]] const NodeState* find_node(std::string_view name) const;
  [[nodiscard]] const std::set<QueueKey>& queue() const;
  /// The place of a job in the queue; nullopt when it is not in it.
  [[nodiscard]] std::optional<QueueKey> key_of(JobId id) const;
  /// Where a job would stand that is not in the queue.
  [[nodiscard]] QueueKey key_for(const Job& job) const;
  [[nodiscard]] const std::map<std::string, wire::PartitionRecord>& partition_records() const;
  [[nodiscard]] std::uint64_t licenses_used(const std::string& name) const;
  [[nodiscard]] const std::map<std::string, reservation::Reservation>& reservations() const;
  [[nodiscard]] const reservation::Reservation* find_reservation(std::string_view name) const;
  /// Grows when a reservation comes, goes or is changed.
  [[nodiscard]] std::uint64_t reservation_round() const;
  /// By Job::view. 0 = the job has to keep clear of all of them.
  [[nodiscard]] const View& view(std::uint32_t number) const;
  /// Jobs that hold nodes as jobs of this reservation.
  [[nodiscard]] std::vector<JobId> jobs_in(std::string_view reservation) const;
  /// All records of this array or job have ended (WaitJob).
  [[nodiscard]] bool all_ended(JobId id) const;
  /// Highest exit status of the job or of all elements of the array (WaitJob).
  [[nodiscard]] std::int32_t highest_exit(JobId id) const;
  [[nodiscard]] std::size_t pending_count() const;
  [[nodiscard]] Backfilled backfilled() const;
  /// Grows each time the priorities of all who wait were worked out again: these are not in
  /// take_changed().
  [[nodiscard]] std::uint64_t priority_round() const;
  /// When that was last; 0 = never.
  [[nodiscard]] Time priorities_at() const;
  [[nodiscard]] const PriorityTotals& priority_totals() const;
  /// What a job that has its nodes waits for before it begins; nullopt: nothing.
  [[nodiscard]] std::optional<Waking> waking(const Job& job) const;
  /// How long a job may wait for nodes that are switched off; 0 when none is.
  [[nodiscard]] Time wake_seconds() const;
  /// After so many idle seconds the node is switched off; nullopt: never.
  [[nodiscard]] std::optional<std::uint32_t> suspend_seconds(cluster::NodeIndex node) const;
  /// Grows when nodes and partitions are others than before.
  [[nodiscard]] std::uint64_t configuration() const;
  /// Grows with every change, for caches of views.
  [[nodiscard]] std::uint64_t version() const;

  // ---- Submission ------------------------------------------------------------------------------
  /// sbatch, salloc, srun. `asked_blob` is the key under which the caller stores ask.asked() in the
  /// same commit. A refusal that leaves a FAILED record (as Slurm does) marks it dirty all the
  /// same.
  Result<Submitted> submit(const wire::SubmitJob& ask, std::uint64_t asked_blob,
                           const Caller& caller, Time now);

  // ---- Scheduling (called by schedule::run) ----------------------------------------------------
  /// What changed since the last call; clears it.
  Wake take_wake();
  /// Nodes that have more room than at the last call.
  std::vector<cluster::NodeIndex> take_grown_nodes();
  /// True when the job may start as far as time, hold, dependencies, array limit and licenses go.
  /// Otherwise `reason` is squeue's word.
  bool eligible(const Job& job, Time now, std::string& reason) const;
  /// Starts a job (the lowest element of an array rest, all components of a heterogeneous job: one
  /// plan each). Placement is checked again: false when it does not fit any more.
  bool start(JobId id, const std::vector<place::JobPlan>& plans, bool backfilled, Time now);
  /// Why it waits. Tells the owner when the word changed.
  void set_reason(JobId id, std::string_view reason, std::string text, Time now);
  void set_planned(JobId id, Time start, std::string nodes);
  /// It could start now, but on more switches than it asks for: from now on its patience counts.
  void wait_for_switches(JobId id, Time now);
  /// Nodes that jobs which wait are going to start on (sinfo: PLANNED).
  void set_planned_nodes(const std::set<cluster::NodeIndex>& nodes);
  /// CompleteWait: while a job is completing, and not for too long already, none is started.
  [[nodiscard]] bool waits_for_completing(Time now) const;

  // ---- Preemption (called by schedule::run) ----------------------------------------------------
  /// How a running job would give way; off: it does not.
  [[nodiscard]] PreemptMode preempt_mode(const Job& job) const;
  /// PriorityTier of the partition, 1 where it has none.
  [[nodiscard]] std::uint32_t tier_of(const std::string& partition) const;
  /// A running job (with all components) gives way to another, as preempt_mode() says: at once, or
  /// when its grace is over. False when it cannot.
  bool preempt(JobId id, JobId by, Time now);
  /// Jobs that give way to this one and still hold something; nullptr = none.
  [[nodiscard]] const std::set<JobId>* giving_way_to(JobId id) const;
  /// Jobs that are suspended for others and do not have their cores.
  [[nodiscard]] const std::set<JobId>& parked() const;
  /// A parked job goes on, when its cores are free.
  bool unpark(JobId id, Time now);
  /// Jobs that gave way since this State was made.
  [[nodiscard]] std::uint64_t preemptions() const;
  /// Licences that are lacking for it to start, by name.
  [[nodiscard]] std::map<std::string, std::uint64_t> missing_licenses(const Job& job) const;
  /// How many of that licence a job has.
  [[nodiscard]] static std::uint64_t licenses_of(const Job& job, const std::string& name);
  /// Wakes the scheduler at that moment, at the latest.
  void look_again(Time at);

  // ---- What nodes say --------------------------------------------------------------------------
  /// A node registered: compared with slurm.conf, then its jobs and steps with ours.
  /// The refusal is for NodeVerdict (unknown node).
  Result<void> register_node(const wire::NodeReport& report, const wire::RegisterNodes& agent,
                             Time now);
  void node_beat(std::string_view name, const wire::Beat& beat);
  /// Its connection broke, or nothing comes: NOT_RESPONDING, no jobs; DOWN (tick) when it was last
  /// heard SlurmdTimeout ago.
  void node_lost(std::string_view name, Time heard);
  /// It was silent and is heard again. False: it was given up, and has to register.
  bool node_heard(std::string_view name, Time now);
  /// The controller itself stood still until now, and could hear nobody: silent nodes have
  /// SlurmdTimeout again.
  void stood_still(Time now);
  /// Prolog, epilog or kill trouble: drains.
  void node_trouble(std::string_view name, const std::string& reason, Time now);
  void job_begun(const wire::JobBegun& message, Time now);
  void job_gone(const wire::JobGone& message, Time now);
  /// False when there is no such job any more.
  bool job_gpus(const wire::JobGpus& message, Time now);
  /// How long a job has not used its GPUs on a node, as AskGpuIdle asked.
  void job_gpu_idle(const wire::JobGpuIdle& message, Time now);
  /// Which GPUs of a node are out of service: the node is not. Jobs that hold one are told.
  void gpu_health(const wire::GpuHealth& message);
  void step_started(const wire::StepSpec& spec, std::string_view node, Time now);
  void step_ended(const wire::StepEnded& message, Time now);

  /// The program that switches these nodes has been started.
  void power_told(const std::vector<std::string>& nodes);

  // ---- Owners ----------------------------------------------------------------------------------
  /// salloc's command or srun's step ended.
  Result<void> finish_job(JobId id, const Caller& caller, std::int32_t exit_status, Time now);
  /// The owner's connection went away and did not come back in time.
  void owner_gone(JobId id, Time now);

  // ---- Steps -----------------------------------------------------------------------------------
  /// Answered by effects with the same key: GrantStep, RefuseStep, or StepMustWait and later one of
  /// them.
  void create_step(const wire::CreateStep& ask, std::uint64_t key, const Caller& caller, Time now);
  /// The srun that waits has gone.
  void drop_waiting_step(std::uint64_t key);
  /// srun is gone, scancel of a step, its time is over.
  Result<void> end_step(JobId id, std::uint32_t step, const Caller& caller, std::string cause,
                        Time now);

  // ---- Actions ---------------------------------------------------------------------------------
  /// Records a JobName means; pending elements that are named one by one are split off first.
  Result<std::vector<JobId>> pick(const wire::JobName& name, Time now);
  Result<void> cancel(JobId id, const Cancel& how, Time now);
  /// scancel of what a JobName means: pending elements named one by one leave the array without a
  /// record, as in Slurm. Returns what it was done to (by id), or the first refusal when nothing
  /// was.
  Result<std::vector<JobId>> cancel_named(const wire::JobName& name, const Cancel& how, Time now);
  Result<void> cancel_step(JobId id, std::uint32_t step, const Cancel& how, Time now);
  Result<void> hold(JobId id, const Caller& caller, bool user_hold, Time now);
  Result<void> release(JobId id, const Caller& caller, Time now);
  /// `special`: held with the state SPECIAL_EXIT.
  Result<void> requeue(JobId id, const Caller& caller, bool hold, Time now, bool special = false);
  /// A running job gives nodes back: only these are left to it.
  Result<void> shrink(JobId id, const std::vector<std::string>& keep, const Caller& caller,
                      Time now);
  Result<void> suspend(JobId id, const Caller& caller, Time now);
  Result<void> resume(JobId id, const Caller& caller, Time now);
  /// Before all others of its owner in the same partition, account and QOS.
  Result<void> top(JobId id, const Caller& caller, Time now);
  Result<void> notify(JobId id, const Caller& caller, const std::string& text, Time now);
  Result<void> change(JobId id, const JobChange& change, const Caller& caller, Time now);
  /// Options changed by `scontrol update`: words as sbatch would take them, read after the command
  /// line. `asked` is what the store has under Job::asked_blob.
  Result<void> update_words(JobId id, const std::vector<std::string>& words,
                            const wire::Asked& asked, const Caller& caller, Time now);
  /// TimeLimit of a running step, counted from its start; unset = none of its own.
  Result<void> change_step(JobId id, std::uint32_t step, std::optional<std::uint32_t> minutes,
                           const Caller& caller, Time now);
  Result<void> change_node(std::string_view name, const NodeChange& change, Time now);
  /// Of all these nodes, or none. Lines say what stays out of service nevertheless.
  Result<std::vector<Message>> change_gpus(const std::vector<std::string>& names,
                                           const GpuChange& change);

  // ---- Configuration ---------------------------------------------------------------------------
  /// slurm.conf was read again, or scontrol changed a partition: running jobs keep their
  /// allocations (by node name); pending ones are placed by the new cluster.
  void reconfigure(cluster::Cluster cluster, Policy policy, Time now);
  /// Remembers what scontrol did to a partition; the caller then calls reconfigure().
  void keep_partition(wire::PartitionRecord record);
  /// A node of scontrol create: known since the last reconfigure(). `line` is its NodeName line.
  void keep_node(std::string_view name, std::string line, Time now);
  /// A node of scontrol delete, before the reconfigure() that leaves it out.
  void drop_node(std::string_view name);

  // ---- Reservations ----------------------------------------------------------------------------
  /// A name for one that was given none: "root_3".
  [[nodiscard]] std::string free_reservation_name(std::string_view user) const;
  /// Makes it, or puts it in the place of the one of that name.
  void keep_reservation(reservation::Reservation reservation, Time now);
  /// Refused while jobs run in it.
  Result<void> drop_reservation(std::string_view name, Time now);
  /// Nodes have gone away or come back, or jobs have started in reservations, since the last call.
  bool take_reserved_nodes_lost();
  /// The present occurrence of one that recurs is left out.
  Result<void> skip_reservation(std::string_view name, Time now);

  // ---- Time ------------------------------------------------------------------------------------
  /// When tick() next has something to do.
  [[nodiscard]] std::optional<Time> next_deadline() const;
  void tick(Time now);
  /// The cluster's clock was set, by so many seconds, and is `now`: what has passed and what is
  /// left stays as long as it was; times of day that somebody named, and history, stay what they
  /// are (moments.h).
  void shift(Time by, Time now);
  /// All shifts together. A moment less that is good for ever: for what nodes keep.
  [[nodiscard]] Time adopted() const;

  // ---- Store -----------------------------------------------------------------------------------
  using FetchAsked = std::function<std::optional<wire::Asked>(std::uint64_t blob)>;
  /// Fills an empty State. Jobs that cannot be read are logged (effect Log) and left out.
  void load(const Stored& stored, const FetchAsked& fetch, Time now);
  Dirty take_dirty();
  /// take_dirty(), take_changed() and take_changed_nodes() where nobody wants to know: no record is
  /// made.
  void discard_changes();
  /// Jobs that look different since the last call, also where nothing is to be stored (views).
  std::set<JobId> take_changed();
  /// Nodes that look different, where nothing is to be stored.
  std::set<std::string> take_changed_nodes();
  std::vector<Effect> take_effects();

 private:
  std::unique_ptr<Memory> m_;
};

}  // namespace berth::job
