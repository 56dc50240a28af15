// What sacctmgr shows: the built-in account, its members, the cluster, the QOS. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "command/sacctmgr_words.h"

namespace berth::command {

/// What there is to be shown.
struct AccountFacts {
  std::string cluster;
  std::string control_host;
  std::string control_port;
  std::vector<std::string> members;
};

/// The table; the error is a field, or a condition, that this entity does not have.
Result<std::string> sacctmgr_text(const SacctmgrOptions& options, const AccountFacts& facts);

}  // namespace berth::command
