// Signs what the controller allows on nodes. Node keys follow from the cluster's key and are kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "job/types.h"
#include "wire/submit.pb.h"

namespace berth::controller {

/// A launch or an attach has to reach the node within this.
inline constexpr job::Time kTicketSeconds = 300;

class Tickets {
 public:
  Tickets(std::string cluster_key, std::uint64_t epoch)
      : cluster_key_(std::move(cluster_key)), epoch_(epoch) {}

  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  const std::string& key_of(const std::string& node);
  static std::string nonce();
  /// Puts epoch, expiry and nonce into the spec and signs it.
  wire::Ticket sign(wire::StepSpec spec, job::Time now);
  wire::Ticket sign(wire::AccessSpec spec, job::Time now);
  /// Signs a ticket whose spec is complete.
  void sign_again(wire::Ticket& ticket, const std::string& node);

 private:
  std::string cluster_key_;
  std::uint64_t epoch_;
  std::map<std::string, std::string> keys_;
};

}  // namespace berth::controller
