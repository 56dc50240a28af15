// The cluster's authority: the controller makes certificates for itself and for nodes. Nothing has
// to be set up by an administrator, and nobody outside the cluster is asked.
//
//   the controller:  auto authority = tls::Authority::load_or_create(state, "c");
//                    tls::Identity mine = *authority->issue_controller("ctl");
//   a node:          auto own = tls::make_key();      own.wish to the controller, own.key stays
//   the controller:  auto issued = authority->issue_node(wish, {"n1"});
//
// What a certificate is good for is said by its extended key usage, which the TLS library checks:
// that of a controller serves, that of a node calls. A node's certificate cannot be used to pose as
// the controller.
#pragma once

#include <openssl/x509.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tls/context.h"
#include "tls/pem.h"

namespace berth::tls {

/// Of a node's certificate; its agent asks for a new one long before.
inline constexpr long kNodeCertificateDays = 365;

/// SHA-256 of a certificate, in hex.
std::string fingerprint_of(const X509* certificate);

/// What a certificate says of its bearer.
struct Bearer {
  std::string serial;              // in hex
  std::vector<std::string> nodes;  // for which it speaks; none = it is no node's
};
Result<Bearer> bearer_of(const std::string& certificate);

/// Until it ends; none when it cannot be read.
std::optional<long> days_left(const std::string& certificate);

/// A new private key, and the wish for a certificate of it.
struct NewKey {
  std::string key;
  std::string wish;
};
Result<NewKey> make_key();

class Authority {
 public:
  /// Reads key and certificate from `path`, or makes them there (0600, synced).
  static Result<Authority> load_or_create(const std::string& path, const std::string& cluster);

  /// PEM; to be given to everybody.
  [[nodiscard]] const std::string& certificate() const { return text_; }
  [[nodiscard]] std::string fingerprint() const { return fingerprint_of(certificate_.get()); }

  [[nodiscard]] Result<Identity> issue_controller(const std::string& host) const;
  struct Issued {
    std::string certificate;
    std::string serial;
  };
  /// A certificate for the key in `wish`, which came from outside.
  [[nodiscard]] Result<Issued> issue_node(std::string_view wish,
                                          const std::vector<std::string>& nodes) const;

 private:
  Authority(Key key, Certificate certificate);
  Key key_;
  Certificate certificate_;
  std::string text_;
};

}  // namespace berth::tls
