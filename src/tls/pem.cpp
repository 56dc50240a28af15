#include "tls/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>

namespace berth::tls {
namespace {

Bytes over(std::string_view text) {
  return Bytes(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* bytes) {
  char* data = nullptr;
  const long size = ::BIO_get_mem_data(bytes, &data);
  return {data, static_cast<std::size_t>(size > 0 ? size : 0)};
}

/// A key file is never protected by a phrase: nobody is there to type it.
int no_phrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) {
  return -1;
}

}  // namespace

Key read_key(std::string_view pem) {
  const Bytes bytes = over(pem);
  return Key(::PEM_read_bio_PrivateKey(bytes.get(), nullptr, no_phrase, nullptr));
}

Certificate read_certificate(std::string_view pem) {
  const Bytes bytes = over(pem);
  return Certificate(::PEM_read_bio_X509(bytes.get(), nullptr, no_phrase, nullptr));
}

Wish read_wish(std::string_view pem) {
  const Bytes bytes = over(pem);
  return Wish(::PEM_read_bio_X509_REQ(bytes.get(), nullptr, no_phrase, nullptr));
}

std::string pem_of(const X509* certificate) {
  const Bytes bytes(::BIO_new(::BIO_s_mem()));
  ::PEM_write_bio_X509(bytes.get(), const_cast<X509*>(certificate));
  return text_of(bytes.get());
}

std::string pem_of(const EVP_PKEY* key) {
  const Bytes bytes(::BIO_new(::BIO_s_mem()));
  ::PEM_write_bio_PrivateKey(bytes.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(bytes.get());
}

std::string pem_of(const X509_REQ* wish) {
  const Bytes bytes(::BIO_new(::BIO_s_mem()));
  ::PEM_write_bio_X509_REQ(bytes.get(), const_cast<X509_REQ*>(wish));
  return text_of(bytes.get());
}

std::string library_error() {
  const unsigned long error = ::ERR_peek_last_error();
  if (error == 0) return "the other side broke it off";
  const char* reason = ::ERR_reason_error_string(error);
  return reason != nullptr ? reason : "unknown error of the TLS library";
}

}  // namespace berth::tls
