// Whose word about who calls is believed, and for what. One rule for every way in: unix sockets,
// munge and tokens (front.h), and nodes that vouch (membership.cpp). The state thread makes a new
// value when something changes; the network thread asks it.
//
//   socket   everybody, administrators too
//   token    the same: this controller made it
//   munge    users. Whoever has the site's key is everybody to it, so that administrators need
//            `munge_admins`, and the machines of nodes `munge_from_nodes`
//   vouched  users, never administrators
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "auth/token.h"
#include "base/result.h"
#include "controller/caller.h"

namespace berth::controller {

struct Trust {
  /// SlurmUser and the user that runs the controller.
  std::set<std::uint32_t> administrators = {};
  /// Who runs the controller where that is not root: then all jobs are his.
  std::optional<std::uint32_t> owner = {};
  bool munge_admins = false;
  bool munge_from_nodes = false;
  /// Address of a machine → the node that it is, or was last.
  std::map<std::string, std::string, std::less<>> nodes_at = {};

  /// Of users whose tokens were made void: the generation that is good.
  std::map<std::uint32_t, std::uint64_t> token_generations = {};

  /// root and administrators.
  [[nodiscard]] bool administrates(std::uint32_t uid) const {
    return uid == 0 || administrators.contains(uid);
  }
  /// The caller as he was proven, or why that is not believed.
  [[nodiscard]] Result<Caller> admit(std::uint32_t uid, std::uint32_t gid, Proof proof) const;
  /// Whether munge is believed at all from a machine of this address.
  [[nodiscard]] Result<void> munge_from(std::string_view address) const;
  /// Who shows a token of this cluster that has not expired.
  [[nodiscard]] Result<Caller> admit_token(const auth::UserClaim& claim) const;
  [[nodiscard]] std::uint64_t token_generation(std::uint32_t uid) const;
};

/// Of a user's token, as Slurm has it; of users that are no administrators also the longest.
inline constexpr job::Time kUserTokenSeconds = 1800;
inline constexpr job::Time kLongestToken = job::Time{366} * 86400;

/// For whom a token is to be made.
struct TokenAsk {
  bool to_join = false;      // a node
  bool for_another = false;  // another user than the caller
  job::Time lifespan = 0;    // 0 = as is usual
};
/// So many seconds it lives, or why this caller gets none. A token comes of what was proven in
/// another way: it does not make the next one, and nor does the word of a node.
[[nodiscard]] Result<job::Time> token_lifespan(const Caller& caller, const TokenAsk& ask);

}  // namespace berth::controller
