// The state thread. It takes what has come since the last turn, applies it to job::State, lets the
// scheduler look, stores all of it with one sync, and only then answers and tells the nodes:
//
//   requests, node events, timers → State → schedule → store (one commit) → answers, effects
//
// When the store cannot be written, nothing of the turn is acknowledged: what clients asked for is
// undone (the state is read again from the store) and refused; what nodes said stays true, is kept
// in memory unconfirmed, and is stored as soon as the disk allows. docs/design/controller.md has
// the reasons.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/adviser.h"
#include "controller/agents.h"
#include "controller/asked_cache.h"
#include "controller/caller.h"
#include "controller/change_update.h"
#include "controller/crash_points.h"
#include "controller/figures.h"
#include "controller/front.h"
#include "controller/identities.h"
#include "controller/log.h"
#include "controller/messenger.h"
#include "controller/outbox.h"
#include "controller/owners.h"
#include "controller/power_programs.h"
#include "controller/published.h"
#include "controller/request_counts.h"
#include "controller/setup.h"
#include "controller/tickets.h"
#include "controller/users.h"
#include "job/state.h"
#include "store/store.h"

namespace berth::controller {

/// What the engine is made of; all references outlive it.
struct Parts {
  const Clock& clock;
  Log& log;
  CrashPoints& crash;
  Users& users;
  Messenger& messenger;
  Published& published;
  RequestCounts& requests;
  Setup setup;
  store::Store store;
  std::string cluster_key;
  Identities identities;
  std::vector<std::string> addresses;  // "host:port" of this controller, for tokens
  std::string state;                   // directory
  std::uint64_t epoch = 0;
  bool emulate = false;
  std::string host;            // name of this machine
  std::function<void()> shut;  // scontrol shutdown
  /// max_script_size is another one.
  std::function<void(std::size_t bytes)> limit_scripts;
};

class Engine {
 public:
  explicit Engine(Parts parts);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Reads what was stored; before start().
  Result<void> load();
  void start();
  void stop();
  /// What the thread does whenever it wakes: a turn with what has come and what is due. Whoever
  /// does not start() the thread calls it, when something has come or wakes_at() is there.
  void wake();
  [[nodiscard]] Moment wakes_at() const { return wakes_at_; }
  /// Only where there is no thread.
  [[nodiscard]] const job::State& state() const { return *state_; }
  /// The process ends in order and another one is to follow: after stop(). Nodes let jobs run on
  /// for a while without a controller.
  void let_leases_rest();

  // Any thread:
  void request(Request request);
  void closed(Peer peer);
  void reread();  // SIGHUP
  /// Returns when what was acknowledged up to now is published. Jobs are many: only who shows them
  /// asks for them.
  void refresh(bool with_jobs);

 private:
  using Effects = std::vector<job::Effect>;
  struct Event {
    enum class What { request, closed, reread } what = What::request;
    Request request;
  };
  /// What follows when the turn is stored.
  struct Then {
    Peer peer = 0;
    enum class When {
      stored,    // undone and refused when it cannot be stored
      fact,      // waits until it is stored
      any_time,  // does not depend on the store
    } when = When::stored;
    std::move_only_function<void()> run;
  };
  struct Turn {
    job::Time now = 0;
    Moment moment;
    std::vector<Then> thens;
    store::Batch batch;  // blobs of submissions
    bool asked_for_changes = false;
  };
  using Handler = void (Engine::*)(Turn&, const Request&);

  // engine.cpp: turns
  void work();
  void take_turn(std::vector<Event> events);
  void handle(Turn& turn, Event& event);
  void pass_time(Turn& turn);
  void flush();
  [[nodiscard]] Moment next_moment() const;
  // views.cpp
  void publish();
  void publish_jobs();

  // engine_store.cpp: storing
  Result<void> read_store(job::Time now);
  [[nodiscard]] store::Batch batch_of(Turn& turn);
  void note_changes(const store::Batch& batch, const std::vector<job::JobId>& forgotten);
  void finish(Turn& turn);
  void carry_on(Turn& turn, Effects effects);
  void cannot_store(Turn& turn, store::Batch batch, Effects effects, const Error& why);
  [[nodiscard]] Error store_error() const;
  void tell_damage();

  // requests.cpp, submissions.cpp, operations.cpp: what clients ask for
  static Handler handler_of(wire::Kind kind);
  void submit(Turn& turn, const Request& request);
  void create_step(Turn& turn, const Request& request);
  void get_allocation(Turn& turn, const Request& request);
  void reclaim_job(Turn& turn, const Request& request);
  void reclaim_step(Turn& turn, const Request& request);
  void finish_job(Turn& turn, const Request& request);
  void wait_job(Turn& turn, const Request& request);
  void get_access(Turn& turn, const Request& request);
  void get_script(Turn& turn, const Request& request);
  void explain_job(Turn& turn, const Request& request);
  void foresee(Turn& turn, const Request& request, const std::vector<job::Job>& trial,
               wire::SubmitReply& reply);
  void put_why(const schedule::Why& why, const Caller& caller, wire::JobExplained& out);
  /// PrivateData=jobs, and this is somebody else's.
  [[nodiscard]] bool hidden(std::uint32_t uid, const Caller& caller) const;
  void list_reservations(Turn& turn, const Request& request);
  void act_on_jobs(Turn& turn, const Request& request);
  void cancel_jobs(Turn& turn, const Request& request);
  void change(Turn& turn, const Request& request);
  [[nodiscard]] ChangeContext change_context();
  /// For readers and for advice.
  void nodes_changed();
  void diagnose(Turn& turn, const Request& request);
  void reconfigure(Turn& turn, const Request& request);
  void shutdown(Turn& turn, const Request& request);
  void set_debug(Turn& turn, const Request& request);
  Result<void> read_setup_again(Turn& turn);
  /// The message; nullopt when it cannot be read, and who sent it is dropped.
  template <class M>
  std::optional<M> decoded(const Request& request) {
    std::optional<M> message = wire::decode<M>(request.payload);
    if (!message) outbox_.close(request.peer);
    return message;
  }
  void refuse(Peer peer, const Error& error);
  template <class M>
  void answer_when_stored(Turn& turn, Peer peer, M message) {
    turn.thens.push_back({peer, Then::When::stored, [this, peer, message = std::move(message)] {
                            outbox_.answer(peer, message);
                          }});
  }
  [[nodiscard]] Result<const job::Job*> visible_job(job::JobId id, const Caller& caller) const;
  void try_held_steps(job::Time now);
  void ask_state_for_step(std::uint64_t key, job::Time now);
  [[nodiscard]] User user_of(const job::Job& job);
  void tell_ended(Peer peer, const job::Job& job);

  // node_events.cpp: what agents say
  void register_nodes(Turn& turn, const Request& request);
  /// What this store says to an agent that was told of a store; an error when it is an older copy
  /// or another one.
  Result<void> check_memory(const wire::RegisterNodes& message) const;
  [[nodiscard]] wire::StoreMemory memory() const;
  void claimed(const Request& request, const std::string& node, Peer first);
  /// Nobody serves these nodes any more: whoever was refused for them may try again.
  void let_claimants_try(Turn& turn, const std::vector<std::string>& nodes);
  void drop_forged_steps(const Request& request, wire::NodeReport& report);
  /// For lines that whoever sent the request can cause as often as he likes.
  [[nodiscard]] Log::Source log_of(const Request& request);
  // membership.cpp
  void join_node(Turn& turn, const Request& request);
  Result<void> make_invited_node(Turn& turn, const wire::JoinNode& message);
  void put_conf_files(wire::NodeJoined& reply) const;
  void renew_identity(Turn& turn, const Request& request);
  void make_tokens(Turn& turn, const Request& request);
  void revoke_nodes(Turn& turn, const Request& request);
  void vouch(Turn& turn, const Request& request);
  [[nodiscard]] std::uint32_t own_group(std::uint32_t uid, std::uint32_t said);
  Result<std::vector<std::string>> known_nodes(const std::string& list) const;
  Result<std::vector<std::string>> new_nodes(const std::string& list) const;
  void new_identity(Turn& turn, const std::string& node);
  void lose_unnamed(Turn& turn, Peer peer, const wire::RegisterNodes& message);
  void job_begun(Turn& turn, const Request& request);
  void job_gone(Turn& turn, const Request& request);
  void job_gpus(Turn& turn, const Request& request);
  void gpu_health(Turn& turn, const Request& request);
  void job_gpu_idle(Turn& turn, const Request& request);
  void step_started(Turn& turn, const Request& request);
  void step_ended(Turn& turn, const Request& request);
  void node_trouble(Turn& turn, const Request& request);
  void beat(Turn& turn, const Request& request);
  void peer_left(Turn& turn, Peer peer);
  /// Agents that say nothing: first their nodes get no more jobs, then they are dropped.
  void look_for_silence(Turn& turn);
  /// Something came from the peer.
  void heard_from(Turn& turn, Peer peer);
  /// When that agent was last heard, in Unix seconds.
  [[nodiscard]] job::Time heard_at(const Agents::Agent& agent, Moment now) const;
  /// After a pause in which this process did not run (stopped, or the machine asleep) nobody is
  /// taken for silent.
  void forgive_silence(Turn& turn, std::chrono::seconds paused);
  void configure_agents(Turn& turn);  // tells them of a new slurm.conf
  [[nodiscard]] bool speaks_for(Turn& turn, const Request& request, const std::string& node);
  void find_owner_of_step(const wire::StepSpec& spec, Moment now);

  // effects.cpp: what follows
  void carry_out(const job::Effect& effect, job::Time now);
  void begin(const job::BeginJob& effect, job::Time now);
  void end(const job::EndJob& effect);
  void end_step(const job::EndStep& effect);
  void signal(const job::SignalNodes& effect);
  void suspend(const job::Suspend& effect);
  void forget(const job::Forget& effect);
  void grant_job(const job::GrantJob& effect);
  [[nodiscard]] wire::JobGrant grant_of(const job::Job& job);
  void tell_waiting(const job::TellWaiting& effect);
  void tell_ended(const job::TellEnded& effect);
  void notice(const job::Notice& effect);
  void say_in_batch(const job::SayInBatch& effect);
  void ask_gpu_idle(const job::AskGpuIdle& effect);
  void end_probation(const job::EndProbation& effect);
  void grant_step(job::GrantStep effect, job::Time now);
  void step_must_wait(const job::StepMustWait& effect);
  void refuse_step(const job::RefuseStep& effect);
  // power.cpp
  void switch_nodes(const job::SwitchNodes& effect);
  void register_again(const std::vector<std::string>& nodes);
  template <class M>
  void to_node(const std::string& node, const M& message);

  Parts parts_;
  const Clock& clock_;
  Log& log_;
  Users& users_;
  store::Store store_;
  Setup setup_;
  std::unique_ptr<job::State> state_;
  std::unique_ptr<schedule::Scheduler> scheduler_;  // of that state
  Tickets tickets_;
  Agents agents_;
  Owners owners_;
  AskedCache asked_;
  Outbox outbox_;
  Figures figures_;
  std::shared_ptr<const cluster::Cluster> advised_cluster_;
  Adviser adviser_;
  PowerPrograms power_programs_;
  std::uint64_t resume_files_ = 0;
  Moment next_silence_check_;
  Moment wakes_at_;                        // at the latest
  std::chrono::seconds planned_{0};        // until then, from the end of the turn before
  job::Time woke_ = 0;                     // last
  std::chrono::seconds paused_{0};         // until this turn, beyond what was planned
  bool more_to_do_ = false;                // carrying out changed the state: another turn at once
  bool in_a_pass_ = false;                 // the scheduler is not done with one
  bool answers_first_ = false;             // this turn leaves the scheduling pass to the next
  std::vector<std::uint64_t> held_steps_;  // wait until all nodes of the job have registered

  // While the store cannot be written
  bool degraded_ = false;
  std::string why_degraded_;
  Moment retry_at_;
  store::Batch unsaved_;
  Effects withheld_;
  std::vector<Then> withheld_thens_;
  std::vector<Event> postponed_;
  std::uint32_t next_job_id_ = 0;
  bool damage_told_ = false;

  // What readers have not seen yet
  std::set<job::JobId> changed_jobs_;
  std::set<std::string> changed_nodes_;
  bool all_jobs_changed_ = true;
  std::uint64_t published_round_ = 0;  // State::priority_round()
  bool all_changed_ = true;            // nodes, partitions, configuration
  std::atomic<bool> stale_jobs_{true};
  std::atomic<bool> stale_{true};

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable published_;
  std::vector<Event> events_;         // guarded by mutex_
  std::uint64_t refresh_wanted_ = 0;  // guarded by mutex_
  std::uint64_t refresh_done_ = 0;    // guarded by mutex_
  bool refresh_jobs_ = false;         // guarded by mutex_
  bool stopping_ = false;             // guarded by mutex_
  std::thread thread_;
};

}  // namespace berth::controller
