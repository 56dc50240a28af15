// Names of hosts for programs that are linked statically: glibc's own resolver would load shared
// modules of exactly the glibc they were linked with. The system's getent has the right ones.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/fd.h"
#include "net/address.h"

namespace berth::net {
namespace {

std::optional<SocketAddress> numeric(const std::string& host, std::uint16_t port) {
  SocketAddress result;
  sockaddr_in four{};
  if (host.empty() || ::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);  // "" = INADDR_ANY, which is all zero
    std::memcpy(&result.storage, &four, sizeof four);
    result.size = sizeof four;
    return result;
  }
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    std::memcpy(&result.storage, &six, sizeof six);
    result.size = sizeof six;
    return result;
  }
  return std::nullopt;
}

std::optional<std::string> in_hosts_file(const std::string& host) {
  std::ifstream file("/etc/hosts");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string number;
    std::string name;
    words >> number;
    while (words >> name) {
      if (name == host) return number;
    }
  }
  return std::nullopt;
}

/// The first word that `getent ahosts` prints.
std::optional<std::string> from_getent(const std::string& host,
                                       std::chrono::milliseconds patience) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // A name that begins with '-' must not be an option of getent.
  const char* words[] = {"getent", "--", "ahosts", host.c_str(), nullptr};
  const char* environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", nullptr};
  pid_t pid = 0;
  const int trouble = ::posix_spawn(&pid, "/usr/bin/getent", &actions, nullptr,
                                    const_cast<char**>(words), const_cast<char**>(environment));
  ::posix_spawn_file_actions_destroy(&actions);
  if (trouble != 0) return std::nullopt;
  writer.reset();

  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string text;
  while (text.size() < 4096) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd one{reader.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) == 0) break;
    char piece[512];
    const ssize_t got = ::read(reader.get(), piece, sizeof piece);
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    if (got > 0) text.append(piece, static_cast<std::size_t>(got));
  }
  ::kill(pid, SIGKILL);  // done already, or too late; it is reaped below, so the pid is ours
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  const std::size_t end = text.find_first_of(" \t\n");
  if (end == 0 || end == std::string::npos) return std::nullopt;
  return text.substr(0, end);
}

}  // namespace

std::string number_of(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN]{};
  if (address.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text,
                sizeof text);
  } else if (address.sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text,
                sizeof text);
  }
  return text;
}

Result<SocketAddress> resolve(const Address& address, std::chrono::milliseconds patience) {
  if (address.is_unix()) {
    sockaddr_un local{};
    if (address.path.size() >= sizeof local.sun_path) {
      return fail(Code::bad_value, fmt::format("socket path is too long: {}", address.path));
    }
    local.sun_family = AF_UNIX;
    std::memcpy(local.sun_path, address.path.c_str(), address.path.size() + 1);
    SocketAddress result;
    std::memcpy(&result.storage, &local, sizeof local);
    result.size = sizeof local;
    return result;
  }
  if (auto found = numeric(address.host, address.port)) return *found;
  if (auto number = in_hosts_file(address.host)) {
    if (auto found = numeric(*number, address.port)) return *found;
  }
  if (auto number = from_getent(address.host, patience)) {
    if (auto found = numeric(*number, address.port)) return *found;
  }
  return fail(Code::no_connection, fmt::format("cannot resolve host {}", address.host));
}

}  // namespace berth::net
