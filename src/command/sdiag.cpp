// sdiag: what the controller counted.
#include <fmt/format.h>

#include "command/controller_client.h"
#include "command/messages.h"
#include "command/print.h"
#include "command/sdiag_view.h"
#include "command/version.h"

namespace berth::command {

int run_sdiag(std::span<const std::string> words, const request::Environment& environment) {
  const Result<SdiagOptions> options = parse_sdiag(words);
  if (!options) return print_error(options.error(), "sdiag");
  if (options->version) return print_text(fmt::format("{}\n", kSlurmVersion));
  if (options->help) return print_text(sdiag_help());
  if (options->usage) return print_text("Usage: sdiag [-aritTV] [--json]\n");
  wire::Diagnose ask;
  ask.set_reset(options->reset);
  const Result<wire::DiagnoseReply> reply =
      ask_controller<wire::DiagnoseReply>(environment, "sdiag", ask);
  if (!reply) return print_error(reply.error(), "sdiag");
  if (options->reset) return print_text("Reset scheduling statistics\n");
  if (options->json)
    return print_text(sdiag_json(*reply, json_meta("sdiag", words, environment, "")));
  return print_text(sdiag_text(*options, *reply));
}

}  // namespace berth::command
