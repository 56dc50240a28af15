#include "controller/trust.h"

#include <fmt/format.h>

#include "controller/identities.h"

namespace berth::controller {

Result<Caller> Trust::admit(std::uint32_t uid, std::uint32_t gid, Proof proof) const {
  const bool administrator = administrates(uid);
  switch (proof) {
    case Proof::socket:
    case Proof::token:
      return Caller(uid, gid, administrator, proof);
    case Proof::munge:
      if (administrator && !munge_admins) {
        return fail(Code::no_credential,
                    fmt::format("munge does not prove an administrator (uid {})", uid),
                    "every machine with the key of munge could be one: work on the controller's "
                    "host, or take a token from there (scontrol token, SLURM_JWT); "
                    "SlurmctldParameters=munge_admins allows it");
      }
      return Caller(uid, gid, administrator, proof);
    case Proof::vouched:
      // Where the controller is an ordinary user's all jobs are his, and need him; he is no
      // administrator by the word of a node either.
      if (administrator && uid != owner) {
        return fail(Code::access_denied,
                    fmt::format("no node says that a caller is an administrator (uid {})", uid),
                    "work on the controller's host, or take a token from there (scontrol token, "
                    "SLURM_JWT)");
      }
      return Caller(uid, gid, false, proof);
    case Proof::none:
      break;
  }
  return fail(Code::no_credential, "nobody says who calls");
}

Result<void> Trust::munge_from(std::string_view address) const {
  if (munge_from_nodes) return {};
  const auto node = nodes_at.find(address);
  if (node == nodes_at.end()) return {};
  return fail(
      Code::no_credential,
      fmt::format("munge is not believed from {}, the machine of node {}", address, node->second),
      "its root could be anybody: commands work there for users who have a job on it, by "
      "its agent, and with a token (scontrol token, SLURM_JWT); "
      "SlurmctldParameters=munge_from_nodes allows munge");
}

std::uint64_t Trust::token_generation(std::uint32_t uid) const {
  const auto found = token_generations.find(uid);
  return found == token_generations.end() ? 0 : found->second;
}

Result<Caller> Trust::admit_token(const auth::UserClaim& claim) const {
  if (claim.generation != token_generation(claim.uid)) {
    return fail(Code::no_credential, "the token was revoked",
                "`scontrol token` makes a new one, where the controller knows who you are");
  }
  return admit(claim.uid, claim.gid, Proof::token);
}

Result<job::Time> token_lifespan(const Caller& caller, const TokenAsk& ask) {
  if (caller.proof != Proof::socket && caller.proof != Proof::munge) {
    return fail(Code::access_denied, "Access/permission denied",
                "a token is made on the controller's host, or where munge says who calls; not by "
                "another token, and not by way of a node's agent");
  }
  if ((ask.to_join || ask.for_another) && !caller.privileged) {
    return fail(Code::access_denied, "Access/permission denied",
                "only root and SlurmUser make tokens for nodes and for other users");
  }
  const job::Time usual = ask.to_join ? kJoinTokenSeconds : kUserTokenSeconds;
  const job::Time most = caller.privileged ? kLongestToken : kUserTokenSeconds;
  const job::Time lifespan = ask.lifespan == 0 ? usual : ask.lifespan;
  if (lifespan < 0 || lifespan > most) {
    return fail(Code::bad_value, fmt::format("a token cannot live for {} seconds", lifespan),
                caller.privileged ? fmt::format("at most {}", most)
                                  : fmt::format("at most {}; root makes longer ones", most));
  }
  return lifespan;
}

}  // namespace berth::controller
