// sinfo: nodes and partitions of the controller, as text or JSON.
#include <fmt/format.h>
#include <unistd.h>

#include "command/clusters.h"
#include "command/controller_client.h"
#include "command/messages.h"
#include "command/print.h"
#include "command/scontrol_reservation.h"
#include "command/sinfo_json.h"
#include "command/sinfo_options.h"
#include "command/sinfo_view.h"
#include "command/version.h"

namespace berth::command {
namespace {

int print_nodes_error(Error error) {
  const bool lost = error.code == Code::no_connection || error.code == Code::timed_out;
  if (lost && !error.messages.empty()) {
    error.messages.front() = {Severity::bare,
                              "slurm_load_partitions: " + error.messages.front().text};
  }
  return print_error(error, "sinfo");
}

int show_reservations(const SinfoOptions& options, std::span<const std::string> words,
                      const request::Environment& environment) {
  const auto reply =
      ask_controller<wire::ReservationsReply>(environment, "sinfo", wire::ListReservations{});
  if (!reply) return print_nodes_error(reply.error());
  if (options.json) {
    return print_text(
        scontrol::reservations_json(*reply, "", json_meta("sinfo", words, environment, "")));
  }
  return print_text(reservation_table(*reply, options.header, time_format(environment)));
}

int show_once(const SinfoOptions& options, std::span<const std::string> words,
              const request::Environment& environment) {
  if (options.reservations) return show_reservations(options, words, environment);
  wire::ListNodes ask;
  ask.set_with_partitions(true);
  const Result<wire::NodesReply> reply =
      ask_controller<wire::NodesReply>(environment, "sinfo", ask);
  if (!reply) return print_nodes_error(reply.error());
  if (Result<void> named = check_clusters(options.clusters, reply->cluster_name()); !named) {
    return print_error(named.error(), "sinfo");
  }
  Shown shown;
  shown.now = reply->now();
  shown.times = time_format(environment);
  shown.cluster = reply->cluster_name();
  if (options.json) {
    return print_text(
        sinfo_json(options, *reply, json_meta("sinfo", words, environment, shown.cluster)));
  }
  const Result<std::string> text = sinfo_text(options, *reply, shown);
  if (!text) return print_error(text.error(), "sinfo");
  const int printed = print_table(*text);
  // Beside the lines of nodes, so that programs which read these are not disturbed.
  if (options.reasons) {
    for (const std::string& line : reasons_beside(options, *reply)) print_hint(line);
  }
  return printed;
}

}  // namespace

int run_sinfo(std::span<const std::string> words, const request::Environment& environment) {
  const Result<SinfoOptions> options = parse_sinfo(words, environment);
  if (!options) return print_error(options.error(), "sinfo");
  if (options->version) return print_text(fmt::format("{}\n", kSlurmVersion));
  if (options->help) return print_text(sinfo_help());
  if (options->usage) return print_text(sinfo_usage());
  for (;;) {
    const int status = show_once(*options, words, environment);
    if (options->iterate_seconds == 0) return status;
    print_text("\n");
    sleep(options->iterate_seconds);
  }
}

}  // namespace berth::command
