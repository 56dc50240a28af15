// The command line of sacctmgr: of all it does in Slurm, looking at the one built-in account.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "command/table_text.h"

namespace berth::command {

/// What is listed.
enum class Entity { account, association, cluster, qos, user };

struct SacctmgrOptions {
  bool help = false;
  bool usage = false;
  bool version = false;
  TableStyle style;
  Entity entity = Entity::user;
  bool with_associations = false;  // -s, withassoc
  bool with_coordinators = false;  // withcoord
  bool without_limits = false;     // wolimits
  bool only_defaults = false;      // onlydefaults
  bool tree = false;
  std::optional<std::string> format;
  /// `user=a,b`: the field, and the values it may have. Names without a field are of the entity's
  /// own name.
  std::vector<std::pair<std::string, std::vector<std::string>>> where;
};

/// Everything but show and list is refused, with what there is instead.
Result<SacctmgrOptions> parse_sacctmgr(std::span<const std::string> words);

std::string_view sacctmgr_help();
std::string_view sacctmgr_usage();

}  // namespace berth::command
