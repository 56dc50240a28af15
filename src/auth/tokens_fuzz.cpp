// Tokens, names of sessions and tickets from outside: nothing is believed that was not made with
// the key, and what is read is written as it was.
#include <cstdint>
#include <cstdlib>

#include "auth/munge.h"
#include "auth/ticket.h"
#include "auth/token.h"
#include "wire/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  static const std::string key(auth::kKeyBytes, 'k');
  static const std::string other(auth::kKeyBytes, 'o');
  if (const auto bytes = auth::from_base64url(input); bytes && auth::base64url(*bytes) != input) {
    std::abort();
  }
  if (const auto token = auth::read_join_token(input)) {
    const auto again = auth::read_join_token(auth::join_token_text(*token));
    if (!again || again->SerializeAsString() != token->SerializeAsString()) std::abort();
  }
  static const std::string made = auth::user_token({.uid = 1, .gid = 1, .expires = 1 << 30}, key);
  if (auth::check_user_token(input, key, 0) && input != made) std::abort();
  if (auth::check_user_token("berth-user-" + std::string(input), key, 0)) std::abort();
  if (const auto claim = auth::check_user_token(made, key, 0); !claim || claim->uid != 1) {
    std::abort();
  }
  if (auth::check_user_token(made, other, 0)) std::abort();
  if (const auto hello = wire::decode<wire::Hello>(input)) (void)auth::check_protocol(*hello);
  if (const auto name = wire::decode<wire::SessionName>(input)) {
    if (auth::session_key(key, input) == auth::session_key(other, input)) std::abort();
  }
  if (auth::verify(input, input.substr(0, auth::kMacBytes), key)) std::abort();
  if (const auto ticket = wire::decode<wire::Ticket>(input)) {
    if (auth::verify(ticket->spec(), ticket->mac(), key)) std::abort();
    (void)wire::decode<wire::StepSpec>(ticket->spec());
    (void)wire::decode<wire::AccessSpec>(ticket->spec());
  }
  return 0;
}
