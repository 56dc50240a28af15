// sshare: the shares of the one built-in account, all alike.
#include <fmt/format.h>

#include "command/builtin_account.h"
#include "command/clusters.h"
#include "command/controller_client.h"
#include "command/messages.h"
#include "command/print.h"
#include "command/sshare_view.h"
#include "command/version.h"
#include "wire/info.pb.h"

namespace berth::command {

int run_sshare(std::span<const std::string> words, const request::Environment& environment) {
  const Result<SshareOptions> options = parse_sshare(words);
  if (!options) return print_error(options.error(), "sshare");
  if (options->version) return print_text(fmt::format("{}\n", kSlurmVersion));
  if (options->help) return print_text(sshare_help());
  if (options->usage) {
    return print_text("Usage: sshare [-aehlmnPpUV] [-A accounts] [-u users] [-o format]\n");
  }
  if (options->help_format) return print_text(sshare_field_names());
  const Result<wire::ConfigReply> reply =
      ask_controller<wire::ConfigReply>(environment, "sshare", wire::ShowConfig{});
  if (!reply) return print_error(reply.error(), "sshare");
  std::string cluster;
  for (const wire::Variable& setting : reply->settings()) {
    if (setting.name() == "ClusterName") cluster = setting.value();
  }
  if (Result<void> named = check_clusters(options->clusters, cluster); !named) {
    return print_error(named.error(), "sshare");
  }
  const std::string self = own_user_name(environment);
  const Result<std::string> text = sshare_text(*options, cluster, account_members(self), self);
  if (!text) return print_error(text.error(), "sshare");
  return print_table(*text);
}

}  // namespace berth::command
