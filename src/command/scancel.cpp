// What scancel.h promises.
#include "command/scancel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "base/printable.h"
#include "command/controller_client.h"
#include "command/help_text.h"
#include "command/version.h"

namespace berth::command {
namespace {

constexpr std::string_view kDenied = "access_denied";
constexpr std::string_view kDone = "job_completed";
constexpr int kDeniedExit = 210;  // Slurm's errno 2002, as an exit code

std::string name_of(const wire::JobInfo& job) {
  if (job.has_array_job_id() && job.has_array_task_id()) {
    return fmt::format("{}_{}", job.array_job_id(), job.array_task_id());
  }
  return job.array_tasks().empty() ? std::to_string(job.id())
                                   : fmt::format("{}_{}", job.array_job_id(), job.array_tasks());
}

bool matches(const wire::JobInfo& job, const wire::CancelJobs& ask) {
  const auto among = [](const auto& list, const std::string& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  return among(ask.names(), job.name()) && among(ask.states(), job.state()) &&
         among(ask.qos(), job.qos()) && among(ask.accounts(), job.account()) &&
         among(ask.wckeys(), job.wckey()) && among(ask.reservations(), job.reservation());
}

/// -i: the jobs that the user says yes to, by their ids. The filters stay in the request.
Result<wire::CancelJobs> confirm(net::Client& client, const wire::CancelJobs& ask) {
  wire::ListJobs list;
  *list.mutable_ids() = ask.jobs();
  *list.mutable_user_names() = ask.users();
  *list.mutable_partitions() = ask.partitions();
  list.set_only_mine(ask.only_mine());
  Result<wire::JobsReply> reply = ask_client<wire::JobsReply>(client, list);
  if (!reply) return pass(std::move(reply.error()));
  wire::CancelJobs chosen = ask;
  chosen.clear_jobs();
  for (const wire::JobInfo& job : reply->jobs()) {
    if (!matches(job, ask)) continue;
    fmt::print("Cancel job_id={} name={} partition={} [y/n]? ", name_of(job), printable(job.name()),
               printable(job.partition()));
    std::fflush(stdout);
    std::string answer;
    if (!std::getline(std::cin, answer)) break;
    if (answer.starts_with('y') || answer.starts_with('Y')) chosen.add_jobs()->set_id(job.id());
  }
  return chosen;
}

void say_what_is_done(const CancelWords& words) {
  for (const std::string& name : words.names) {
    if (words.ask.has_signal()) {
      print_info(fmt::format("Signal {} to job {}", words.ask.signal(), name), "scancel");
    } else {
      print_info(fmt::format("Terminating job {}", name), "scancel");
    }
  }
}

}  // namespace

int cancel_exit_code(const wire::Results& results) {
  const bool denied = std::any_of(results.jobs().begin(), results.jobs().end(),
                                  [](const wire::JobResult& job) { return job.code() == kDenied; });
  return denied ? kDeniedExit : 0;
}

int run_scancel(std::span<const std::string> words, const request::Environment& environment) {
  Result<CancelWords> parsed = parse_scancel(words, environment);
  if (!parsed) return print_error(parsed.error(), "scancel");
  if (parsed->help) {
    fmt::print("{}", scancel_help());
    return 0;
  }
  if (parsed->version) {
    fmt::print("{}\n", kSlurmVersion);
    return 0;
  }
  Result<net::Client> client = reach_controller(environment, "scancel");
  if (!client) return print_error(client.error(), "scancel");
  if (parsed->interactive) {
    Result<wire::CancelJobs> chosen = confirm(*client, parsed->ask);
    if (!chosen) return print_error(chosen.error(), "scancel");
    if (chosen->jobs().empty()) return 0;
    parsed->ask = std::move(*chosen);
  }
  if (parsed->verbose > 0 && !parsed->quiet) say_what_is_done(*parsed);
  const Result<wire::Results> results = ask_client<wire::Results>(*client, parsed->ask);
  if (!results) return print_error(results.error(), "scancel");
  for (const wire::JobResult& job : results->jobs()) {
    // A job that has ended already is as the user wants it: said with -v only.
    if (job.code().empty() || parsed->quiet || (job.code() == kDone && parsed->verbose == 0)) {
      continue;
    }
    print_message(
        {Severity::error, fmt::format("Kill job error on job id {}: {}", job.name(), job.text())},
        "scancel");
    if (!job.hint().empty()) print_hint(job.hint());
  }
  return cancel_exit_code(*results);
}

}  // namespace berth::command
