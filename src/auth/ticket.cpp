#include "auth/ticket.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>

namespace berth::auth {

std::string hmac(std::string_view key, std::string_view text) {
  std::string mac(kMacBytes, '\0');
  unsigned int size = 0;
  const unsigned char* made =
      ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(),
             reinterpret_cast<unsigned char*>(mac.data()), &size);
  if (made == nullptr || size != kMacBytes) std::abort();  // out of memory in libcrypto
  return mac;
}

std::string node_key(std::string_view cluster_key, std::string_view node,
                     std::uint64_t generation) {
  // The prefix keeps keys apart from whatever else the cluster key may once sign.
  std::string text = "berth node key\n" + std::string(node);
  if (generation > 0) text += "\n" + std::to_string(generation);
  return hmac(cluster_key, text);
}

std::string session_key(std::string_view node_key, std::string_view name) {
  return hmac(hmac(node_key, "berth session keys"), name);
}

std::string sign(std::string_view spec, std::string_view key) {
  return hmac(key, spec);
}

bool verify(std::string_view spec, std::string_view mac, std::string_view key) {
  if (key.empty() || mac.size() != kMacBytes) return false;
  return ::CRYPTO_memcmp(sign(spec, key).data(), mac.data(), kMacBytes) == 0;
}

}  // namespace berth::auth
