// What State remembers, and the small moves all transitions are made of. For this module alone.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "job/dependency.h"
#include "job/licenses.h"
#include "job/priority.h"
#include "job/state.h"
#include "job/table.h"
#include "job/when.h"
#include "request/parse.h"

namespace berth::job {

struct State::Memory {
  Memory(cluster::Cluster cluster, Policy policy);

  cluster::Cluster cluster;
  Policy policy;
  std::unique_ptr<cluster::Usage> usage;
  cluster::ChangeLog ends_changed;  // nodes of jobs whose end has come to be another
  Table jobs;
  std::set<JobId> holding;       // jobs that hold nodes: few among many that wait
  std::vector<NodeState> nodes;  // by NodeIndex
  std::set<QueueKey> queue;      // pending, not held, begin time and dependencies met
  std::unordered_map<JobId, QueueKey> keys;
  std::map<JobId, std::set<JobId>> groups;  // array id or het leader → records
  std::unordered_map<std::string, JobId> tokens;
  std::unordered_map<std::uint64_t, std::weak_ptr<const Submission>> interned;
  std::uint64_t configuration = 0;  // grows when the cluster is another
  std::unordered_map<std::uint64_t, bool>
      placeable;  // by Submission::shape: not refused, config unchanged
  std::map<std::string, std::uint64_t> licenses_used;
  std::map<std::string, wire::PartitionRecord> partition_records;
  std::map<std::string, reservation::Reservation> reservations;
  std::uint32_t last_reservation = 0;  // its number
  std::uint64_t reservation_round = 0;
  std::optional<Time> reservation_due;
  std::set<std::string> in_force;    // reservations, when it was last looked
  bool reserved_nodes_lost = false;  // or taken by jobs: others may take their places
  std::vector<View> views = {View()};
  std::map<std::string, std::uint32_t> view_numbers;
  std::set<cluster::NodeIndex> reserved_nodes;  // NodeState::reservation is set
  std::set<std::string> dirty_reservations;     // those that do not exist any more were deleted
  std::set<std::pair<Time, JobId>> timers;
  std::unordered_map<JobId, Time> timer_of;
  std::map<JobId, Dependency> dependencies;        // of pending jobs
  std::map<JobId, std::set<JobId>> dependents;     // target (job or array id) → who waits for it
  std::set<JobId> singletons;                      // pending jobs with a singleton clause
  std::map<cluster::NodeIndex, Time> node_timers;  // silent nodes: when they are DOWN
  std::map<std::string, std::set<JobId>> may_run;  // node → jobs with that in Job::may_run_on
  Time adopted = 0;            // by so much the clock was set since there are stored moments
  Time leases_rest_until = 0;  // the controller before this one told nodes to let jobs run
  std::set<cluster::NodeIndex> newly_found;  // GPUs told, not yet in `cluster`
  std::optional<Time> found_due;             // when they are put there
  /// Power saving; empty where it is not enabled.
  struct Power {
    bool enabled = false;
    std::vector<PowerTimes> times;  // by node
    std::set<std::pair<Time, cluster::NodeIndex>> due;
    std::vector<Time> due_of;  // by node; 0 = not due
    PowerRate up_rate, down_rate;
    std::vector<cluster::NodeIndex> up_now, down_now, failed_now;  // to be told outside
    int asleep = 0;                                                // nodes that jobs would wake
    Time longest_wake = 0;
  } power;
  PriorityTotals priority_totals;
  std::optional<Time> priority_due;  // when priorities are worked out again; unset: no age counts
  std::uint64_t priority_round = 0;
  Time priorities_at = 0;
  Backfilled backfilled;
  /// Who waits for others to give way → those who still hold something.
  std::map<JobId, std::set<JobId>> giving_way;
  std::set<JobId> parked;       // suspended without their cores
  std::optional<Time> look_at;  // the scheduler wants to look again then
  std::uint64_t preemptions = 0;
  JobId next_id = 1;
  std::uint32_t fifo = 0;
  std::uint64_t sluids = 0;

  std::set<JobId> dirty_jobs;
  std::set<JobId> changed_jobs;  // for views
  std::set<cluster::NodeIndex> dirty_nodes;
  std::set<std::string> dropped_nodes;  // by scontrol delete
  std::set<cluster::NodeIndex> planned_nodes;
  std::set<std::string> changed_nodes;  // for views
  std::set<std::string> dirty_partitions;
  std::vector<wire::StepRecord> dirty_steps;
  std::vector<JobId> forgotten;
  std::vector<wire::JobRecord> last_records;  // of jobs that were forgotten before they were stored
  bool dirty_next_id = false;
  bool dirty_leases_rest = false;
  bool sync = false;
  std::vector<Effect> effects;
  Wake wake;
  Ports ports;
  std::uint64_t version = 0;

  std::shared_ptr<const PortLease> meeting_place(std::vector<wire::StepSpec>& specs,
                                                 std::uint32_t count);
  // memory.cpp: bookkeeping
  Job* find(JobId id);
  NodeState* find_node(std::string_view name);
  void touch(const Job& job);  // store it, synced
  void touch_node(cluster::NodeIndex index);
  void effect(Effect effect) { effects.push_back(std::move(effect)); }
  JobId take_id();
  std::string next_sluid(Time now);
  void add_to_group(const Job& job);
  /// Puts a pending job into or out of the queue, as hold, begin time and dependencies say.
  void requeue_place(Job& job, Time now);
  void place_in_queue(Job& job, Time now);
  void leave_queue(JobId id);
  /// It needs no place in the future any more: others may have it.
  void drop_plan(Job& job);
  /// When the job next needs tick().
  void arm(const Job& job);
  /// Tells those who keep lists of ends; part of arm().
  void note_end(const Job& job);
  void disarm(JobId id);
  /// OverTimeLimit of its partition or the cluster, in seconds.
  [[nodiscard]] Time over_time(const Job& job) const;
  /// When an after:job+minutes is met, if all it names have started; 0 = not known.
  [[nodiscard]] Time after_due(const Job& job) const;
  void wake_all() { wake.everything = true; }
  void open_batch_step(Job& job);
  std::uint32_t tier_of(const Job& job) const;
  [[nodiscard]] QueueKey key_for(const Job& job) const;
  void forget(JobId id);
  void set_reason(Job& job, std::string_view reason, std::string text = {});
  void refresh_usable(cluster::NodeIndex index);
  /// gpu_health.cpp: these GPUs of the node are out of service now, and no others.
  void take_gpus_out(cluster::NodeIndex index,
                     const google::protobuf::RepeatedPtrField<wire::GpuOut>& told);
  /// All that are out of service, by hand or as its agent told, and why.
  [[nodiscard]] static std::map<std::uint32_t, std::string> gpus_out_of(const NodeState& node);
  /// What was taken out by hand and does not exist any more cannot be given back by hand.
  void forget_missing_gpus(cluster::NodeIndex index);
  /// State= and Reason= of a node that was not known before.
  void take_configured_state(cluster::NodeIndex index, Time now);
  /// A silent node is DOWN after SlurmdTimeout; one that was created and has never come is not.
  /// Jobs that have not ended on one that is DOWN already are given up then.
  void expect(cluster::NodeIndex index);
  void rebuild_usage();
  // found_gpus.cpp
  /// Remembers what the agent found of the node's GPUs. In a large cluster it is planned with a
  /// moment later, so that many nodes that register together cost one rebuild.
  void note_gpus(cluster::NodeIndex index, const wire::NodeReport& report, Time now);
  void found_tick(Time now);
  [[nodiscard]] bool fits(const cluster::Allocation& allocation, bool only_usable = true) const;
  /// Takes the first of its choices that is free; or gives back what it has.
  void take_licenses(Job& job, Time now);
  void count_licenses(const Job& job, bool take);
  [[nodiscard]] bool licenses_free(const Job& job, Time now) const;
  [[nodiscard]] bool licenses_free(const LicenseCounts& counts, const Job& job, Time now) const;
  [[nodiscard]] std::vector<JobId> records_of(JobId id) const;
  [[nodiscard]] std::vector<Job*> components_of(const Job& job);

  // queue_order.cpp
  std::uint32_t natural_priority();             // priority/basic
  void after_priority(std::uint32_t priority);  // later ones come behind it
  /// Multifactor: the sum without nice.
  [[nodiscard]] double priority_sum(const Job& job, Time now) const;
  /// What a job that is not held and whose priority nobody set has now.
  [[nodiscard]] std::uint32_t current_priority(const Job& job, Time now) const;
  /// Works out Job::priority_base, and the priority of a job as it enters the queue.
  void set_priority(Job& job, Time now);
  void count_age(Job& job, bool grows, Time now);
  /// PriorityCalcPeriod: all that wait, and the queue in its new order.
  void reprioritise(Time now);
  void configure_priorities(bool was_multifactor);

  // reservations.cpp, reservation_time.cpp
  /// What a job may use of reservations.
  void set_view(Job& job);
  /// It asks for reservations, and may use none of them.
  [[nodiscard]] bool view_bars(const Job& job) const {
    return views[job.view].only && views[job.view].names.empty();
  }
  /// The job's words about reservations, checked; an error says why it cannot have them.
  [[nodiscard]] Result<void> check_reservation(std::string_view names,
                                               const reservation::User& user) const;
  /// A reservation is another than before: views, nodes and timers follow.
  void reservations_changed(Time now);
  void mark_reserved_nodes(Time now);
  void arm_reservations(Time now);
  void reservations_tick(Time now);
  /// Its time is over, or it is deleted: what waits for it is held, or runs without it.
  void forget_reservation(const std::string& name, Time now);
  void end_occurrence(reservation::Reservation& reservation, Time now);
  /// Nodes by their new indices.
  void move_reservations(const cluster::Cluster& before);
  /// Of a licence: kept for jobs of reservations that this one is none of.
  [[nodiscard]] std::uint64_t licenses_kept(const std::string& name, const Job& job,
                                            Time now) const;

  // access.cpp
  /// Whether somebody may have a job with these words in these partitions ("a,b"): their access
  /// rules, the users of its reservations, the licences there are. The error has no prefix.
  [[nodiscard]] Result<void> check_access(const Submission& what, std::string_view partitions,
                                          const reservation::User& who) const;
  /// The same for a job whose words become these, if they differ in what that reads; and limits
  /// that it was given after its submission against those of the partitions.
  [[nodiscard]] Result<void> check_moved(const Job& job, const Submission& what,
                                         std::string_view partitions, const Caller& caller) const;

  // submission.cpp
  Result<std::vector<std::shared_ptr<const Submission>>> read(
      const wire::Asked& asked, const std::vector<std::string>& overrides, const Caller& caller,
      std::vector<Message>& warnings, bool stored = false);
  std::shared_ptr<const Submission> intern(Submission submission);
  /// The element `task` of an array as a job of its own; the last one left keeps the record.
  Job& split(Job& rest, std::uint32_t task);

  // depend.cpp
  Result<void> set_dependency(Job& job, std::string_view text, bool check, Time now);
  void evaluate(Job& job, Time now);
  void dependents_of(const Job& changed, Time now);
  void drop_dependency(JobId id);

  // last_attempt.cpp
  /// It can be told that a job is over, and is going to say when nothing is left of it.
  [[nodiscard]] bool reachable(cluster::NodeIndex index) const;
  /// By when a lease of the job is over on a silent node; 0 = it has none.
  [[nodiscard]] Time lease_end(cluster::NodeIndex index, const Job& job, Time now) const;
  /// The job is over for us and the node cannot say so: it may still run there.
  void lose_sight(Job& job, cluster::NodeIndex index, Time now);
  /// The job's last attempt has ended on that node.
  void ended_there(Job& job, const std::string& node, Time now);
  /// The machine is off, or was.
  void nothing_runs_on(const std::string& node, Time now);
  void hear_of_last_attempts(const wire::NodeReport& report, Time now);
  /// A node that was back and is silent once more.
  void leases_count(cluster::NodeIndex index, Time now);
  void forget_last_attempt(Job& job);
  void look_again_at(Job& job, Time now);
  [[nodiscard]] std::vector<JobId> may_run_there(const std::string& node) const;
  /// As far as time goes it may begin then, with all its components.
  [[nodiscard]] Time not_before(const Job& job) const;
  /// What it waits for besides, in words; "" = nothing.
  [[nodiscard]] std::string awaited_word(const Job& job) const;
  /// Why it waits for longer than its begin time, in words.
  [[nodiscard]] static std::string lease_text(const Job& job, Time now);

  // end.cpp
  void end(Job& job, Base base, std::string reason, std::string cause, bool at_once, Time now);
  void end_whole(Job& job, Base base, const std::string& reason, const std::string& cause,
                 bool at_once, Time now);
  void end_pending(Job& job, Base base, Time now);
  void all_gone(Job& job, Time now);
  void back_to_queue(Job& job, Time now);
  /// Ends a running batch job to start it again; `held` with the state SPECIAL_EXIT if `special`.
  /// `delay`: before it may start; RequeueDelay if unset.
  void end_to_requeue(Job& job, bool held, bool special, const std::string& cause, Time now,
                      std::optional<Time> delay = {});
  /// Whether this start of the job has, or had until now, anything on the node: what a node says
  /// of other jobs is not believed.
  [[nodiscard]] bool runs_on(const Job& job, std::uint32_t attempt, std::string_view node) const;
  void fail_on_node(Job& job, const std::string& node, Time now);
  void drain(cluster::NodeIndex index, const std::string& reason, Time now);
  /// The node says that it cannot start what it is given: it takes no more.
  void drain_unfit(const std::string& node, const std::string& reason, Time now);
  /// Nothing of the job was started there, by the node's own fault.
  void launch_failed_on(Job& job, const std::string& node, Time now);
  void set_exit(Job& job, std::int32_t status);

  // steps.cpp, step_create.cpp
  void retry_waiting(Job& job, Time now);
  /// True when it was answered for good (granted or refused).
  bool try_step(Job& job, WaitingStep& waiting, Time now);
  void close_step(Job& job, Step& step, Time now);
  void store_step(const Job& job, const Step& step, std::string_view state, Time end);
  void drop_steps(Job& job);
  /// Asks all nodes where the step still runs to end it, in all components.
  void end_open_step(Job& job, std::uint32_t step, const std::string& cause);
  /// What one node says of the end of a step.
  static void add_end(Step& step, const wire::StepEnded& message);
  static std::string_view end_state(const Job& job, const Step& step);

  // late_step.cpp
  void keep_late_steps(Job& job);
  void end_late_step(Job& job, const wire::StepEnded& message, Time now);

  // preempt.cpp
  /// It gives way now: its grace, if it had one, is over.
  void give_way(Job& job, Time now);
  /// What the job holds: all of its allocation, or what a suspended job keeps.
  [[nodiscard]] static cluster::Allocation held(const Job& job);
  void forget_giving_way(const Job& job);
  void remember_giving_way(const Job& job);
  /// Gives its cores to others (true), or takes them back.
  void park(Job& job, bool parks);
  // power.cpp
  void configure_power(Time now);
  /// When the node is next due, after something about it has changed.
  void look_at_power(cluster::NodeIndex index, Time now);
  void refresh_wake(cluster::NodeIndex index);
  void power_up(cluster::NodeIndex index, Time now);
  void power_down(cluster::NodeIndex index, bool no_new_jobs, Time now);
  /// The job has left the node.
  void power_idle(const Job& job, cluster::NodeIndex index, Time now);
  /// Switches on what the job was given, and notes what it waits for.
  void wake_nodes(Job& job, Time now);
  void await_nodes(Job& job, Time now);
  /// It, or another component of it, waits for nodes to be switched on.
  [[nodiscard]] bool waits_for_power(const Job& job) const;
  /// It has registered; jobs that waited for it begin.
  /// `same_boot`: the machine has not been started anew since it registered last.
  void node_is_up(cluster::NodeIndex index, bool same_boot, Time now);
  void power_tick(Time now);
  /// After a restart: what was decided and perhaps not carried out.
  void power_again(Time now);
  void flush_power();

  // gpu_idle.cpp
  /// So long all GPUs of the job, with all its components, may be idle; nullopt: for ever, or it
  /// does not run now.
  [[nodiscard]] std::optional<Time> gpu_idle_limit(const Job& job);
  /// When its nodes are to be asked; 0 = not now.
  [[nodiscard]] Time gpu_idle_due(const Job& job);
  void start_gpu_idle(Job& leader, Time now);
  void ask_gpu_idle(Job& leader);
  /// The node is back; it may have missed the question.
  void ask_gpu_idle_again(const Job& job, const std::string& node);
  Result<void> set_gpu_idle(Job& job, std::optional<std::uint32_t> seconds, const Caller& caller);
  /// --gpu-idle-timeout of a submission: refused, or what is to be said about it.
  [[nodiscard]] Result<std::vector<Message>> check_gpu_idle(const Submission& what,
                                                            const std::string& partitions) const;

  // resize.cpp
  /// The node has given back what the job was shrunk by; false when it is none of these.
  bool leave_node(Job& job, const std::string& node);
};

/// How long nodes let an attempt of the job run that begins now without the controller, in seconds.
Time lease_of(const Policy& policy, const Job& job);
/// GpuIdleTimeout of a partition, for jobs that do not say.
std::optional<std::uint32_t> default_gpu_idle(const Policy& policy, std::string_view partition);
/// Of a job that starts in its partition: the default where nothing was said, and never more than
/// its bound, whichever partition it was that took it, unless an administrator said so.
void decide_gpu_idle(const Policy& policy, Job& job);
/// Which of the partitions ("a,b") does not let a job have that much, in words; "" = none.
std::string gpu_idle_beyond(const Policy& policy, std::string_view partitions,
                            std::optional<std::uint32_t> seconds);
/// The partitions it asks for, "a,b", or the default one.
std::string partition_text(const cluster::Cluster& cluster, const Submission& what);
/// Held from now on: by an administrator, unless the caller is none or `as_user`. An
/// administrator's hold stays one whoever holds the job once more.
void hold_by(Job& job, const Caller& caller, bool as_user);
/// What request::parse reads besides words.
request::Surroundings surroundings_of(const wire::Asked& asked, const State::Memory& memory,
                                      const Caller& caller, bool inside_job);
/// The job of that id when the caller may act on it.
Result<Job*> own_job(Job* job, const Caller& caller);
/// "NonZeroExitCode", "RaisedSignal:9(Killed)" or "None" for a wait(2) status.
std::string exit_reason(std::int32_t status);

}  // namespace berth::job
