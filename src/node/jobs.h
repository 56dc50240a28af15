// The jobs of this agent's nodes, from BeginJob to the confirmed JobGone.
//
//   BeginJob ─ record ─ prolog ─▶ ready (JobBegun, batch step) ─ EndJob ─▶ steps ended ─ epilog ─▶
//   gone (JobGone, again after each reconnect) ─ Forget ─▶ nothing
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/bits.h"
#include "node/gpu_shares.h"
#include "node/job_host.h"
#include "node/lease.h"
#include "wire/agent.pb.h"

namespace berth::node {

class Jobs {
 public:
  struct Tell {
    std::function<void(const wire::JobBegun&)> begun;
    std::function<void(const wire::JobGone&)> gone;
    /// The answer to "may a step of this job start now?" may have changed.
    std::function<void(const NodeJob&)> changed;
    /// Everything of it has ended; JobGone is next.
    std::function<void(const NodeJob&)> ended;
  };
  enum class Readiness { unknown, beginning, ready, over };

  Jobs(JobHost& host, Tell tell) : host_(host), tell_(std::move(tell)) {}

  /// Reads the records of a node. Jobs whose batch step never started are dropped: the controller
  /// will begin them again.
  void adopt(const std::string& node, const std::vector<StepKey>& unstarted);
  /// It was begun before the machine crashed. Its records may have lost their ends, or be lost
  /// altogether; it is not begun again. Before adopt().
  void lost_with_the_machine(const NodeJob& at);

  void begin(const wire::BeginJob& message);
  void end(const wire::EndJob& message);
  void forget(const NodeJob& at);
  /// Ends, at once and without a word of the controller, what its lease does not let run any more.
  /// True when there was something; the controller hears of it in the next registration.
  bool end_leases(const Lease& lease, Lease::Moment now);
  /// When end_leases() next has something to do, if nothing is answered before.
  [[nodiscard]] std::optional<Lease::Moment> next_lease_end(const Lease& lease) const;
  /// A step of the job has ended.
  void step_ended(const NodeStep& at) { went_on({at.node, at.key.job, at.key.attempt}); }
  /// No file is on its way into the job any more.
  void receivers_gone(const NodeJob& at) { went_on(at); }

  [[nodiscard]] Readiness readiness(const NodeJob& at) const;
  /// What it was begun with, but for the batch program; nullptr when it is not known.
  [[nodiscard]] const wire::BeginJob* begun_with(const NodeJob& at) const;
  [[nodiscard]] std::vector<wire::HeldJob> held(const std::string& node) const;
  /// Jobs that have GPUs, or shares of them, and have not gone.
  struct Holder {
    NodeJob at;
    Bits gpus;                               // as the job counts them on its node
    std::map<std::size_t, GpuPart> parts{};  // of those that it shares
    std::string user{};
  };
  [[nodiscard]] std::vector<Holder> with_gpus() const;
  /// What the controller may have missed: JobBegun of ready jobs, JobGone of those that are gone.
  void repeat();

 private:
  enum class Phase { storing, prolog, ready, failed, ending, epilog, gone };
  struct Job {
    NodeJob at;
    wire::BeginJob begin;
    wire::JobBegun begun;
    wire::EndJob end;
    wire::JobGone gone;
    Phase phase = Phase::storing;
    bool lost = false;  // begun before the machine crashed: nothing is launched for it any more
    bool ending = false;
    bool failed_before = false;  // to be stored; it is tried again
    bool lease_over = false;
    std::function<void()> stop_script;
  };

  Job* find(const NodeJob& at);
  /// Writes down that it begins here, then goes on.
  void store(Job& job);
  void store_failed(Job& job, Error why);
  /// When the lease of the job is over; nullopt: it has none, or nothing of it runs any more.
  [[nodiscard]] static std::optional<Lease::Moment> lease_end(const Job& job, const Lease& lease);
  void run_prolog(Job& job);
  void prolog_done(const NodeJob& at, const std::string& trouble);
  void start_batch(Job& job);
  void tell_begun(Job& job, const Error* refusal, bool prolog_failed);
  /// What may have kept the job from its end is less now.
  void went_on(const NodeJob& at);
  void advance_end(Job& job);
  void epilog_done(const NodeJob& at, const std::string& trouble);

  JobHost& host_;
  Tell tell_;
  std::map<NodeJob, Job> jobs_;
};

}  // namespace berth::node
