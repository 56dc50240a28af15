#include "simulate/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>
#include <unordered_map>

#include "job/state.h"
#include "schedule/schedule.h"
#include "simulate/fragmentation.h"
#include "simulate/measure.h"
#include "simulate/words.h"
#include "wire/step_ids.h"

namespace berth::simulate {
namespace {

using job::JobId;
using job::Time;

/// Where virtual time begins: any moment that is not 0, which means "not known" to jobs.
constexpr Time kBegin = 1'000'000'000;
constexpr int kEndedBySignal = 15;
/// Turns without anything but timers after which jobs that still wait are given up.
constexpr int kMostIdleTurns = 10'000;
constexpr std::uint64_t kTellEvery = 256;  // turns
constexpr std::size_t kNamed = 5;

class World {
 public:
  World(const Setup& setup, const Trace& trace, const HowToRun& how)
      : setup_(setup),
        trace_(trace),
        how_(how),
        state_(setup.cluster, setup.policy),
        fragmentation_(state_.cluster(), trace),
        wording_(state_.cluster()),
        measure_(0, 0, 0) {
    out_.label = setup.label;
    out_.jobs = trace.jobs.size();
    register_nodes();
    word_asks();
    const std::int64_t arrivals =
        trace.jobs.empty() ? 0 : trace.jobs.back().submit - trace.jobs.front().submit;
    measure_ = Measure(out_.cpus, out_.gpus, arrivals);
  }

  Outcome run() {
    int idle = 0;
    std::uint64_t turns = 0;
    while (const auto next = next_moment()) {
      const bool only_timers = arrived_ == trace_.jobs.size() && live_.empty();
      idle = only_timers ? idle + 1 : 0;
      if (only_timers && (waiting_.empty() || idle > kMostIdleTurns)) break;
      turn(std::max(*next, now_), only_timers);
      if (how_.tell && ++turns % kTellEvery == 0) tell();
    }
    if (how_.tell) tell();
    give_up_waiting();
    out_.preemptions = state_.preemptions();
    const std::vector<std::string> notes = wording_.notes();
    out_.notes.insert(out_.notes.end(), notes.begin(), notes.end());
    measure_.finish(out_);
    return std::move(out_);
  }

 private:
  struct Live {
    std::uint32_t job = 0;  // position in the trace
    std::uint32_t attempt = 0;
    std::uint32_t turn_of_end = 0;  // which End counts: others are of before a suspension
    Time start = 0;
    Time first_start = 0;
    Time end_at = 0;  // when it has run as long as it would
    Time left = 0;    // of that, while it is suspended
    std::int64_t cpus = 0;
    std::int64_t gpus = 0;
    bool suspended = false;
  };
  struct End {
    Time at = 0;
    JobId job = 0;
    std::uint32_t attempt = 0;
    std::uint32_t turn_of_end = 0;
    friend bool operator>(const End& a, const End& b) {
      return a.at != b.at ? a.at > b.at : a.job > b.job;
    }
  };
  struct Waiting {
    std::uint32_t job = 0;
    Time first_start = 0;  // of one that was started before and came back
  };

  void register_nodes() {
    wire::RegisterNodes agent;
    agent.set_emulated(true);
    wire::NodeReport report;
    for (const cluster::Node& node : setup_.cluster.nodes) {
      report.set_name(node.name);
      report.set_memory_mb(node.memory_mb);
      (void)state_.register_node(report, agent, now_);  // the name is the cluster's own
    }
    state_.discard_changes();
    (void)state_.take_effects();
    for (const cluster::Node& node : state_.cluster().nodes) {
      if (!node.usable) continue;
      ++out_.nodes;
      out_.cpus += node.cpus();
      if (const cluster::Gres* gpus = node.find_gres("gpu")) out_.gpus += gpus->total();
    }
  }

  void word_asks() {
    std::vector<std::uint64_t> count(trace_.asks.size());
    for (const TraceJob& job : trace_.jobs) ++count[job.ask];
    for (std::size_t i = 0; i < count.size(); ++i) {
      wire::SubmitJob ask;
      wire::Asked& asked = *ask.mutable_asked();
      asked.set_command("sbatch");
      asked.set_directory("/");
      asked.set_script("#!/bin/sh\n");
      asked.set_submit_line("sbatch job");
      for (const std::string& word : wording_.words(trace_.asks[i], count[i])) {
        asked.add_words(word);
      }
      asks_.push_back(std::move(ask));
    }
  }

  [[nodiscard]] Time submit_time(const TraceJob& job) const {
    return kBegin + job.submit - trace_.jobs.front().submit;
  }

  [[nodiscard]] std::optional<Time> next_moment() const {
    std::optional<Time> next = state_.next_deadline();
    const auto at = [&](Time when) { next = std::min(next.value_or(when), when); };
    if (arrived_ < trace_.jobs.size()) at(submit_time(trace_.jobs[arrived_]));
    if (!ends_.empty()) at(ends_.top().at);
    return next;
  }

  /// `only_timers`: nothing runs and nothing comes, which is not measured unless something starts.
  void turn(Time now, bool only_timers) {
    const Measure::Now before = used_;
    if (!only_timers) measure(now, before);
    now_ = now;
    while (!ends_.empty() && ends_.top().at <= now_) {
      const End end = ends_.top();
      ends_.pop();
      run_out(end);
    }
    state_.tick(now_);
    while (arrived_ < trace_.jobs.size() && submit_time(trace_.jobs[arrived_]) <= now_) {
      submit(static_cast<std::uint32_t>(arrived_++));
    }
    answer();
    const schedule::Figures seen = scheduler_.run(state_, now_, setup_.schedule);
    out_.passes += seen.examined > 0 ? 1 : 0;
    out_.placements += seen.placed;
    answer();
    if (only_timers && !live_.empty()) measure(now, before);
    used_.waiting = waiting_.size();
    used_.running = live_.size();
    state_.discard_changes();
  }
  void measure(Time now, const Measure::Now& was) {
    measure_.advance(now - kBegin, was, [&] { return fragmentation_.sample(state_.usage()); });
  }

  void submit(std::uint32_t position) {
    const TraceJob& job = trace_.jobs[position];
    wire::SubmitJob& ask = asks_[job.ask];
    wire::Asked& asked = *ask.mutable_asked();
    const int plain = asked.words_size();
    std::uint32_t limit = job.limit_minutes;
    if (limit == 0 && how_.limit_factor > 0) {
      const double minutes = std::ceil(static_cast<double>(job.runtime) * how_.limit_factor / 60);
      limit = static_cast<std::uint32_t>(std::clamp(minutes, 1.0, 5'000'000.0));
    }
    if (limit > 0) asked.add_words(fmt::format("--time={}", limit));
    job::Caller caller{job.user + 1000, job.user + 1000, false};
    if (how_.keep_priorities && job.priority > 0) {
      asked.add_words(fmt::format("--priority={}", job.priority));
      caller.privileged = true;
    }
    asked.add_words("job");
    auto done = state_.submit(ask, 0, caller, now_);
    while (asked.words_size() > plain) asked.mutable_words()->RemoveLast();
    if (!done) {
      ++out_.refused;
      if (out_.refused_first.size() < kNamed) {
        const Error& error = done.error();
        out_.refused_first.push_back(
            fmt::format("{}:{}: {}{}", trace_.name, job.line, error.what(),
                        error.hint.empty() ? std::string() : fmt::format(" ({})", error.hint)));
      }
      return;
    }
    waiting_.emplace(done->id, Waiting{position, 0});
  }

  /// What nodes do when they are told, and owners: all of it at once.
  void answer() {
    for (std::vector<job::Effect> effects = state_.take_effects(); !effects.empty();
         effects = state_.take_effects()) {
      for (const job::Effect& effect : effects) {
        if (const auto* begin = std::get_if<job::BeginJob>(&effect)) {
          begun(*begin);
        } else if (const auto* end = std::get_if<job::EndJob>(&effect)) {
          gone(*end);
        } else if (const auto* ended = std::get_if<job::TellEnded>(&effect)) {
          over(*ended);
        } else if (const auto* stop = std::get_if<job::Suspend>(&effect)) {
          suspend(*stop);
        }
      }
    }
  }

  void begun(const job::BeginJob& begin) {
    const job::Job* job = state_.find(begin.job);
    const auto at = waiting_.find(begin.job);
    if (job == nullptr || at == waiting_.end() || job->base != job::Base::running) return;
    Live live;
    live.job = at->second.job;
    live.attempt = job->attempt;
    live.start = now_;
    live.first_start = at->second.first_start != 0 ? at->second.first_start : now_;
    live.end_at = now_ + trace_.jobs[live.job].runtime;
    amounts(*job, live);
    waiting_.erase(at);
    if (live.first_start == now_ && job->attempt == 1) {
      ++out_.started;
      out_.backfilled += job->backfilled ? 1 : 0;
    }
    count(live, 1);
    ends_.push({live.end_at, begin.job, live.attempt, 0});
    live_.emplace(begin.job, live);
    wire::JobBegun message;
    message.set_job_id(begin.job);
    message.set_attempt(job->attempt);
    for (const std::string& node : begin.nodes) {
      message.set_node(node);
      state_.job_begun(message, now_);
    }
  }

  /// It has run as long as it would: the script ends.
  void run_out(const End& end) {
    const auto at = live_.find(end.job);
    if (at == live_.end() || at->second.attempt != end.attempt ||
        at->second.turn_of_end != end.turn_of_end || at->second.suspended) {
      return;
    }
    end_script(end.job, 0);
  }
  void end_script(JobId id, std::int32_t status) {
    const job::Job* job = state_.find(id);
    if (job == nullptr || job->nodes.empty()) return;
    wire::StepEnded message;
    message.set_job_id(id);
    message.set_attempt(job->attempt);
    message.set_step_id(wire::kBatchStep);
    message.set_node(job->nodes.front());
    message.add_statuses(status);
    state_.step_ended(message, now_);
  }

  /// The nodes of a job are told to end it.
  void gone(const job::EndJob& end) {
    const job::Job* job = state_.find(end.job);
    const auto at = live_.find(end.job);
    if (at != live_.end() && at->second.attempt == end.attempt) {
      if (!at->second.suspended) count(at->second, -1);
      if (job != nullptr && job->flags.requeued) {  // it comes back
        waiting_.emplace(end.job, Waiting{at->second.job, at->second.first_start});
        ++out_.restarts;
      } else {
        finished_.emplace(end.job, at->second);
      }
      live_.erase(at);
    }
    if (job != nullptr && job->running && job->running->open_steps.contains(wire::kBatchStep)) {
      end_script(end.job, kEndedBySignal);
    }
    wire::JobGone message;
    message.set_job_id(end.job);
    message.set_attempt(end.attempt);
    for (const std::string& node : end.nodes) {
      message.set_node(node);
      state_.job_gone(message, now_);
    }
  }

  void over(const job::TellEnded& ended) {
    waiting_.erase(ended.job);
    if (ended.state == "COMPLETED") {
      ++out_.completed;
    } else if (ended.state == "TIMEOUT") {
      ++out_.timed_out;
    } else {
      ++out_.otherwise;
    }
    const auto at = finished_.find(ended.job);
    if (at == finished_.end()) return;  // it never started
    const TraceJob& job = trace_.jobs[at->second.job];
    measure_.ended(at->second.first_start - submit_time(job), now_ - at->second.start,
                   trace_.asks[job.ask].devices());
    finished_.erase(at);
  }

  void suspend(const job::Suspend& stop) {
    const auto at = live_.find(stop.job);
    if (at == live_.end() || at->second.attempt != stop.attempt) return;
    Live& live = at->second;
    if (live.suspended == !stop.resume) return;
    live.suspended = !stop.resume;
    count(live, stop.resume ? 1 : -1);
    if (!stop.resume) {
      live.left = live.end_at - now_;
      return;
    }
    live.end_at = now_ + live.left;
    ends_.push({live.end_at, stop.job, live.attempt, ++live.turn_of_end});
  }

  void amounts(const job::Job& job, Live& live) const {
    for (const cluster::NodeShare& share : job.allocation.nodes) {
      live.cpus += share.cpus;
      const cluster::Node& node = state_.cluster().nodes[share.node];
      for (const cluster::GresShare& taken : share.gres) {
        const cluster::Gres* gres = node.find_gres(taken.name);
        if (gres == nullptr || (taken.name != "gpu" && !gres->shares_gpu)) continue;
        for (std::size_t d = 0; d < taken.units.size(); ++d) {
          if (taken.units[d] == 0) continue;
          live.gpus +=
              static_cast<std::int64_t>(taken.units[d]) * kGpu /
              static_cast<std::int64_t>(std::max<std::uint64_t>(1, gres->devices[d].units));
        }
      }
    }
  }
  void count(const Live& live, int sign) {
    used_.cpus += sign * live.cpus;
    used_.gpus += sign * live.gpus;
  }

  void give_up_waiting() {
    out_.never_started = waiting_.size();
    for (const auto& [id, waiting] : waiting_) {
      const job::Job* job = state_.find(id);
      ++out_.never_reasons[job == nullptr ? "unknown" : job->reason];
    }
  }

  void tell() const {
    how_.tell({out_.completed + out_.timed_out + out_.otherwise + out_.refused, out_.jobs,
               now_ - kBegin});
  }

  const Setup& setup_;
  const Trace& trace_;
  const HowToRun& how_;
  job::State state_;
  schedule::Scheduler scheduler_;
  Fragmentation fragmentation_;
  Wording wording_;
  Measure measure_;
  Measure::Now used_;
  Outcome out_;
  Time now_ = kBegin;
  std::size_t arrived_ = 0;
  std::vector<wire::SubmitJob> asks_;  // by position in Trace::asks
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::unordered_map<JobId, Waiting> waiting_;
  std::unordered_map<JobId, Live> live_;
  std::unordered_map<JobId, Live> finished_;  // ended, the owner is not told yet
};

}  // namespace

Outcome run(const Setup& setup, const Trace& trace, const HowToRun& how) {
  return World(setup, trace, how).run();
}

}  // namespace berth::simulate
