// scontrol hold, release, requeue, suspend and their like; notify; wait_job.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "command/scontrol_session.h"
#include "text/words.h"
#include "wire/job_names.h"

namespace berth::command::scontrol {
namespace {

constexpr std::string_view kBadId = "Invalid job id specified for job {}";

/// Words before the ids: "Incomplete", "State=SpecialExit". True when it was one of them.
bool add_modifier(wire::ActOnJobs& ask, const std::string& word) {
  if (!ask.action().starts_with("requeue")) return false;
  const std::string lower = text::to_lower(word);
  const bool known = lower == "incomplete" || lower == "state=specialexit" || lower == "state=se";
  if (known) ask.set_text(ask.text() + (ask.text().empty() ? "" : " ") + lower);
  return known;
}

/// The value of "jobid=12" or "job=12"; the word itself when it has no such key.
std::string_view without_key(std::string_view word) {
  const std::size_t eq = word.find('=');
  if (eq == std::string_view::npos) return word;
  const std::string key = text::to_lower(word.substr(0, eq));
  return key == "jobid" || key == "job" || key == "jobs" ? word.substr(eq + 1) : word;
}

int report(const Session& session, const Result<wire::Results>& results, std::string_view action) {
  if (!results) {
    return session.complain(fmt::format("scontrol {} error", action), results.error());
  }
  int code = 0;
  for (const wire::JobResult& job : results->jobs()) {
    if (job.code().empty()) continue;
    code = session.complain(fmt::format("{} for job {}", job.text(), job.name()));
    if (!job.hint().empty() && !session.quiet) print_hint(job.hint());
  }
  return code;
}

}  // namespace

int act(Session& session, std::string_view action, Words words) {
  wire::ActOnJobs ask;
  ask.set_action(std::string(action));
  for (const std::string& word : words) {
    if (add_modifier(ask, word)) continue;
    const std::size_t eq = word.find('=');
    const std::string key = text::to_lower(std::string_view(word).substr(0, eq));
    if (eq != std::string::npos && (key == "jobname" || key == "name")) {
      ask.set_job_name(word.substr(eq + 1));
      continue;
    }
    for (const std::string_view part : wire::split_job_list(without_key(word))) {
      const auto name = wire::parse_job_name(part);
      if (!name || name->has_step()) return session.complain(fmt::format(kBadId, part));
      *ask.add_jobs() = *name;
    }
  }
  if (ask.jobs().empty() && ask.job_name().empty()) {
    return session.complain(fmt::format("too few arguments for keyword:{}", action));
  }
  return report(session, session.ask<wire::Results>(ask), action);
}

int notify(Session& session, Words words) {
  wire::ActOnJobs ask;
  ask.set_action("notify");
  const auto name = wire::parse_job_name(without_key(words.front()));
  if (!name) return session.complain(fmt::format(kBadId, words.front()));
  *ask.add_jobs() = *name;
  std::string text;
  for (const std::string& word : words.subspan(1)) text += (text.empty() ? "" : " ") + word;
  ask.set_text(text);
  return report(session, session.ask<wire::Results>(ask), "notify");
}

int wait_job(Session& session, Words words) {
  const auto name = wire::parse_job_name(without_key(words.front()));
  if (!name) return session.complain(fmt::format(kBadId, words.front()));
  wire::ListJobs ask;
  *ask.add_ids() = *name;
  ask.set_with_ended(true);
  // Asked again until the nodes are ready, more and more slowly, as long as the job waits.
  std::chrono::milliseconds pause(100);
  for (;;) {
    const Result<wire::JobsReply> reply = session.ask<wire::JobsReply>(ask);
    if (!reply) return session.complain("slurm_job_node_ready error", reply.error());
    if (reply->jobs().empty()) {
      return session.complain("slurm_job_node_ready error: Invalid job id specified");
    }
    const std::string_view state = state_word(reply->jobs(0));
    if (state == "RUNNING" || state == "SUSPENDED") {
      session.out += fmt::format("Job {} is ready\n", reply->jobs(0).id());
      return 0;
    }
    if (state != "PENDING" && state != "CONFIGURING" && state != "REQUEUED") {
      return session.complain(fmt::format("job {} no longer running", reply->jobs(0).id()));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::milliseconds>(pause * 2, std::chrono::seconds(2));
  }
}

}  // namespace berth::command::scontrol
