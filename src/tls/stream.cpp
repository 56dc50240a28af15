#include "tls/stream.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tls/pem.h"

namespace berth::tls {
namespace {

constexpr std::size_t kBindingBytes = 32;
constexpr std::size_t kMostPiece = 1024 * 1024;

}  // namespace

struct Stream::Bytes {
  static State& state_of(BIO* bio) { return *static_cast<State*>(::BIO_get_data(bio)); }

  static int read(BIO* bio, char* to, std::size_t room, std::size_t* count) {
    std::string_view& in = state_of(bio).in;
    ::BIO_clear_retry_flags(bio);
    if (in.empty()) {
      ::BIO_set_retry_read(bio);
      return 0;
    }
    *count = in.copy(to, room);
    in.remove_prefix(*count);
    return 1;
  }
  static int write(BIO* bio, const char* from, std::size_t size, std::size_t* count) {
    std::string* out = state_of(bio).out;
    if (out == nullptr) return 0;
    out->append(from, size);
    *count = size;
    return 1;
  }
  static long control(BIO* /*bio*/, int what, long /*number*/, void* /*pointer*/) {
    return what == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static BIO* open(State& state) {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
      ::BIO_meth_set_read_ex(made, read);
      ::BIO_meth_set_write_ex(made, write);
      ::BIO_meth_set_ctrl(made, control);
      return made;
    }();
    BIO* bio = ::BIO_new(method);
    ::BIO_set_data(bio, &state);
    ::BIO_set_init(bio, 1);
    return bio;
  }

  /// For the time of one call.
  struct Lent {
    Lent(State& lent_to, std::string_view in, std::string& out) : state(lent_to) {
      state.in = in;
      state.out = &out;
      ::ERR_clear_error();
    }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
      state.in = {};
      state.out = nullptr;
    }
    State& state;
  };
};

Stream::Stream(SSL* session, bool server) : state_(std::make_unique<State>()), session_(session) {
  BIO* bytes = Bytes::open(*state_);
  ::SSL_set_bio(session, bytes, bytes);
  SSL_set_app_data(session, state_.get());
  if (server) {
    ::SSL_set_accept_state(session);
  } else {
    ::SSL_set_connect_state(session);
  }
}

void Stream::begin(std::string& out) {
  const Bytes::Lent lent(*state_, {}, out);
  ::SSL_do_handshake(session_.get());
}

Result<void> Stream::take(std::string_view raw, std::string& plain, std::string& out) {
  if (state_->ended) {
    state_->after.append(raw);
    return {};
  }
  const Bytes::Lent lent(*state_, raw, out);
  if (!state_->established) {
    if (auto done = shake(); !done || !state_->established) return done;
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
        return {};
      case SSL_ERROR_ZERO_RETURN:
        state_->ended = true;
        state_->after = state_->in;
        return {};
      default:
        return failed();
    }
  }
}

Result<void> Stream::shake() {
  const int done = ::SSL_do_handshake(session_.get());
  if (done != 1) {
    if (::SSL_get_error(session_.get(), done) != SSL_ERROR_WANT_READ) return failed();
    return {};
  }
  state_->established = true;
  const std::string waiting = std::exchange(state_->waiting, {});
  write(waiting);
  return {};
}

void Stream::put(std::string_view plain, std::string& out) {
  if (!state_->established) {
    state_->waiting.append(plain);
    return;
  }
  const Bytes::Lent lent(*state_, {}, out);
  write(plain);
}

void Stream::write(std::string_view plain) {
  while (!plain.empty()) {
    const auto piece = static_cast<int>(std::min(plain.size(), kMostPiece));
    const int count = ::SSL_write(session_.get(), plain.data(), piece);
    if (count <= 0) break;  // the session has failed: take() has said so, or will
    plain.remove_prefix(static_cast<std::size_t>(count));
  }
}

void Stream::end(std::string& out) {
  if (std::exchange(state_->shut, true)) return;
  const Bytes::Lent lent(*state_, {}, out);
  ::SSL_shutdown(session_.get());
}

std::string Stream::rest() {
  return std::exchange(state_->after, {});
}

std::unexpected<Error> Stream::failed() const {
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
