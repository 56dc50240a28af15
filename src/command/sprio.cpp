// sprio: what the priorities of waiting jobs are made of.
#include <fmt/format.h>

#include "command/clusters.h"
#include "command/controller_client.h"
#include "command/messages.h"
#include "command/print.h"
#include "command/sprio_view.h"
#include "command/version.h"

namespace berth::command {
namespace {

Error told(std::string text) {
  return {.code = Code::bad_value, .messages = {{Severity::bare, std::move(text)}}, .hint = {}};
}

}  // namespace

int run_sprio(std::span<const std::string> words, const request::Environment& environment) {
  const Result<SprioOptions> options = parse_sprio(words);
  if (!options) return print_error(options.error(), "sprio");
  if (options->version) return print_text(fmt::format("{}\n", kSlurmVersion));
  if (options->help) return print_text(sprio_help());
  if (options->usage) {
    return print_text(
        "Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]"
        " [--usage] [-hlnSVw]\n");
  }
  const Result<wire::PrioritiesReply> reply =
      ask_controller<wire::PrioritiesReply>(environment, "sprio", sprio_request(*options));
  if (!reply) return print_error(reply.error(), "sprio");
  if (Result<void> named = check_clusters(options->clusters, reply->cluster_name()); !named) {
    return print_error(named.error(), "sprio");
  }
  if (reply->type() != "priority/multifactor") {
    Error error = told("You are not running a supported priority plugin");
    error.messages.push_back({Severity::bare, fmt::format("({}).", reply->type())});
    error.messages.push_back({Severity::bare, "Only 'priority/multifactor' is supported."});
    return print_error(error, "sprio");
  }
  const bool named = !options->jobs.empty() || !options->users.empty();
  if (named && reply->jobs().empty() && !options->weights) {
    return print_error(told("Unable to find jobs matching user/id(s) specified"), "sprio");
  }
  const Result<std::string> text = sprio_text(*options, *reply);
  if (!text) return print_error(text.error(), "sprio");
  return print_table(*text);
}

}  // namespace berth::command
