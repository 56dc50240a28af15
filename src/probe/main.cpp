// berth-probe: a connection to a daemon for tests. What comes on standard input is sent as it is,
// within TLS where the address is another machine's; the frames that come back are written to
// standard output. It checks nothing of what it sends, so that a test can send anything.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "auth/munge.h"
#include "net/client.h"
#include "tls/context.h"
#include "tls/handover.h"

namespace {

using namespace berth;

constexpr std::string_view kUsage =
    "usage: berth-probe ADDRESS [AUTHORITY-FILE] [WAY]\n"
    "  ADDRESS         a unix socket's path, or host:port of a controller, or of an agent with\n"
    "                  `handover`\n"
    "  WAY             how to prove who calls, beyond what is sent:\n"
    "    identity FILE       with the certificate of a node (identity.pem of its spool)\n"
    "    munge               a Hello with a munge credential is sent first\n"
    "    munge-to FILE       the same Hello, written to a file instead\n"
    "    handover NAME KEY   hex, from a ticket: as a client of an agent; the first frame of the\n"
    "                        input is what the agent gets\n";
constexpr std::chrono::seconds kPatience{10};

int complain(std::string_view why) {
  fmt::print(stderr, "berth-probe: {}\n", why);
  return 1;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

/// The first frame of standard input.
std::string read_frame() {
  std::string bytes;
  char byte = 0;
  while (bytes.size() < wire::kHeaderBytes || bytes.size() < wire::frame_bytes(bytes)) {
    if (::read(STDIN_FILENO, &byte, 1) != 1) break;
    bytes.push_back(byte);
  }
  return bytes;
}

struct Way {
  std::string address;
  std::string authority;
  std::string kind;
  std::string first;   // file, or name
  std::string second;  // key
};

Result<tls::Channel> channel_for(const Way& way) {
  if (way.kind == "handover") {
    auto handover = tls::Handover::open({.name = from_hex(way.first), .key = from_hex(way.second)},
                                        read_frame());
    if (!handover) return pass(std::move(handover.error()));
    return tls::Channel(std::move(*handover));
  }
  // Key and certificate are in one text; each reader looks for its own.
  const std::string own = way.kind == "identity" ? contents(way.first) : std::string();
  auto context = way.kind == "identity"
                     ? tls::Context::node({.key = own, .certificate = own}, way.authority)
                     : tls::Context::caller(way.authority);
  if (!context) return pass(std::move(context.error()));
  return tls::Channel(context->open());
}

int talk(net::Client& client) {
  bool more_input = true;
  for (;;) {
    for (;;) {
      auto frame = client.try_receive();
      if (!frame) return complain(frame.error().what());
      if (!*frame) break;
      std::string bytes;
      wire::append_payload(bytes, (*frame)->kind, (*frame)->payload);
      std::fwrite(bytes.data(), 1, bytes.size(), stdout);
      std::fflush(stdout);
      if (!client.has_frame()) break;
    }
    pollfd watched[2] = {
        {.fd = client.fd(),
         .events = static_cast<short>(POLLIN | (client.wants_write() ? POLLOUT : 0)),
         .revents = 0},
        {.fd = more_input ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
    ::poll(watched, 2, -1);
    if (watched[1].revents != 0) {
      char bytes[65536];
      const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (count > 0) client.queue_bytes({bytes, static_cast<std::size_t>(count)});
      more_input = count > 0;
    }
    if (auto sent = client.flush(); !sent) return complain(sent.error().what());
  }
}

int run(const Way& way) {
  const auto address = net::Address::parse(way.address);
  if (!address) return complain(address.error().what());
  auto client = net::Client::connect(*address, kPatience);
  if (!client) return complain(client.error().what());
  if (!address->is_unix()) {
    auto channel = channel_for(way);
    if (!channel) return complain(channel.error().what());
    client->secure(std::move(*channel));
    // An agent that refuses says so before there is anybody to hand over to.
    if (way.kind != "handover") {
      if (auto done = client->shake_hands(kPatience); !done) return complain(done.error().what());
    }
  }
  if (way.kind.starts_with("munge")) {
    auto hello = auth::make_hello("berth-probe", client->session()->binding(auth::kCallerPurpose));
    if (!hello) return complain(hello.error().what());
    if (way.kind == "munge") {
      client->queue(*hello);
    } else {
      std::ofstream(way.first, std::ios::binary) << wire::framed(*hello);
    }
  }
  fmt::print(stderr, "connected\n");
  return talk(*client);
}

}  // namespace

int main(int argc, char** argv) {
  const auto word = [&](int i) { return i < argc ? std::string(argv[i]) : std::string(); };
  if (argc < 2) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  return run({.address = word(1),
              .authority = argc > 2 ? contents(word(2)) : std::string(),
              .kind = word(3),
              .first = word(4),
              .second = word(5)});
}
