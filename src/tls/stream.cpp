#include "tls/stream.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <climits>

#include "tls/pem.h"

namespace berth::tls {
namespace {

constexpr std::size_t kBindingBytes = 32;
constexpr std::size_t kMostPiece = 1024 * 1024;

}  // namespace

Stream::Stream(SSL* session, bool server) : state_(std::make_unique<State>()), session_(session) {
  ::SSL_set_bio(session, ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
  SSL_set_app_data(session, state_.get());
  if (server) {
    ::SSL_set_accept_state(session);
  } else {
    ::SSL_set_connect_state(session);
  }
}

void Stream::begin(std::string& out) {
  ::ERR_clear_error();
  ::SSL_do_handshake(session_.get());
  drain(out);
}

Result<void> Stream::take(std::string_view raw, std::string& plain, std::string& out) {
  if (state_->ended) {
    state_->after.append(raw);
    return {};
  }
  ::ERR_clear_error();
  BIO* in = ::SSL_get_rbio(session_.get());
  for (std::size_t at = 0; at < raw.size(); at += kMostPiece) {
    const std::string_view piece = raw.substr(at, kMostPiece);
    if (::BIO_write(in, piece.data(), static_cast<int>(piece.size())) < 0) return failed(out);
  }
  if (!state_->established) {
    if (auto done = shake(out); !done || !state_->established) return done;
  }
  std::array<char, 16384> buffer;
  for (;;) {
    const int count = ::SSL_read(session_.get(), buffer.data(), buffer.size());
    if (count > 0) {
      plain.append(buffer.data(), static_cast<std::size_t>(count));
      continue;
    }
    switch (::SSL_get_error(session_.get(), count)) {
      case SSL_ERROR_WANT_READ:
        drain(out);
        return {};
      case SSL_ERROR_ZERO_RETURN: {
        state_->ended = true;
        const std::size_t left = ::BIO_ctrl_pending(in);
        state_->after.resize(left);
        if (left > 0) ::BIO_read(in, state_->after.data(), static_cast<int>(left));
        drain(out);
        return {};
      }
      default:
        return failed(out);
    }
  }
}

Result<void> Stream::shake(std::string& out) {
  const int done = ::SSL_do_handshake(session_.get());
  if (done != 1) {
    if (::SSL_get_error(session_.get(), done) != SSL_ERROR_WANT_READ) return failed(out);
    drain(out);
    return {};
  }
  state_->established = true;
  drain(out);
  const std::string waiting = std::exchange(state_->waiting, {});
  write(waiting, out);
  return {};
}

void Stream::put(std::string_view plain, std::string& out) {
  if (!state_->established) {
    state_->waiting.append(plain);
    return;
  }
  write(plain, out);
}

void Stream::write(std::string_view plain, std::string& out) {
  ::ERR_clear_error();
  while (!plain.empty()) {
    const auto piece = static_cast<int>(std::min(plain.size(), kMostPiece));
    const int count = ::SSL_write(session_.get(), plain.data(), piece);
    if (count <= 0) break;  // the session has failed: take() has said so, or will
    plain.remove_prefix(static_cast<std::size_t>(count));
    drain(out);
  }
}

void Stream::end(std::string& out) {
  if (std::exchange(state_->shut, true)) return;
  ::ERR_clear_error();
  ::SSL_shutdown(session_.get());
  drain(out);
}

std::string Stream::rest() {
  return std::exchange(state_->after, {});
}

void Stream::drain(std::string& out) {
  BIO* pending = ::SSL_get_wbio(session_.get());
  const std::size_t count = ::BIO_ctrl_pending(pending);
  if (count == 0) return;
  const std::size_t before = out.size();
  out.resize(before + count);
  const int got = ::BIO_read(pending, out.data() + before, static_cast<int>(count));
  out.resize(before + static_cast<std::size_t>(std::max(got, 0)));
}

std::unexpected<Error> Stream::failed(std::string& out) {
  drain(out);
  const long verdict = ::SSL_get_verify_result(session_.get());
  std::string why =
      verdict != X509_V_OK ? ::X509_verify_cert_error_string(verdict) : library_error();
  return fail(Code::no_credential, fmt::format("the TLS session failed: {}", why));
}

std::string Stream::binding(std::string_view purpose) const {
  std::string key(kBindingBytes, '\0');
  if (::SSL_export_keying_material(session_.get(), reinterpret_cast<unsigned char*>(key.data()),
                                   key.size(), purpose.data(), purpose.size(), nullptr, 0,
                                   0) != 1) {
    return {};
  }
  return key;
}

std::string Stream::certificate() const {
  const X509* certificate = ::SSL_get0_peer_certificate(session_.get());
  if (certificate == nullptr || ::SSL_get_verify_result(session_.get()) != X509_V_OK) return {};
  return pem_of(certificate);
}

}  // namespace berth::tls
