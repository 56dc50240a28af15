// scontrol ping, reconfigure, shutdown, setdebug, write, errnumstr, completing, listjobs,
// liststeps.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "command/scontrol_job_text.h"
#include "command/scontrol_session.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"
#include "wire/job_names.h"

namespace berth::command::scontrol {
namespace {

constexpr std::string_view kDownBanner =
    "*****************************************\n"
    "** RESTORE SLURMCTLD DAEMON TO SERVICE **\n"
    "*****************************************\n";

std::string this_host() {
  std::array<char, 256> buffer{};
  gethostname(buffer.data(), buffer.size() - 1);
  const std::string name = buffer.data();
  return name.substr(0, name.find('.'));
}

template <class Ask>
int tell(Session& session, const Ask& ask, std::string_view prefix) {
  const Result<wire::Done> done = session.ask<wire::Done>(ask);
  return done ? 0 : session.complain(prefix, done.error());
}

Result<void> write_file(const std::string& path, std::string_view content) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700));
  if (!fd) return fail(Code::io, fmt::format("{}: {}", path, std::strerror(errno)));
  while (!content.empty()) {
    const ssize_t written = ::write(fd.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(Code::io, fmt::format("{}: {}", path, std::strerror(errno)));
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

bool runs_on(const std::string& nodes, const std::string& node) {
  const Result<std::vector<std::string>> names = text::expand_hostlist(nodes);
  return names && std::find(names->begin(), names->end(), node) != names->end();
}

struct ErrorNumber {
  int number;
  std::string_view text;
};
constexpr std::array kErrorNumbers = {
    ErrorNumber{2000, "Invalid partition name specified"},
    ErrorNumber{2002, "Access/permission denied"},
    ErrorNumber{2005, "More processors requested than permitted"},
    ErrorNumber{2014, "Requested node configuration is not available"},
    ErrorNumber{2016, "Requested nodes are busy"},
    ErrorNumber{2017, "Invalid job id specified"},
    ErrorNumber{2021, "Job/step already completing or completed"},
    ErrorNumber{2025, "Task count specification invalid"},
};

}  // namespace

int ping(Session& session, Words) {
  const Result<wire::Pong> pong = session.ask<wire::Pong>(wire::Ping{});
  if (pong) {
    session.out += fmt::format("Slurmctld(primary) at {} is UP\n", pong->host());
    return 0;
  }
  session.out += fmt::format("Slurmctld(primary) at {} is DOWN\n{}", this_host(), kDownBanner);
  if (!pong.error().hint.empty()) print_hint(pong.error().hint);
  return 1;
}

int reconfigure(Session& session, Words) {
  return tell(session, wire::Reconfigure{}, "slurm_reconfigure error");
}

int shutdown(Session& session, Words words) {
  if (!words.empty()) {
    const std::string lower = text::to_lower(words.front());
    if (lower != "slurmctld" && lower != "controller") {
      return session.complain(fmt::format("invalid shutdown argument:{}", words.front()));
    }
  } else {
    // Slurm would stop the agents too. Jobs outlive a controller, and an agent stopped from afar
    // could not be started from there again.
    print_hint("only the controller is stopped; `berth down` or the service manager stops agents");
  }
  return tell(session, wire::Shutdown{}, "slurm_shutdown error");
}

int set_debug(Session& session, Words words) {
  wire::SetDebug ask;
  ask.set_level(words.front());
  return tell(session, ask, "slurm_set_debug_level error");
}

int write(Session& session, Words words) {
  const std::string what = text::to_lower(words.front());
  if (what == "config") {
    return session.refuse("write config is not supported by berth",
                          "`scontrol show config | grep SLURM_CONF` names the file to copy");
  }
  if (what.size() < 5 || !std::string_view("batch_script").starts_with(what)) {
    return session.complain(fmt::format("invalid write argument:{}", words.front()));
  }
  if (words.size() < 2) return session.complain("too few arguments for keyword:write");
  const auto name = wire::parse_job_name(words[1]);
  if (!name) return session.complain(fmt::format("Invalid job id specified: {}", words[1]));
  wire::GetScript ask;
  ask.set_job_id(name->id());
  const Result<wire::ScriptReply> reply = session.ask<wire::ScriptReply>(ask);
  if (!reply) return session.complain("job script retrieval failed", reply.error());
  const std::string path = words.size() > 2 ? words[2] : fmt::format("slurm-{}.sh", words[1]);
  if (path == "-") {
    session.out += reply->script();
    session.verbatim = isatty(STDOUT_FILENO) == 0;
    return 0;
  }
  if (const Result<void> done = write_file(path, reply->script()); !done) {
    return session.complain("failed to write batch script", done.error());
  }
  session.out += fmt::format("batch script for job {} written to {}\n", words[1], path);
  return 0;
}

int error_text(Session& session, Words words) {
  const auto number = text::parse_number(words.front(), 65535);
  if (!number) return session.complain(fmt::format("{} is not a number", words.front()));
  for (const ErrorNumber& known : kErrorNumbers) {
    if (known.number == static_cast<int>(*number)) {
      session.out += fmt::format("{}\n", known.text);
      return 0;
    }
  }
  session.out += fmt::format("{}\n", std::strerror(static_cast<int>(*number)));
  return 0;
}

int completing(Session& session, Words) {
  wire::ListJobs ask;
  ask.set_with_ended(true);
  const Result<wire::JobsReply> reply = session.ask<wire::JobsReply>(ask);
  if (!reply) return session.complain("slurm_load_jobs error", reply.error());
  for (const wire::JobInfo& job : reply->jobs()) {
    if (state_word(job) != "COMPLETING") continue;
    const std::int64_t waited = job.end_time() == 0 ? 0 : reply->now() - job.end_time();
    session.out +=
        fmt::format("JobId={} EndTime={} CompletingTime={} Nodes(COMPLETING)={}\n", job.id(),
                    time_text(job.end_time(), session.style), seconds_text(waited), job.nodes());
  }
  return 0;
}

int list_jobs(Session& session, Words words) {
  const std::string node = words.empty() ? this_host() : words.front();
  wire::ListJobs ask;
  ask.add_states("RUNNING");
  ask.add_states("SUSPENDED");
  const Result<wire::JobsReply> reply = session.ask<wire::JobsReply>(ask);
  if (!reply) return session.complain("slurm_load_jobs error", reply.error());
  std::string rows;
  for (const wire::JobInfo& job : reply->jobs()) {
    if (runs_on(job.nodes(), node)) rows += fmt::format("{}\n", job.id());
  }
  if (rows.empty()) return session.complain(fmt::format("No jobs found on node {}", node));
  session.out += "JOBID\n" + rows;
  return 0;
}

int list_steps(Session& session, Words words) {
  const std::string node = words.empty() ? this_host() : words.front();
  wire::ListJobs ask;
  ask.set_with_steps(true);
  const Result<wire::JobsReply> reply = session.ask<wire::JobsReply>(ask);
  if (!reply) return session.complain("slurm_get_job_steps error", reply.error());
  std::string rows;
  for (const wire::StepInfo& step : reply->steps()) {
    if (!runs_on(step.nodes(), node)) continue;
    const std::string name = step_name(step);
    rows += fmt::format("{:<8} {}\n", step.job_id(), name.substr(name.find('.') + 1));
  }
  if (rows.empty()) return session.complain(fmt::format("No steps found on node {}", node));
  session.out += fmt::format("{:<8} {}\n{}", "JOBID", "STEPID", rows);
  return 0;
}

}  // namespace berth::command::scontrol
