#include "net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>
#include <cstring>

namespace berth::net {

Address Address::from(const wire::NodeAddress& address) {
  if (!address.unix_path().empty()) return unix_socket(address.unix_path());
  return tcp(address.host(), static_cast<std::uint16_t>(address.port()));
}

Result<Address> Address::parse(std::string_view text) {
  if (text.starts_with('/')) {
    if (text.size() >= sizeof(sockaddr_un::sun_path)) {
      return fail(Code::bad_value, fmt::format("socket path is too long: {}", text));
    }
    return unix_socket(std::string(text));
  }
  const auto wrong = [&] {
    return fail(Code::bad_value, fmt::format("not an address: {}", text),
                "an address is host:port, [IPv6]:port or the path of a socket");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong();  // IPv6 without brackets: which colon is the port's is a guess
  }
  std::uint16_t port = 0;
  const auto [end, trouble] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (trouble != std::errc{} || end != digits.data() + digits.size()) return wrong();
  return tcp(std::string(host), port);
}

std::string Address::text() const {
  if (is_unix()) return path;
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host, port);
}

wire::NodeAddress Address::to_wire(std::string node) const {
  wire::NodeAddress address;
  address.set_node(std::move(node));
  address.set_unix_path(path);
  address.set_host(host);
  address.set_port(port);
  return address;
}

std::unexpected<Error> unreachable(const Address& address, int trouble) {
  return fail(Code::no_connection,
              fmt::format("cannot connect to {}: {}", address.text(), std::strerror(trouble)));
}

}  // namespace berth::net
