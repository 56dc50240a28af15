// berth down: ends a cluster that `berth up` started. Jobs are cancelled first, so that they end as
// they would by scancel; what is left then is killed.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "command/messages.h"
#include "command/up_cluster.h"
#include "command/up_home.h"
#include "command/up_options.h"
#include "command/up_processes.h"
#include "conf/config.h"
#include "request/request.h"

namespace berth::command {
namespace {

constexpr std::string_view kDownUsage = R"(usage: berth down [--state DIR]

Ends the cluster that berth up started: cancels its jobs, stops its daemons, removes its sockets.
What it has stored stays, and the next berth up goes on with it.

  --state DIR      where the cluster lives; default: the user's state directory
  -h, --help       this text
)";

/// How long jobs get: SIGTERM, KillWait, SIGKILL, epilog, and some time for a busy machine.
std::chrono::seconds job_patience(const ClusterHome& home) {
  const auto config = conf::read_config(conf::DirectorySource(home.state));
  const std::uint32_t wait = config ? config->slurm.daemon.kill_wait_seconds : 30;
  return std::chrono::seconds(wait + 30);
}

void end_jobs(const ClusterHome& home) {
  const auto counts = count_jobs(home);
  if (!counts || counts->all() == 0) return;
  if (const std::size_t cancelled = counts->running + counts->pending; cancelled > 0) {
    fmt::print("cancelling {} job{}\n", cancelled, cancelled == 1 ? "" : "s");
    std::fflush(stdout);
  }
  if (auto cancelled = cancel_all_jobs(home); !cancelled) {
    print_error(cancelled.error(), "berth down");
    return;
  }
  std::size_t left = 0;
  const bool done = wait_until(job_patience(home), [&] {
    const auto now = count_jobs(home);
    left = now ? now->all() : left;
    // Without an agent nobody can tell that a job's processes are gone: they are looked for below.
    return (now && now->all() == 0) || !home.controller() || !home.agent();
  });
  if (!done) print_hint(fmt::format("{} jobs have not ended; their processes are killed", left));
}

/// Tasks are known by the slurm.conf they were told.
std::vector<pid_t> left_of(const ClusterHome& home) {
  std::string told = copied_from(home);
  if (told.empty()) told = home.conf();
  return left_processes(home.spool(), told);
}

/// Supervisors and tasks that outlived their agent. A supervisor first gets the chance to end its
/// tasks itself.
bool end_left_processes(const ClusterHome& home) {
  const auto left = [&] { return left_of(home); };
  for (const pid_t pid : left()) ::kill(pid, SIGTERM);
  if (wait_until(std::chrono::seconds(3), [&] { return left().empty(); })) return true;
  return wait_until(std::chrono::seconds(10), [&] {
    for (const pid_t pid : left()) ::kill(pid, SIGKILL);
    return left().empty();
  });
}

int down(const std::string& state) {
  const ClusterHome home = find_home(state);
  if (!home.has_conf()) {
    const Error error = fail(Code::io, fmt::format("there is no cluster in {}", home.state),
                             "berth up starts one; --state DIR names one that lives elsewhere")
                            .error();
    return print_error(error, "berth down");
  }
  const auto lock = lock_home(home);
  if (!lock) return print_error(lock.error(), "berth down");
  const auto controller = home.controller();
  const auto agent = home.agent();
  const bool any = controller || agent || !left_of(home).empty();
  if (controller && answers(home)) end_jobs(home);
  bool ended = true;
  for (const auto& [pid, name] : {std::pair(agent, "berthd"), std::pair(controller, "berthctld")}) {
    if (!pid || end_process(*pid, std::chrono::seconds(20))) continue;
    ended = false;
    print_error(fail(Code::io, fmt::format("{} (process {}) does not end", name, *pid)).error(),
                "berth down");
  }
  if (!end_left_processes(home)) {
    ended = false;
    const auto pids = left_of(home);
    print_error(fail(Code::io, fmt::format("{} processes do not end, the first is {}", pids.size(),
                                           pids.empty() ? 0 : pids.front()))
                    .error(),
                "berth down");
  }
  if (!ended) return 1;
  remove_run_files(home);
  fmt::print("{} {}\n", any ? "down: the cluster in" : "no cluster runs in", home.state);
  return 0;
}

}  // namespace

int run_down(std::span<const std::string> words, const request::Environment& /*environment*/) {
  return run_on_state("berth down", kDownUsage, words, down);
}

}  // namespace berth::command
