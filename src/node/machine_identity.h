// What makes this machine a node of the cluster: a private key, the certificate that the controller
// made for it, and the cluster's authority. In the file `identity.pem` of the spool.
#pragma once

#include <string>

#include "base/result.h"
#include "tls/authority.h"
#include "tls/context.h"

namespace berth::node {

struct MachineIdentity {
  tls::Identity own;
  std::string authority;

  /// An error that says how to get one when there is none.
  static Result<MachineIdentity> load(const std::string& spool);
  [[nodiscard]] Result<void> save(const std::string& spool) const;
};

/// The key with which this machine asks to join by this token. It is kept until it has joined: when
/// the answer is lost, the same question gets it again.
Result<tls::NewKey> joining_key(const std::string& spool, const std::string& token_id);
void forget_joining_key(const std::string& spool);

/// What the agent knows of its controller: the highest epoch, and how far the store was.
std::string epoch_file(const std::string& spool);
std::string store_memory_file(const std::string& spool);
/// Of another cluster it is void.
void forget_controller(const std::string& spool);

}  // namespace berth::node
