// squeue: the jobs and steps of the controller, as text or JSON.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/bits.h"
#include "command/clusters.h"
#include "command/controller_client.h"
#include "command/messages.h"
#include "command/print.h"
#include "command/show_states.h"
#include "command/squeue_json.h"
#include "command/squeue_options.h"
#include "command/squeue_view.h"
#include "command/version.h"
#include "command/why_text.h"
#include "text/number.h"
#include "wire/job_list.h"
#include "wire/refusal.h"

namespace berth::command {
namespace {

Shown shown_for(const SqueueOptions& options, const request::Environment& environment,
                const wire::JobsReply& reply) {
  Shown shown;
  shown.now = reply.now();
  shown.times = time_format(environment);
  shown.convert = options.convert;
  shown.expand_patterns = options.expand_patterns;
  shown.cluster = reply.cluster_name();
  if (const auto at = environment.find("SLURM_BITSTR_LEN"); at != environment.end()) {
    if (const auto length = text::parse_number(at->second)) shown.array_text_most = *length;
  }
  return shown;
}

int print_jobs_error(Error error) {
  // Slurm names the call that failed instead of the program.
  const bool lost = error.code == Code::no_connection || error.code == Code::timed_out;
  if (lost && !error.messages.empty()) {
    error.messages.front() = {Severity::bare,
                              "slurm_load_jobs error: " + error.messages.front().text};
  }
  return print_error(error, "squeue");
}

/// Each page of the answer, its jobs still as bytes, which are gone with the next page.
Result<void> each_page(net::Client& client, const wire::ListJobs& ask,
                       const std::function<Result<void>(wire::JobList&)>& take) {
  constexpr std::chrono::seconds kPatience{100};
  Result<void> sent = client.send(ask, kPatience);
  if (!sent) return pass(lost_controller());
  for (;;) {
    const Result<wire::Frame> frame = client.receive(kPatience);
    if (!frame) return pass(lost_controller());
    if (frame->kind != wire::Kind::JobsReply) return net::Client::unexpected_frame(*frame);
    std::optional<wire::JobList> list = wire::split_jobs(frame->payload);
    if (!list) return net::Client::unexpected_frame(*frame);
    if (list->head.has_refusal()) return pass(wire::from_refusal(list->head.refusal()));
    if (Result<void> taken = take(*list); !taken) return taken;
    if (!list->head.more()) return {};
  }
}

/// An element that starts while the pages come has a record of its own in a later one.
class SeenElements {
 public:
  bool again(const wire::JobInfo& job) {
    if (!job.has_array_task_id()) return false;
    Bits& tasks = tasks_[job.array_job_id()];
    if (tasks.test(job.array_task_id())) return true;
    tasks.set(job.array_task_id());
    return false;
  }

 private:
  std::unordered_map<std::uint32_t, Bits> tasks_;
};

/// --why: what the controller says of each job that is asked for.
int show_reasons(net::Client& client, const SqueueOptions& options,
                 const std::vector<std::uint32_t>& ids, const Shown& shown) {
  std::string text;
  JsonText json;
  json.begin_array();
  for (const std::uint32_t id : ids) {
    wire::ExplainJob ask;
    ask.mutable_job()->set_id(id);
    const Result<wire::JobExplained> why = ask_client<wire::JobExplained>(client, ask);
    if (!why) return print_jobs_error(why.error());
    if (options.json) {
      why_json(*why, json);
    } else {
      text += why_text(*why, shown);
    }
  }
  json.end_array();
  return print_text(options.json ? std::move(json).done() : text);
}

int show_once(const SqueueOptions& options, const SqueuePlan& plan,
              std::span<const std::string> words, const request::Environment& environment) {
  Result<net::Client> client = reach_controller(environment, "squeue");
  if (!client) return print_jobs_error(std::move(client.error()));
  wire::ListJobs ask = squeue_request(options);
  ask.set_brief(plan.brief);
  const Viewer viewer{geteuid()};
  wire::JobsReply reply;  // with jobs only where all are needed at once
  std::optional<Shown> shown;
  std::optional<JobListing> listing;
  SeenElements seen;
  std::vector<std::uint32_t> to_explain;
  bool any = false;
  bool pages = false;
  wire::JobInfo job;  // one for all: it keeps the memory of its texts
  const auto take = [&](wire::JobList& page) -> Result<void> {
    pages = pages || page.head.more();
    any = any || !page.jobs.empty() || !page.head.steps().empty();
    if (!shown) {
      if (Result<void> named = check_clusters(options.clusters, page.head.cluster_name()); !named) {
        return named;
      }
      shown = shown_for(options, environment, page.head);
      if (!options.json && !options.steps && !options.why) {
        listing.emplace(options, plan, *shown, viewer);
      }
    }
    reply.MergeFrom(page.head);
    for (const std::string_view bytes : page.jobs) {
      if (!job.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) continue;
      if (pages && seen.again(job)) continue;
      if (listing) {
        listing->add(job);
      } else if (options.why) {
        if (wanted(options, job, *shown, viewer)) to_explain.push_back(job.id());
      } else {
        *reply.add_jobs() = job;
      }
    }
    return {};
  };
  if (const Result<void> done = each_page(*client, ask, take); !done) {
    return print_jobs_error(done.error());
  }
  if (options.jobs.size() == 1 && !any) {
    return print_error(
        {.code = Code::bad_value,
         .messages = {{Severity::bare, "slurm_load_jobs error: Invalid job id specified"}},
         .hint = {}},
        "squeue");
  }
  if (options.why) return show_reasons(*client, options, to_explain, *shown);
  if (listing) return print_table(listing->text());
  if (options.json) {
    const Result<wire::NodesReply> nodes = ask_client<wire::NodesReply>(*client, wire::ListNodes{});
    if (!nodes) return print_jobs_error(nodes.error());
    return print_text(squeue_json(options, reply, *nodes, *shown, viewer,
                                  json_meta("squeue", words, environment, shown->cluster)));
  }
  const Result<std::string> text = squeue_text(options, reply, *shown, viewer);
  if (!text) return print_error(text.error(), "squeue");
  return print_table(*text);
}

}  // namespace

int run_squeue(std::span<const std::string> words, const request::Environment& environment) {
  const Result<SqueueOptions> options = parse_squeue(words, environment);
  if (!options) return print_error(options.error(), "squeue");
  if (options->version) return print_text(fmt::format("{}\n", kSlurmVersion));
  if (options->help) return print_text(squeue_help());
  if (options->usage) return print_text(squeue_usage());
  if (options->helpstate) return print_text(states_help());
  const Result<SqueuePlan> plan = squeue_plan(*options);
  if (!plan) return print_error(plan.error(), "squeue");
  for (;;) {
    const int status = show_once(*options, *plan, words, environment);
    if (options->iterate_seconds == 0) return status;
    print_text("\n");
    sleep(options->iterate_seconds);
  }
}

}  // namespace berth::command
