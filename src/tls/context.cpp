#include "tls/context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "tls/authority.h"
#include "tls/pem.h"

namespace berth::tls {
namespace {

/// Fast where the processor has AES, and its digest is the one of keyed sessions.
constexpr const char* kCipher = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherNumber[2] = {0x13, 0x01};

std::unexpected<Error> not_set_up(std::string_view what) {
  return fail(Code::io, fmt::format("{}: {}", what, library_error()));
}

/// A session as TLS 1.3 wants a shared key to look.
SSL_SESSION* session_of(SSL* ssl, std::string_view key) {
  std::unique_ptr<SSL_SESSION, Freed<::SSL_SESSION_free>> session(::SSL_SESSION_new());
  const SSL_CIPHER* cipher = ::SSL_CIPHER_find(ssl, kCipherNumber);
  if (!session || cipher == nullptr ||
      ::SSL_SESSION_set1_master_key(
          session.get(), reinterpret_cast<const unsigned char*>(key.data()), key.size()) != 1 ||
      ::SSL_SESSION_set_cipher(session.get(), cipher) != 1 ||
      ::SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) != 1) {
    return nullptr;
  }
  return session.release();
}

}  // namespace

Result<Context> Context::make(bool server) {
  ::ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(
      ::SSL_CTX_new(server ? ::TLS_server_method() : ::TLS_client_method()), ::SSL_CTX_free);
  if (!context || ::SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      ::SSL_CTX_set_ciphersuites(context.get(), kCipher) != 1) {
    return not_set_up("cannot set up TLS");
  }
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_num_tickets(context.get(), 0);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  // A peer that closes its socket without a word is told by the socket.
  ::SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_COMPRESSION);
  auto rules = std::make_shared<Rules>();
  rules->server = server;
  SSL_CTX_set_app_data(context.get(), rules.get());
  return Context(std::move(context), std::move(rules));
}

Result<void> Context::prove_with(const Identity& identity) {
  const Key key = read_key(identity.key);
  const Certificate certificate = read_certificate(identity.certificate);
  if (!key || !certificate) return not_set_up("an identity cannot be read");
  if (::SSL_CTX_use_certificate(context_.get(), certificate.get()) != 1 ||
      ::SSL_CTX_use_PrivateKey(context_.get(), key.get()) != 1) {
    return not_set_up("an identity's key and certificate do not fit");
  }
  return {};
}

Result<void> Context::believe(const std::string& authority) {
  const Certificate certificate = read_certificate(authority);
  if (!certificate) return not_set_up("the authority's certificate cannot be read");
  if (::X509_STORE_add_cert(::SSL_CTX_get_cert_store(context_.get()), certificate.get()) != 1) {
    return not_set_up("the authority's certificate cannot be used");
  }
  return {};
}

Result<Context> Context::controller(const Identity& identity, const std::string& authority) {
  auto context = make(true);
  if (!context) return context;
  if (auto done = context->prove_with(identity); !done) return pass(std::move(done.error()));
  if (auto done = context->believe(authority); !done) return pass(std::move(done.error()));
  // The authority goes along, for hosts that know its fingerprint only.
  const Certificate root = read_certificate(authority);
  ::SSL_CTX_add1_chain_cert(context->context_.get(), root.get());
  ::SSL_CTX_set_verify(context->context_.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

Result<Context> Context::node(const Identity& identity, const std::string& authority) {
  auto context = caller(authority);
  if (!context) return context;
  if (auto done = context->prove_with(identity); !done) return pass(std::move(done.error()));
  return context;
}

Result<Context> Context::caller(const std::string& authority) {
  auto context = make(false);
  if (!context) return context;
  if (auto done = context->believe(authority); !done) return pass(std::move(done.error()));
  ::SSL_CTX_set_verify(context->context_.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

Result<Context> Context::joining(const std::string& fingerprint) {
  auto context = make(false);
  if (!context) return context;
  context->rules_->fingerprint = fingerprint;
  ::SSL_CTX_set_verify(context->context_.get(), SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_cert_verify_callback(context->context_.get(), check_fingerprint,
                                     context->rules_.get());
  return context;
}

/// The chain that came has an authority with the fingerprint: then it is judged by that one.
int Context::check_fingerprint(X509_STORE_CTX* chain, void* data) {
  const auto* rules = static_cast<const Rules*>(data);
  const STACK_OF(X509)* sent = ::X509_STORE_CTX_get0_untrusted(chain);
  for (int i = 0; sent != nullptr && i < sk_X509_num(sent); ++i) {
    X509* one = sk_X509_value(sent, i);
    if (fingerprint_of(one) != rules->fingerprint) continue;
    STACK_OF(X509)* trusted = sk_X509_new_null();
    sk_X509_push(trusted, one);
    ::X509_STORE_CTX_set0_trusted_stack(chain, trusted);
    const int verdict = ::X509_verify_cert(chain);
    ::X509_STORE_CTX_set0_trusted_stack(chain, nullptr);
    sk_X509_free(trusted);
    return verdict;
  }
  ::X509_STORE_CTX_set_error(chain, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
  return 0;
}

Result<Context> Context::keyed_server(FindKey find) {
  auto context = make(true);
  if (!context) return context;
  context->rules_->find = std::move(find);
  ::SSL_CTX_set_psk_find_session_callback(context->context_.get(), find_key);
  return context;
}

Result<Context> Context::keyed_caller() {
  auto context = make(false);
  if (!context) return context;
  // Nothing but the key is believed: a server that shows a certificate instead is refused.
  ::SSL_CTX_set_verify(context->context_.get(), SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_psk_use_session_callback(context->context_.get(), use_key);
  return context;
}

int Context::find_key(SSL* session, const unsigned char* name, std::size_t size,
                      SSL_SESSION** found) {
  const auto* rules = static_cast<const Rules*>(SSL_CTX_get_app_data(::SSL_get_SSL_CTX(session)));
  const std::string_view asked(reinterpret_cast<const char*>(name), size);
  *found = nullptr;
  const auto key = rules->find(asked);
  if (!key)
    return 1;  // unknown: the handshake goes on without it, and fails for want of anything else
  *found = session_of(session, *key);
  if (*found == nullptr) return 0;
  static_cast<Stream::State*>(SSL_get_app_data(session))->key_name = asked;
  return 1;
}

int Context::use_key(SSL* session, const EVP_MD* /*digest*/, const unsigned char** name,
                     std::size_t* size, SSL_SESSION** found) {
  auto* state = static_cast<Stream::State*>(SSL_get_app_data(session));
  *found = session_of(session, state->key);
  if (*found == nullptr) return 0;
  *name = reinterpret_cast<const unsigned char*>(state->key_name.data());
  *size = state->key_name.size();
  return 1;
}

Stream Context::open() const {
  Stream stream(::SSL_new(context_.get()), rules_->server);
  stream.context_ = rules_;
  return stream;
}

Stream Context::open(std::string key_name, std::string key) const {
  Stream stream = open();
  stream.state_->key_name = std::move(key_name);
  stream.state_->key = std::move(key);
  return stream;
}

}  // namespace berth::tls
