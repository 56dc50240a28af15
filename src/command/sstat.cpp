// sstat: what steps use while they run.
#include <fmt/format.h>

#include "command/controller_client.h"
#include "command/messages.h"
#include "command/print.h"
#include "command/sstat_view.h"
#include "command/version.h"

namespace berth::command {

int run_sstat(std::span<const std::string> words, const request::Environment& environment) {
  const Result<SstatOptions> options = parse_sstat(words);
  if (!options) return print_error(options.error(), "sstat");
  if (options->version) return print_text(fmt::format("{}\n", kSlurmVersion));
  if (options->help) return print_text(sstat_help());
  if (options->usage) return print_text(sstat_usage());
  if (options->help_format) return print_text(field_names(sstat_fields()));
  const Result<std::vector<SstatColumn>> columns = parse_sstat_format(options->fields);
  if (!columns) return print_error(columns.error(), "sstat");
  const Result<wire::StepsMeasured> reply =
      ask_controller<wire::StepsMeasured>(environment, "sstat", sstat_request(*options, *columns));
  if (!reply) return print_error(reply.error(), "sstat");
  const SstatText text = sstat_text(*options, *columns, *reply);
  const int code = print_table(text.table);
  print_messages(text.messages, "sstat");
  for (const std::string& hint : text.hints) print_hint(hint);
  return code;
}

}  // namespace berth::command
