// sshare: options and columns. Nobody has a larger share than another, and no usage is counted.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "command/table_text.h"

namespace berth::command {

struct SshareOptions {
  bool help = false;
  bool usage = false;
  bool version = false;
  bool help_format = false;
  bool all_users = false;    // -a
  bool only_users = false;   // -U: no line of the account itself
  bool long_format = false;  // -l
  bool partitions = false;   // -m
  TableStyle style;
  std::optional<std::string> format;
  std::optional<std::string> clusters;
  std::optional<std::vector<std::string>> accounts;
  std::optional<std::vector<std::string>> users;
};

Result<SshareOptions> parse_sshare(std::span<const std::string> words);
/// `members` are all users of the account, `self` is the one who asks.
Result<std::string> sshare_text(const SshareOptions& options, std::string_view cluster,
                                std::span<const std::string> members, std::string_view self);
/// --helpformat.
std::string sshare_field_names();
std::string_view sshare_help();

}  // namespace berth::command
