#include "tls/authority.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/whole_file.h"

namespace berth::tls {
namespace {

constexpr long kDay = 24 * 60 * 60;
constexpr long kAuthorityDays = 30 * 365;
constexpr long kControllerDays = 10 * 365;  // it makes a new one at each start
constexpr long kGrace = kDay;               // a clock elsewhere may be behind
constexpr std::size_t kMostWish = 8 * 1024;
constexpr std::size_t kSerialBytes = 16;

std::unexpected<Error> trouble(std::string_view what) {
  return fail(Code::io, fmt::format("{}: {}", what, library_error()));
}

Key new_key() {
  return Key(::EVP_EC_gen("P-256"));
}

bool add(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  ::X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Freed<::X509_EXTENSION_free>> extension(
      ::X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && ::X509_add_ext(certificate, extension.get(), -1) == 1;
}

/// Everything but the extensions and the signature.
Certificate begin(EVP_PKEY* key, const std::string& name, long days) {
  Certificate made(::X509_new());
  unsigned char serial[kSerialBytes];
  ::RAND_bytes(serial, sizeof serial);
  serial[0] =
      static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, and always as long
  const std::unique_ptr<BIGNUM, Freed<::BN_free>> number(
      ::BN_bin2bn(serial, sizeof serial, nullptr));
  X509_NAME* subject = ::X509_get_subject_name(made.get());
  const bool good =
      ::X509_set_version(made.get(), X509_VERSION_3) == 1 &&
      ::BN_to_ASN1_INTEGER(number.get(), ::X509_get_serialNumber(made.get())) != nullptr &&
      ::X509_gmtime_adj(::X509_getm_notBefore(made.get()), -kGrace) != nullptr &&
      ::X509_gmtime_adj(::X509_getm_notAfter(made.get()), days * kDay) != nullptr &&
      ::X509_set_pubkey(made.get(), key) == 1 &&
      ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                   0) == 1;
  return good ? std::move(made) : nullptr;
}

/// A common name has at most 64 characters.
std::string short_name(std::string name) {
  if (name.size() > 64) name.resize(64);
  return name;
}

std::string serial_of(const X509* certificate) {
  const std::unique_ptr<BIGNUM, Freed<::BN_free>> number(
      ::ASN1_INTEGER_to_BN(::X509_get0_serialNumber(certificate), nullptr));
  char* hex = ::BN_bn2hex(number.get());
  std::string text = hex;
  ::OPENSSL_free(hex);
  return text;
}

}  // namespace

std::string fingerprint_of(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (::X509_digest(certificate, ::EVP_sha256(), digest, &size) != 1) return {};
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

Result<Bearer> bearer_of(const std::string& certificate) {
  const Certificate read = read_certificate(certificate);
  if (!read) return fail(Code::no_credential, "a certificate cannot be read");
  Bearer bearer;
  bearer.serial = serial_of(read.get());
  const std::unique_ptr<GENERAL_NAMES, Freed<::GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(
          ::X509_get_ext_d2i(read.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    const ASN1_STRING* text = name->d.dNSName;
    bearer.nodes.emplace_back(reinterpret_cast<const char*>(::ASN1_STRING_get0_data(text)),
                              static_cast<std::size_t>(::ASN1_STRING_length(text)));
  }
  return bearer;
}

std::optional<long> days_left(const std::string& certificate) {
  const Certificate read = read_certificate(certificate);
  int days = 0;
  int seconds = 0;
  if (!read || ::ASN1_TIME_diff(&days, &seconds, nullptr, ::X509_get0_notAfter(read.get())) != 1) {
    return std::nullopt;
  }
  return days;
}

Result<NewKey> make_key() {
  const Key key = new_key();
  const Wish wish(::X509_REQ_new());
  if (!key || ::X509_REQ_set_pubkey(wish.get(), key.get()) != 1 ||
      ::X509_REQ_sign(wish.get(), key.get(), ::EVP_sha256()) == 0) {
    return trouble("cannot make a key");
  }
  return NewKey{pem_of(key.get()), pem_of(wish.get())};
}

Authority::Authority(Key key, Certificate certificate)
    : key_(std::move(key)),
      certificate_(std::move(certificate)),
      text_(pem_of(certificate_.get())) {}

Result<Authority> Authority::load_or_create(const std::string& path, const std::string& cluster) {
  auto text = read_private_file(path);
  if (!text) return pass(std::move(text.error()));
  if (!text->empty()) {
    Key key = read_key(*text);
    Certificate certificate = read_certificate(*text);
    if (!key || !certificate || ::X509_check_private_key(certificate.get(), key.get()) != 1) {
      return fail(Code::bad_config, fmt::format("{} is damaged", path),
                  "take it from a backup; without it every node has to join anew: remove it then");
    }
    return Authority(std::move(key), std::move(certificate));
  }
  Key key = new_key();
  Certificate made =
      key ? begin(key.get(), short_name("berth " + cluster), kAuthorityDays) : nullptr;
  if (!made || ::X509_set_issuer_name(made.get(), ::X509_get_subject_name(made.get())) != 1 ||
      !add(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add(made.get(), made.get(), NID_key_usage, "critical,keyCertSign") ||
      !add(made.get(), made.get(), NID_subject_key_identifier, "hash") ||
      ::X509_sign(made.get(), key.get(), ::EVP_sha256()) == 0) {
    return trouble("cannot make the cluster's authority");
  }
  if (auto done = write_whole_file(path, pem_of(key.get()) + pem_of(made.get()), 0600); !done) {
    return pass(std::move(done.error()));
  }
  return Authority(std::move(key), std::move(made));
}

Result<Identity> Authority::issue_controller(const std::string& host) const {
  const Key key = new_key();
  const Certificate made = key ? begin(key.get(), short_name(host), kControllerDays) : nullptr;
  if (!made ||
      ::X509_set_issuer_name(made.get(), ::X509_get_subject_name(certificate_.get())) != 1 ||
      !add(made.get(), certificate_.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !add(made.get(), certificate_.get(), NID_key_usage, "critical,digitalSignature") ||
      !add(made.get(), certificate_.get(), NID_ext_key_usage, "serverAuth") ||
      ::X509_sign(made.get(), key_.get(), ::EVP_sha256()) == 0) {
    return trouble("cannot make the controller's certificate");
  }
  return Identity{pem_of(key.get()), pem_of(made.get())};
}

Result<Authority::Issued> Authority::issue_node(std::string_view wish,
                                                const std::vector<std::string>& nodes) const {
  if (wish.size() > kMostWish) {
    return fail(Code::bad_value, "the wish for a certificate is too long");
  }
  const Wish read = read_wish(wish);
  EVP_PKEY* key = read ? ::X509_REQ_get0_pubkey(read.get()) : nullptr;
  if (key == nullptr || ::EVP_PKEY_get_base_id(key) != EVP_PKEY_EC ||
      ::X509_REQ_verify(read.get(), key) != 1) {
    return fail(Code::bad_value, "the wish for a certificate is not signed with its own key");
  }
  std::string names;
  for (const std::string& node : nodes) {
    names += fmt::format("{}DNS:{}", names.empty() ? "" : ",", node);
  }
  const Certificate made = begin(key, short_name(nodes.front()), kNodeCertificateDays);
  if (!made ||
      ::X509_set_issuer_name(made.get(), ::X509_get_subject_name(certificate_.get())) != 1 ||
      !add(made.get(), certificate_.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !add(made.get(), certificate_.get(), NID_key_usage, "critical,digitalSignature") ||
      !add(made.get(), certificate_.get(), NID_ext_key_usage, "clientAuth") ||
      !add(made.get(), certificate_.get(), NID_subject_alt_name, names) ||
      ::X509_sign(made.get(), key_.get(), ::EVP_sha256()) == 0) {
    return trouble("cannot make a node's certificate");
  }
  return Issued{pem_of(made.get()), serial_of(made.get())};
}

}  // namespace berth::tls
