// Signs what the controller allows on nodes. Node keys follow from the cluster's key and are kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "auth/ticket.h"
#include "job/types.h"
#include "wire/submit.pb.h"

namespace berth::controller {

/// A launch or an attach has to reach the node within this.
inline constexpr job::Time kTicketSeconds = 300;

class Tickets {
 public:
  Tickets(std::string cluster_key, std::uint64_t epoch)
      : cluster_key_(std::move(cluster_key)),
        seal_key_(auth::hmac(cluster_key_, "berth step seals")),
        epoch_(epoch) {}

  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  const std::string& key_of(const std::string& node);
  /// The node has a new identity (identities.h): what was signed with its old key is void.
  void set_generation(const std::string& node, std::uint64_t generation);
  static std::string nonce();
  /// Puts epoch, expiry and nonce into the spec and signs it. `now`: ClusterClock::even_seconds(),
  /// by which nodes judge it.
  wire::Ticket sign(wire::StepSpec spec, job::Time now);
  wire::Ticket sign(wire::AccessSpec spec, job::Time now);
  /// Whether this controller, or one before it, made the spec. A node has the key of its tickets;
  /// it has not this one.
  [[nodiscard]] bool sealed(std::string_view spec) const;
  /// Seals and signs a ticket with a StepSpec that is complete.
  void sign_step(wire::Ticket& ticket, const std::string& node);

 private:
  /// The session of the bearer with the node.
  void add_session(wire::Ticket& ticket, std::uint32_t uid, std::uint32_t gid, job::Time expires);

  std::string cluster_key_;
  std::string seal_key_;
  std::uint64_t epoch_;
  std::map<std::string, std::string> keys_;
};

}  // namespace berth::controller
