// What receive_file.h promises.
#include "step/receive_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/result.h"
#include "step/identity.h"
#include "step/spool.h"
#include "wire/refusal.h"

namespace berth::step {
namespace {

/// Of silence; a client that is alive sends or is gone.
constexpr int kPatienceMs = 300'000;

std::optional<wire::Frame> next_frame(Peer& peer) {
  for (;;) {
    if (auto frame = peer.next()) return frame;
    if (!peer.open()) return std::nullopt;
    pollfd waiting{.fd = peer.fd(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || !peer.read()) return std::nullopt;
  }
}

void answer(Peer& client, const Error* error) {
  wire::Done done;
  if (error != nullptr) *done.mutable_refusal() = wire::to_refusal(*error);
  client.send(done);
  while (client.backlog() > 0 && client.flush()) {
    const auto events = static_cast<short>(client.proven() ? POLLOUT : POLLIN);
    pollfd waiting{.fd = client.fd(), .events = events, .revents = 0};
    if (client.backlog() > 0 && ::poll(&waiting, 1, kPatienceMs) <= 0) return;
    if (!client.proven() && !client.read()) return;
  }
}

Result<void> receive(const wire::PutFile& order, Peer& client) {
  const auto trouble = [&](int why) {
    return fail(Code::io, fmt::format("{}: {}", order.path(), std::strerror(why)));
  };
  const int flags =
      O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (order.force() ? O_TRUNC : O_EXCL);
  const Fd file(::open(order.path().c_str(), flags, 0600));
  if (!file) return trouble(errno);
  for (;;) {
    const auto frame = next_frame(client);
    const auto block = frame && frame->kind == wire::Kind::FileBlock
                           ? wire::decode<wire::FileBlock>(frame->payload)
                           : std::nullopt;
    if (!block) {
      ::unlink(order.path().c_str());
      return fail(Code::no_connection, fmt::format("{}: the sender went away", order.path()));
    }
    if (!write_all(file.get(), block->data())) {
      const int why = errno;
      ::unlink(order.path().c_str());
      return trouble(why);
    }
    if (block->end()) break;
  }
  if (::fchmod(file.get(), order.mode() & 07777) != 0) return trouble(errno);
  if (order.modified() != 0) {
    const timespec times[2] = {{.tv_sec = order.accessed(), .tv_nsec = 0},
                               {.tv_sec = order.modified(), .tv_nsec = 0}};
    ::futimens(file.get(), times);
  }
  return {};
}

}  // namespace

int receive_file(const wire::SuperviseFile& given, int client_fd) {
  const wire::PutFile& order = given.file();
  Peer client = Peer::handed_on(Fd(client_fd), given);
  const auto spec = wire::decode<wire::AccessSpec>(order.ticket().spec());
  if (!spec) return 1;
  Identity who{.uid = spec->uid(), .gid = spec->gid(), .groups = {}};
  who.groups.assign(spec->groups().begin(), spec->groups().end());
  if (who.groups.empty()) who.groups.push_back(who.gid);
  Result<void> done;
  if (!who.become()) {
    done = fail(Code::io, fmt::format("cannot become user {}", who.uid));
  } else if (order.compressed()) {
    done = fail(Code::unsupported, "compressed files are not supported");
  } else {
    done = receive(order, client);
  }
  answer(client, done ? nullptr : &done.error());
  return done ? 0 : 1;
}

}  // namespace berth::step
