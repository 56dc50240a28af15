// What own_host.h promises.
#include "controller/own_host.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "net/address.h"
#include "text/words.h"

namespace berth::controller {
namespace {

std::vector<std::string> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  std::vector<std::string> out;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    std::string number = net::number_of(*one->ifa_addr);
    if (!number.empty()) out.push_back(std::move(number));
  }
  return out;
}

std::optional<std::string> look_up(const std::string& name) {
  const auto found = net::resolve(net::Address::tcp(name, 0));
  return found ? std::optional(net::number_of(*found->get())) : std::nullopt;
}

bool is_loopback(std::string_view number) {
  return number.starts_with("127.") || number == "::1";
}

std::string written(const conf::ControllerHost& host) {
  return host.address == host.name ? host.name : fmt::format("{}({})", host.name, host.address);
}

}  // namespace

OwnHost this_host() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) std::strcpy(name, "localhost");
  return {.name = name, .addresses = own_addresses(), .look_up = look_up};
}

bool same_host_name(std::string_view one, std::string_view other) {
  const std::size_t dot = one.find('.');
  const std::size_t other_dot = other.find('.');
  if (dot == std::string_view::npos || other_dot == std::string_view::npos) {
    one = one.substr(0, dot);
    other = other.substr(0, other_dot);
  }
  return !one.empty() && text::equal_ignoring_case(one, other);
}

Result<void> check_controller_host(const std::vector<conf::ControllerHost>& named,
                                   const OwnHost& own) {
  if (named.empty()) return {};
  if (named.size() > 1) {
    std::vector<std::string> all;
    for (const conf::ControllerHost& host : named) all.push_back("SlurmctldHost=" + written(host));
    return fail(Code::bad_config,
                fmt::format("slurm.conf names {} controllers ({}), and berth has no failover yet",
                            named.size(), fmt::join(all, ", ")),
                "leave one SlurmctldHost, the machine whose StateSaveLocation has the jobs");
  }
  const conf::ControllerHost& host = named.front();
  if (same_host_name(host.name, "localhost") || same_host_name(host.name, own.name)) return {};
  const auto number = own.look_up(host.address);
  if (number &&
      (is_loopback(*number) || std::ranges::find(own.addresses, *number) != own.addresses.end()))
    return {};
  std::vector<std::string> shown;
  std::ranges::copy_if(own.addresses, std::back_inserter(shown), [](const std::string& one) {
    return !is_loopback(one) && !one.starts_with("fe80:");
  });
  return fail(
      Code::bad_config,
      fmt::format("this machine is {}{}, and slurm.conf has SlurmctldHost={}{}: berthctld serves "
                  "on that host alone",
                  own.name, shown.empty() ? "" : fmt::format(" ({})", fmt::join(shown, ", ")),
                  written(host),
                  number && *number != host.address ? fmt::format(", which is {}", *number)
                  : number                          ? std::string()
                                                    : std::string(", whose address nobody knows")),
      fmt::format(
          "start it on {}; to move the cluster here, end berthctld there, copy its "
          "StateSaveLocation to this machine, and then change SlurmctldHost on all machines",
          host.name));
}

}  // namespace berth::controller
