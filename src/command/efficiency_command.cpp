// berth efficiency: what jobs made of their CPUs, memory and GPUs.
#include <fmt/format.h>

#include <map>

#include "command/commands.h"
#include "command/controller_client.h"
#include "command/efficiency_text.h"
#include "command/history_client.h"
#include "command/messages.h"
#include "command/print.h"
#include "text/words.h"
#include "wire/job_names.h"

namespace berth::command {
namespace {

constexpr std::string_view kEfficiencyUsage =
    R"(usage: berth efficiency [--json] JOB[,JOB...]

Shows what jobs made of what they had: CPU time of their steps, memory of the largest task, and for each
GPU how busy it was, how much of its memory was in use, and its energy. GPUs are looked at once a second;
their nodes tell the controller every JobAcctGatherFrequency (slurm.conf, 30 seconds) and at the end.

  JOB      12, 12_3 (an element of an array), 12+1 (a component)
  --json   for programs
)";

struct EfficiencyOptions {
  std::vector<wire::JobName> jobs;
  bool json = false;
  bool help = false;
};

Result<EfficiencyOptions> read_efficiency_options(std::span<const std::string> words) {
  EfficiencyOptions out;
  for (const std::string& word : words) {
    if (word == "-h" || word == "--help") {
      out.help = true;
    } else if (word == "--json") {
      out.json = true;
    } else if (word.starts_with("-")) {
      return fail(Code::option_syntax, fmt::format("{} is not understood", word),
                  "try berth efficiency --help");
    } else {
      for (const std::string_view one : text::split(word, ',')) {
        auto name = wire::parse_job_name(text::trim(one));
        if (!name) {
          return fail(Code::bad_value, fmt::format("\"{}\" is no job", one),
                      "a job is named by its number: 12, 12_3, 12+1");
        }
        out.jobs.push_back(std::move(*name));
      }
    }
  }
  if (out.jobs.empty() && !out.help) {
    return fail(Code::option_syntax, "which job?",
                "berth efficiency JOB; squeue and sacct list them");
  }
  return out;
}

/// What the controller knows now: figures of running jobs are newer there than in its store.
Result<std::map<std::uint32_t, wire::JobInfo>> live_jobs(const EfficiencyOptions& options,
                                                         const request::Environment& environment) {
  wire::ListJobs ask;
  for (const wire::JobName& name : options.jobs) *ask.add_ids() = name;
  ask.set_with_ended(true);
  ask.set_with_hidden(true);
  auto reply = ask_controller<wire::JobsReply>(environment, "berth efficiency", ask);
  std::map<std::uint32_t, wire::JobInfo> out;
  if (!reply) {
    // One that it has forgotten is in the store.
    if (reply.error().code == Code::no_connection) return pass(std::move(reply.error()));
    return out;
  }
  for (const wire::JobInfo& job : reply->jobs()) out.emplace(job.id(), job);
  return out;
}

}  // namespace

int run_efficiency(std::span<const std::string> words, const request::Environment& environment) {
  const auto options = read_efficiency_options(words);
  if (!options) return print_error(options.error(), "berth efficiency");
  if (options->help) {
    fmt::print("{}", kEfficiencyUsage);
    return 0;
  }
  const auto live = live_jobs(*options, environment);
  if (!live) return print_error(live.error(), "berth efficiency");
  wire::ListHistory ask;
  for (const wire::JobName& name : options->jobs) *ask.add_ids() = name;
  ask.set_all_users(true);
  ask.set_with_steps(true);
  std::vector<Efficiency> jobs;
  const auto done = each_history(
      ask, environment, "berth efficiency", [&](const wire::HistoryReply& reply) -> Result<void> {
        for (const wire::HistoryJob& job : reply.jobs()) {
          const auto known = live->find(job.job().id());
          jobs.push_back(
              efficiency_of(job, known == live->end() ? nullptr : &known->second, reply.now()));
        }
        return {};
      });
  if (!done) return print_error(done.error(), "berth efficiency");
  if (jobs.empty()) {
    const auto error =
        fail(Code::bad_value, "there is no such job", "sacct -a lists jobs that ran");
    return print_error(error.error(), "berth efficiency");
  }
  if (options->json) {
    JsonText json;
    json.begin_object();
    json.begin_array("jobs");
    for (const Efficiency& job : jobs) append_efficiency_json(json, job);
    json.end_array();
    json.end_object();
    fmt::print("{}", std::move(json).done());
    return 0;
  }
  for (const Efficiency& job : jobs) print_text(efficiency_text(job));
  return 0;
}

}  // namespace berth::command
