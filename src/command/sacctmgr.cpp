// sacctmgr: shows the one built-in account to those who ask for accounts.
#include <fmt/format.h>

#include "command/builtin_account.h"
#include "command/controller_client.h"
#include "command/messages.h"
#include "command/print.h"
#include "command/sacctmgr_view.h"
#include "command/version.h"
#include "wire/info.pb.h"

namespace berth::command {

int run_sacctmgr(std::span<const std::string> words, const request::Environment& environment) {
  const Result<SacctmgrOptions> options = parse_sacctmgr(words);
  if (!options) return print_error(options.error(), "sacctmgr");
  if (options->version) return print_text(fmt::format("{}\n", kSlurmVersion));
  if (options->help) return print_text(sacctmgr_help());
  if (options->usage) return print_text(sacctmgr_usage());
  const Result<wire::ConfigReply> reply =
      ask_controller<wire::ConfigReply>(environment, "sacctmgr", wire::ShowConfig{});
  if (!reply) return print_error(reply.error(), "sacctmgr");
  AccountFacts facts;
  facts.control_host = reply->controller_host();
  for (const wire::Variable& setting : reply->settings()) {
    if (setting.name() == "ClusterName") facts.cluster = setting.value();
    if (setting.name() == "SlurmctldPort") facts.control_port = setting.value();
  }
  facts.members = account_members(own_user_name(environment));
  const Result<std::string> text = sacctmgr_text(*options, facts);
  if (!text) return print_error(text.error(), "sacctmgr");
  return print_table(*text);
}

}  // namespace berth::command
