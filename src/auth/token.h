// Tokens: texts that an administrator or a user carries from one machine to another.
//
//   join token:  a machine becomes a node with it, once (`scontrol token node=n1`, `berth join`)
//   user token:  proves who calls where there is no munge (`scontrol token`, SLURM_JWT)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/identity.pb.h"

namespace berth::auth {

/// Base64 for URLs, without padding.
std::string base64url(std::string_view bytes);
std::optional<std::string> from_base64url(std::string_view text);

std::string join_token_text(const wire::JoinToken& token);
Result<wire::JoinToken> read_join_token(std::string_view text);
/// What the controller keeps of a secret.
std::string secret_hash(std::string_view secret);
/// In constant time.
bool same_bytes(std::string_view a, std::string_view b);

/// For whom a user token speaks.
struct UserClaim {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t expires = 0;
  std::uint64_t generation = 0;  // of the user's tokens: others than the present ones are void
};
std::string user_token(const UserClaim& claim, std::string_view cluster_key);
/// `now`: Unix seconds.
Result<UserClaim> check_user_token(std::string_view text, std::string_view cluster_key,
                                   std::int64_t now);

}  // namespace berth::auth
