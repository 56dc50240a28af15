// sacct: jobs and steps that ran, from the controller's store.
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "command/clusters.h"
#include "command/history_client.h"
#include "command/messages.h"
#include "command/print.h"
#include "command/sacct_json.h"
#include "command/sacct_options.h"
#include "command/sacct_view.h"
#include "command/version.h"

namespace berth::command {
namespace {

int show_json(const SacctOptions& options, std::span<const std::string> words,
              const wire::ListHistory& ask, const request::Environment& environment) {
  JsonText json;
  std::string cluster;
  json.begin_object();
  json.begin_array("jobs");
  const Result<void> done =
      each_history(ask, environment, "sacct", [&](const wire::HistoryReply& reply) {
        cluster = reply.cluster_name();
        for (const wire::HistoryJob& job : reply.jobs()) {
          if (wanted_history(options, job)) append_history_json(json, job, cluster, reply.now());
        }
        return Result<void>();
      });
  if (!done) return print_error(done.error(), "sacct");
  json.end_array();
  append_meta(json, json_meta("sacct", words, environment, cluster));
  json.end_object();
  return print_text(std::move(json).done());
}

int show_text(const SacctOptions& options, const wire::ListHistory& ask,
              const request::Environment& environment) {
  const Result<std::vector<SacctColumn>> columns = parse_sacct_format(options.fields);
  if (!columns) return print_error(columns.error(), "sacct");
  const bool texts = options.scripts || options.environments;
  std::string out = texts ? std::string() : sacct_header(options, *columns);
  const Result<void> done =
      each_history(ask, environment, "sacct", [&](const wire::HistoryReply& reply) -> Result<void> {
        if (Result<void> named = check_clusters(options.clusters, reply.cluster_name()); !named) {
          return named;
        }
        if (texts) {
          append_scripts(options, reply, out);
          return {};
        }
        Shown shown;
        shown.now = reply.now();
        shown.times = time_format(environment);
        shown.cluster = reply.cluster_name();
        append_history(options, *columns, reply, sacct_shown(options, shown, ask.from()), out);
        return {};
      });
  if (!done) return print_error(done.error(), "sacct");
  return texts ? print_text(out) : print_table(out);
}

}  // namespace

int run_sacct(std::span<const std::string> words, const request::Environment& environment) {
  const std::int64_t now = std::time(nullptr);
  const Result<SacctOptions> options = parse_sacct(words, environment, now, geteuid());
  if (!options) return print_error(options.error(), "sacct");
  if (options->version) return print_text(fmt::format("{}\n", kSlurmVersion));
  if (options->help) return print_text(sacct_help());
  if (options->usage) return print_text(sacct_usage());
  if (options->help_format) return print_text(sacct_field_names());
  const wire::ListHistory ask = sacct_request(*options, now);
  return options->json ? show_json(*options, words, ask, environment)
                       : show_text(*options, ask, environment);
}

}  // namespace berth::command
