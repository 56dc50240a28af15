#include "auth/token.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

#include "auth/ticket.h"

namespace berth::auth {
namespace {

constexpr std::string_view kJoinPrefix = "berth-join-";
constexpr std::string_view kUserPrefix = "berth-user-";
constexpr std::size_t kMostText = 8192;

std::string user_tokens_key(std::string_view cluster_key) {
  return hmac(cluster_key, "berth user tokens");
}

std::unexpected<Error> bad_user_token(const char* why) {
  return fail(Code::no_credential, fmt::format("the token {}", why),
              "`scontrol token` makes a new one, where the controller knows who you are");
}

}  // namespace

std::string base64url(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::optional<std::string> from_base64url(std::string_view text) {
  if (text.size() > kMostText || text.size() % 4 == 1) return std::nullopt;
  std::string plain(text);
  if (plain.find_first_of("+/=") != std::string::npos) return std::nullopt;
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  std::size_t padding = 0;
  while (plain.size() % 4 != 0) {
    plain.push_back('=');
    ++padding;
  }
  std::string bytes(plain.size() / 4 * 3, '\0');
  const int size = ::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                     reinterpret_cast<const unsigned char*>(plain.data()),
                                     static_cast<int>(plain.size()));
  if (size < 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  // One text for one value: what is not written so is not read.
  if (base64url(bytes) != text) return std::nullopt;
  return bytes;
}

std::string join_token_text(const wire::JoinToken& token) {
  return std::string(kJoinPrefix) + base64url(token.SerializeAsString());
}

Result<wire::JoinToken> read_join_token(std::string_view text) {
  wire::JoinToken token;
  const auto bytes = text.starts_with(kJoinPrefix) ? from_base64url(text.substr(kJoinPrefix.size()))
                                                   : std::nullopt;
  if (!bytes || !token.ParseFromString(*bytes) || token.controllers().empty() ||
      token.fingerprint().empty() || token.id().empty() || token.secret().empty()) {
    return fail(Code::bad_value, "this is no token to join with",
                fmt::format("it begins with {} and is one word; `scontrol token node=NAME` prints "
                            "one on the controller's host",
                            kJoinPrefix));
  }
  return token;
}

std::string secret_hash(std::string_view secret) {
  return hmac("berth join secret", secret);
}

bool same_bytes(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string user_token(const UserClaim& claim, std::string_view cluster_key) {
  const std::string body =
      base64url(fmt::format("{}:{}:{}:{}", claim.uid, claim.gid, claim.expires, claim.generation));
  return fmt::format("{}{}.{}", kUserPrefix, body,
                     base64url(hmac(user_tokens_key(cluster_key), body)));
}

Result<UserClaim> check_user_token(std::string_view text, std::string_view cluster_key,
                                   std::int64_t now) {
  const std::size_t dot = text.rfind('.');
  if (!text.starts_with(kUserPrefix) || dot == std::string_view::npos || dot < kUserPrefix.size()) {
    return bad_user_token("cannot be read");
  }
  const std::string_view body = text.substr(kUserPrefix.size(), dot - kUserPrefix.size());
  const auto mac = from_base64url(text.substr(dot + 1));
  if (!mac || !same_bytes(*mac, hmac(user_tokens_key(cluster_key), body))) {
    return bad_user_token("was not made by this cluster");
  }
  const std::string words = from_base64url(body).value_or("");
  unsigned uid = 0;
  unsigned gid = 0;
  long long expires = 0;
  unsigned long long generation = 0;
  if (std::sscanf(words.c_str(), "%u:%u:%lld:%llu", &uid, &gid, &expires, &generation) != 4) {
    return bad_user_token("cannot be read");
  }
  if (expires < now) return bad_user_token("has expired");
  return UserClaim{.uid = uid, .gid = gid, .expires = expires, .generation = generation};
}

}  // namespace berth::auth
