// Which certificates are good for which nodes, the tokens that machines may still join with, and
// which tokens of users are void.
// Kept in the file `identities` of the state directory, written before anything is handed out. Of
// the state thread.
//
//   generation:  counts the identities of a node. Its key for tickets follows from it, so that a
//                machine whose identity was revoked or replaced can sign nothing any more.
//   serial:      of the one certificate that is good. While an agent changes to a new one, the one
//                before is good too.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "job/types.h"
#include "tls/authority.h"
#include "wire/identity.pb.h"

namespace berth::controller {

/// A token is meant to be used at once, by a person.
inline constexpr job::Time kJoinTokenSeconds = 3600;

/// Key and certificate of the cluster's authority, in StateSaveLocation.
inline constexpr const char* kAuthorityFile = "authority.pem";
std::string authority_path(const std::string& state);

/// What a machine is told whose certificate for the node is good no more.
Error void_certificate(const std::string& node);

class Identities {
 public:
  static Result<Identities> load(const std::string& state, const std::string& cluster);

  [[nodiscard]] const tls::Authority& authority() const { return authority_; }
  [[nodiscard]] std::uint64_t generation(const std::string& node) const;
  /// Of all nodes that ever had an identity.
  [[nodiscard]] std::map<std::string, std::uint64_t> generations() const;

  struct Secret {
    std::string id;
    std::string secret;
    std::string node;
  };
  // Now: ClusterClock::even_seconds().
  /// One secret for each node, good once until `expires`. `new_nodes`: they are not in the cluster
  /// yet.
  Result<std::vector<Secret>> invite(const std::vector<std::string>& nodes, bool new_nodes,
                                     job::Time expires, job::Time now);
  /// What the secret in the message was made for, or why it is no good. It is not spent.
  [[nodiscard]] Result<wire::PendingToken> invitation(const wire::JoinNode& message,
                                                      job::Time now) const;
  struct Offer {
    wire::PendingToken token;
    std::string certificate;
    std::string serial;
  };
  /// The certificate that the machine would get; nothing is spent. Who has used the token and sends
  /// the same wish again has not heard the answer, and gets the same certificate.
  [[nodiscard]] Result<Offer> offer(const wire::JoinNode& message, job::Time now) const;
  /// The token is spent, what the node had before is void; false when the offer was accepted
  /// before. `from`: the address of the machine.
  Result<bool> accept(const Offer& offer, const std::string& from, job::Time now);
  /// A new certificate for the same nodes.
  Result<std::string> renew(const tls::Bearer& bearer, const std::string& wish);
  Result<void> revoke(const std::vector<std::string>& nodes);
  /// All tokens that the user has are void.
  Result<void> revoke_tokens(std::uint32_t uid);
  /// Which ones are good, of users whose tokens were made void at some time.
  [[nodiscard]] const std::map<std::uint32_t, std::uint64_t>& token_generations() const {
    return users_;
  }

  /// Of all certificates that are good.
  [[nodiscard]] std::unordered_set<std::string> serials() const;
  /// Why the bearer may not speak for the node now; nothing when he may.
  [[nodiscard]] Result<void> check(const tls::Bearer& bearer, const std::string& node) const;
  /// The bearer has come: the certificate before his is void. True when there was one.
  Result<bool> seen(const tls::Bearer& bearer);

  /// His nodes are on a machine of this address ("" = not known); true when that is new. It is
  /// kept for good by keep_addresses(), so that many that come at once cost one write.
  bool is_at(const tls::Bearer& bearer, const std::string& from);
  Result<void> keep_addresses();
  /// Node → where its machine was seen last. Also of nodes whose identity was revoked.
  [[nodiscard]] std::map<std::string, std::string> addresses() const;

 private:
  Identities(std::string path, tls::Authority authority)
      : path_(std::move(path)), authority_(std::move(authority)) {}
  [[nodiscard]] Result<void> save() const;

  std::string path_;
  bool addresses_changed_ = false;
  tls::Authority authority_;
  std::map<std::string, wire::NodeIdentity, std::less<>> nodes_;
  std::map<std::string, wire::PendingToken, std::less<>> tokens_;
  std::map<std::uint32_t, std::uint64_t> users_;  // uid → generation of his tokens
};

}  // namespace berth::controller
