// Which certificates are good for which nodes, and the tokens that machines may still join with.
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
  /// One secret for each node, good once until `expires`. `new_nodes`: they are not in the cluster
  /// yet.
  Result<std::vector<Secret>> invite(const std::vector<std::string>& nodes, bool new_nodes,
                                     job::Time expires, job::Time now);
  /// What the secret in the message was made for, or why it is no good. It is not spent.
  [[nodiscard]] Result<wire::PendingToken> invitation(const wire::JoinNode& message,
                                                      job::Time now) const;
  struct Joined {
    std::string certificate;
    std::string node;
  };
  /// The secret is spent, what the node had before is void.
  Result<Joined> join(const wire::JoinNode& message, job::Time now);
  /// A new certificate for the same nodes.
  Result<std::string> renew(const tls::Bearer& bearer, const std::string& wish);
  Result<void> revoke(const std::vector<std::string>& nodes);

  /// Of all certificates that are good.
  [[nodiscard]] std::unordered_set<std::string> serials() const;
  /// Why the bearer may not speak for the node now; nothing when he may.
  [[nodiscard]] Result<void> check(const tls::Bearer& bearer, const std::string& node) const;
  /// The bearer has come: the certificate before his is void. True when there was one.
  Result<bool> seen(const tls::Bearer& bearer);

 private:
  Identities(std::string path, tls::Authority authority)
      : path_(std::move(path)), authority_(std::move(authority)) {}
  [[nodiscard]] Result<void> save() const;

  std::string path_;
  tls::Authority authority_;
  std::map<std::string, wire::NodeIdentity, std::less<>> nodes_;
  std::map<std::string, wire::PendingToken, std::less<>> tokens_;
};

}  // namespace berth::controller
