#include "controller/info_diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace berth::controller {
namespace {

/// Names as sdiag prints them, with the blanks before the value; a heading has no value, an empty
/// name is an empty line.
class Report {
 public:
  explicit Report(wire::DiagnoseReply& reply) : reply_(reply) {}
  void line(std::string name, std::string value) {
    wire::Variable& figure = *reply_.add_figures();
    figure.set_name(std::move(name));
    figure.set_value(std::move(value));
  }
  void count(std::string name, std::uint64_t value) {
    line(std::move(name), std::to_string(value));
  }
  void heading(std::string name) { line(std::move(name), ""); }
  void gap() { line("", ""); }

 private:
  wire::DiagnoseReply& reply_;
};

std::uint64_t mean(std::uint64_t sum, std::uint64_t count) {
  return count == 0 ? 0 : sum / count;
}

void put_jobs(Report& report, const job::State& state, const Figures& figures, job::Time now) {
  report.count("Jobs submitted: ", figures.jobs_submitted);
  report.count("Jobs started:   ", figures.jobs_started);
  report.count("Jobs completed: ", figures.jobs_completed);
  report.count("Jobs canceled:  ", figures.jobs_cancelled);
  report.count("Jobs failed:    ", figures.jobs_failed);
  report.gap();
  std::uint64_t running = 0;
  for (const auto& [id, job] : state.jobs()) {
    if (job.base == job::Base::running) ++running;
  }
  report.line("Job states ts:  ", fmt::format("@{}", now));
  report.count("Jobs pending:   ", state.pending_count());
  report.count("Jobs running:   ", running);
  report.gap();
}

void put_main(Report& report, const Figures& figures, job::Time now) {
  report.heading("Main schedule statistics (microseconds):");
  report.count("\tLast cycle:   ", figures.cycle_last_microseconds);
  report.count("\tMax cycle:    ", figures.cycle_most_microseconds);
  report.count("\tTotal cycles: ", figures.cycles);
  report.count("\tMean cycle:   ", mean(figures.cycle_microseconds, figures.cycles));
  report.count("\tMean depth cycle:  ", mean(figures.cycle_examined, figures.cycles));
  const auto minutes =
      static_cast<std::uint64_t>(std::max<job::Time>(60, now - figures.since)) / 60;
  report.count("\tCycles per minute: ", figures.cycles / minutes);
  report.count("\tLast queue length: ", figures.cycle_last_queue);
  report.gap();
  report.heading("Main scheduler exit:");
  report.count("\tEnd of job queue:", figures.cycles);
  report.count("\tHit default_queue_depth: ", 0);
  report.count("\tHit sched_max_job_start: ", 0);
  report.count("\tBlocked on licenses: ", 0);
  report.count("\tHit max_rpc_cnt: ", 0);
  report.count("\tTimeout (max_sched_time): ", figures.cycle_pieces);
  report.gap();
}

void put_backfill(Report& report, const job::State& state, const Figures& figures) {
  report.heading("Backfilling stats");
  const job::Backfilled backfilled = state.backfilled();
  report.count("\tTotal backfilled jobs (since last slurm start): ", backfilled.jobs);
  report.count("\tTotal backfilled jobs (since last stats cycle start): ",
               backfilled.jobs - figures.backfilled_before.jobs);
  report.count("\tTotal backfilled heterogeneous job components: ", backfilled.components);
  report.count("\tTotal cycles: ", figures.passes);
  report.line("\tLast cycle when: ",
              figures.pass_last_at == 0 ? "N/A" : fmt::format("@{}", figures.pass_last_at));
  report.count("\tLast cycle: ", figures.pass_last_microseconds);
  report.count("\tMax cycle:  ", figures.pass_most_microseconds);
  report.count("\tMean cycle: ", mean(figures.pass_microseconds, figures.passes));
  report.count("\tLast depth cycle: ", figures.pass_last_examined);
  report.count("\tLast depth cycle (try sched): ", figures.pass_last_examined);
  report.count("\tDepth Mean: ", mean(figures.pass_examined, figures.passes));
  report.count("\tDepth Mean (try depth): ", mean(figures.pass_examined, figures.passes));
  report.count("\tLast queue length: ", figures.pass_last_queue);
  report.count("\tQueue length mean: ", mean(figures.pass_queue, figures.passes));
  report.count("\tLast table size: ", state.cluster().nodes.size());
  report.count("\tMean table size: ", state.cluster().nodes.size());
  report.gap();
  report.heading("Backfill exit");
  report.count("\tEnd of job queue:", figures.passes);
  report.count("\tHit bf_max_job_start: ", 0);
  report.count("\tHit bf_max_job_test: ", 0);
  report.count("\tSystem state changed: ", 0);
  report.count("\tHit table size limit (bf_node_space_size): ", 0);
  report.count("\tTimeout (bf_max_time): ", 0);
  report.gap();
}

std::uint64_t clock_latency() {
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) (void)std::chrono::system_clock::now();
  const auto took = std::chrono::steady_clock::now() - before;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(took).count());
}

void put_requests(Report& report, const RequestCounts::Counts& counts, Users& users) {
  const auto more = [](const auto& a, const auto& b) { return a.second.count > b.second.count; };
  const auto figure = [](const RequestFigures& f) {
    return fmt::format("count:{:<6} ave_time:{:<6} total_time:{}", f.count,
                       mean(f.microseconds, f.count), f.microseconds);
  };
  report.heading("Remote Procedure Call statistics by message type");
  std::vector<std::pair<wire::Kind, RequestFigures>> kinds(counts.kinds.begin(),
                                                           counts.kinds.end());
  std::ranges::stable_sort(kinds, more);
  for (const auto& [kind, f] : kinds) {
    report.line(fmt::format("\t{:<40}({:5}) ", wire::name_of(kind), static_cast<int>(kind)),
                figure(f));
  }
  report.gap();
  report.heading("Remote Procedure Call statistics by user");
  std::vector<std::pair<std::uint32_t, RequestFigures>> callers(counts.users.begin(),
                                                                counts.users.end());
  std::ranges::stable_sort(callers, more);
  for (const auto& [uid, f] : callers) {
    report.line(fmt::format("\t{:<16}({:8}) ", users.name_of(uid), uid), figure(f));
  }
  report.gap();
  report.heading("Pending RPC statistics");
  report.heading("\tNo pending RPCs");
}

void put_store(Report& report, const StoreFigures& store) {
  report.gap();
  report.heading("Store statistics");
  report.count("\tCommits: ", store.commits);
  report.line("\tAll verified: ",
              store.verified_at == 0 ? "not yet" : fmt::format("@{}", store.verified_at));
  report.line("\tDamage: ", store.damage.empty() ? "none" : store.damage);
}

void put_clock(Report& report, const ClockFigures& clock) {
  report.gap();
  report.heading("Clock statistics");
  const auto seconds = [&](std::string name, std::int64_t value) {
    report.line(std::move(name), std::to_string(value));
  };
  seconds("\tWall clock ahead (seconds): ", clock.ahead.count());
  seconds("\tAdopted in (seconds): ", clock.adopts_in.count());
  report.count("\tAdopted: ", clock.adoptions);
  seconds("\tAdopted in all (seconds): ", clock.adopted);
}

}  // namespace

wire::DiagnoseReply diagnose_reply(const job::State& state, const Figures& figures,
                                   const RequestCounts::Counts& requests, Users& users,
                                   const StoreFigures& store, const ClockFigures& clock,
                                   job::Time now) {
  wire::DiagnoseReply reply;
  Report report(reply);
  report.line("now", std::to_string(now));
  report.line("since", std::to_string(figures.since));
  report.count("Server thread count:  ", 1);
  report.count("RPC queue enabled:    ", 0);
  report.count("Agent queue size:     ", figures.queued);
  report.count("Agent count:          ", figures.connected_agents);
  report.count("Agent thread count:   ", 0);
  report.count("DBD Agent queue size: ", 0);
  report.gap();
  put_jobs(report, state, figures, now);
  put_main(report, figures, now);
  put_backfill(report, state, figures);
  report.line("Latency for 1000 calls to gettimeofday(): ",
              fmt::format("{} microseconds", clock_latency()));
  report.gap();
  put_requests(report, requests, users);
  put_store(report, store);
  put_clock(report, clock);
  return reply;
}

}  // namespace berth::controller
