// squeue: the jobs and steps of the controller, as text or JSON.
#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "command/clusters.h"
#include "command/controller_client.h"
#include "command/messages.h"
#include "command/print.h"
#include "command/show_states.h"
#include "command/squeue_json.h"
#include "command/squeue_options.h"
#include "command/squeue_view.h"
#include "command/version.h"
#include "text/number.h"

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

int print_load_error(Error error) {
  // Slurm names the call that failed instead of the program.
  const bool lost = error.code == Code::no_connection || error.code == Code::timed_out;
  if (lost && !error.messages.empty()) {
    error.messages.front() = {Severity::bare,
                              "slurm_load_jobs error: " + error.messages.front().text};
  }
  return print_error(error, "squeue");
}

int show_once(const SqueueOptions& options, std::span<const std::string> words,
              const request::Environment& environment) {
  Result<net::Client> client = reach_controller(environment, "squeue");
  if (!client) return print_load_error(std::move(client.error()));
  const Result<wire::JobsReply> reply =
      ask_client<wire::JobsReply>(*client, squeue_request(options));
  if (!reply) return print_load_error(reply.error());
  if (Result<void> named = check_clusters(options.clusters, reply->cluster_name()); !named) {
    return print_error(named.error(), "squeue");
  }
  if (options.jobs.size() == 1 && reply->jobs().empty() && reply->steps().empty()) {
    return print_error(
        {.code = Code::bad_value,
         .messages = {{Severity::bare, "slurm_load_jobs error: Invalid job id specified"}},
         .hint = {}},
        "squeue");
  }
  const Shown shown = shown_for(options, environment, *reply);
  const Viewer viewer{geteuid()};
  if (options.json) {
    const Result<wire::NodesReply> nodes = ask_client<wire::NodesReply>(*client, wire::ListNodes{});
    if (!nodes) return print_load_error(nodes.error());
    return print_text(squeue_json(options, *reply, *nodes, shown, viewer,
                                  json_meta("squeue", words, environment, shown.cluster)));
  }
  const Result<std::string> text = squeue_text(options, *reply, shown, viewer);
  if (!text) return print_error(text.error(), "squeue");
  return print_text(*text);
}

}  // namespace

int run_squeue(std::span<const std::string> words, const request::Environment& environment) {
  const Result<SqueueOptions> options = parse_squeue(words, environment);
  if (!options) return print_error(options.error(), "squeue");
  if (options->version) return print_text(fmt::format("{}\n", kSlurmVersion));
  if (options->help) return print_text(squeue_help());
  if (options->usage) return print_text(squeue_usage());
  if (options->helpstate) return print_text(states_help());
  for (;;) {
    const int status = show_once(*options, words, environment);
    if (options->iterate_seconds == 0) return status;
    print_text("\n");
    sleep(options->iterate_seconds);
  }
}

}  // namespace berth::command
