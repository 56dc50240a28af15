// OpenSSL's objects as text, and their owners.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

namespace berth::tls {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<::EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<::X509_free>>;
using Wish = std::unique_ptr<X509_REQ, Freed<::X509_REQ_free>>;
using Bytes = std::unique_ptr<BIO, Freed<::BIO_free_all>>;

/// What is in a text, or null. The text is looked through for the first block of the kind.
Key read_key(std::string_view pem);
Certificate read_certificate(std::string_view pem);
Wish read_wish(std::string_view pem);

std::string pem_of(const X509* certificate);
std::string pem_of(const EVP_PKEY* key);
std::string pem_of(const X509_REQ* wish);

/// The library's last error, in words.
std::string library_error();

}  // namespace berth::tls
