// The kinds of TLS sessions that berth has. Only TLS 1.3, one cipher, no tickets, no renegotiation.
//
//   Context::controller(identity, authority)  proves itself, and asks callers for a certificate
//   Context::node(identity, authority)        an agent: proves itself to the controller
//   Context::caller(authority)                a command: proves nothing here; munge or a token does
//   Context::joining(fingerprint)             a host that knows the authority's fingerprint only
//   Context::keyed_caller(), keyed_server(find)
//                                             a client and an agent, which both know a key that the
//                                             controller made
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tls/stream.h"

namespace berth::tls {

/// A private key and the certificate that the cluster's authority made for it, PEM.
struct Identity {
  std::string key;
  std::string certificate;
};

class Context {
 public:
  static Result<Context> controller(const Identity& identity, const std::string& authority);
  static Result<Context> node(const Identity& identity, const std::string& authority);
  static Result<Context> caller(const std::string& authority);
  /// Believes a controller whose authority has this fingerprint (authority.h).
  static Result<Context> joining(const std::string& fingerprint);

  /// A key of 32 bytes by its name; none = nobody has it.
  using FindKey = std::function<std::optional<std::string>(std::string_view name)>;
  static Result<Context> keyed_server(FindKey find);
  static Result<Context> keyed_caller();

  /// A new session. Of keyed_caller(): with this key.
  [[nodiscard]] Stream open() const;
  [[nodiscard]] Stream open(std::string key_name, std::string key) const;

 private:
  struct Rules {
    bool server = false;
    FindKey find;
    std::string fingerprint;
  };
  Context(std::shared_ptr<SSL_CTX> context, std::shared_ptr<Rules> rules)
      : context_(std::move(context)), rules_(std::move(rules)) {}
  static Result<Context> make(bool server);
  static int find_key(SSL* session, const unsigned char* name, std::size_t size,
                      SSL_SESSION** found);
  static int use_key(SSL* session, const EVP_MD* digest, const unsigned char** name,
                     std::size_t* size, SSL_SESSION** found);
  static int check_fingerprint(X509_STORE_CTX* chain, void* rules);
  Result<void> prove_with(const Identity& identity);
  Result<void> believe(const std::string& authority);

  std::shared_ptr<SSL_CTX> context_;
  std::shared_ptr<Rules> rules_;  // at one place: the context's callbacks know it
};

}  // namespace berth::tls
