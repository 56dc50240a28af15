// Where a program listens: a unix socket or a TCP port.
//
//   Result<net::Address> a = net::Address::parse("ctl.example:6817");   // or
//   "/run/berth/K/controller.sock" net::Address b = net::Address::from(grant.addresses(0)); //
//   wire::NodeAddress
#pragma once

#include <netinet/in.h>
#include <sys/un.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/submit.pb.h"

namespace berth::net {

struct Address {
  std::string path = {};  // unix socket; "" = use host and port
  std::string host = {};  // name, IPv4, or IPv6 without brackets; "" = any (to listen)
  std::uint16_t port = 0;

  static Address unix_socket(std::string path) { return {.path = std::move(path), .host = {}}; }
  static Address tcp(std::string host, std::uint16_t port) {
    return {.path = {}, .host = std::move(host), .port = port};
  }
  static Address from(const wire::NodeAddress& address);
  /// What begins with '/' is a path; else "host:port", "[v6]:port", ":port".
  static Result<Address> parse(std::string_view text);

  [[nodiscard]] bool is_unix() const { return !path.empty(); }
  /// The text that parse() reads.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] wire::NodeAddress to_wire(std::string node) const;

  friend bool operator==(const Address&, const Address&) = default;
};

/// An address in the kernel's form.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
};
/// Numbers and /etc/hosts are read here; other names are asked of `getent ahosts`, which has
/// glibc's name service where a static program has not. Blocks up to `patience`.
Result<SocketAddress> resolve(const Address& address,
                              std::chrono::milliseconds patience = std::chrono::seconds(5));
/// "10.0.0.7", "fd00::1"; "" for what is not an internet address.
std::string number_of(const sockaddr& address);
/// "cannot connect to …", and why (errno).
std::unexpected<Error> unreachable(const Address& address, int trouble);

}  // namespace berth::net
