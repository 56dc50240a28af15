// What receive_file.h promises.
#include "step/receive_file.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/boot_clock.h"
#include "base/result.h"
#include "step/container.h"
#include "step/identity.h"
#include "step/lease_file.h"
#include "step/new_file.h"
#include "step/oom_score.h"
#include "step/spool.h"
#include "wire/refusal.h"

namespace berth::step {
namespace {

/// Of silence; a client that is alive sends or is gone.
constexpr int kPatienceMs = 300'000;
/// For a client to take its refusal.
constexpr std::chrono::seconds kReadPatience{5};
constexpr int kReadPatienceMs = 5000;
/// Written at once; between two of these it is asked whether the file is still wanted. The kernel
/// lets who writes more than a disk can take wait again and again.
constexpr std::size_t kWrittenAtOnce = std::size_t{128} << 10;
/// When the memory of the job is used up: a copy can be made again, a task cannot.
constexpr int kKilledFirst = 1000;

/// The client, and those who may not want the file any more.
class Receiving {
 public:
  Receiving(const wire::SuperviseFile& given, Peer& agent, Peer client)
      : given_(given), agent_(agent), client_(std::move(client)) {
    if (given_.lease_seconds() > 0) lease_.emplace().set(began_);  // looked at first of all
  }

  Result<void> receive();
  void answer(const Error* error);

 private:
  void let_it_read();
  [[nodiscard]] std::unexpected<Error> trouble(int why) const {
    return fail(Code::io, fmt::format("{}: {}", given_.file().path(), std::strerror(why)));
  }
  Result<void> listen_to_agent();
  Result<void> watch_lease();
  /// Until the client is ready for one of `events`, for so long at most. An error: it is over.
  Result<void> wait(short events, int patience_ms);
  Result<wire::FileBlock> next_block();
  Result<void> write(int fd, std::string_view bytes);

  const wire::SuperviseFile& given_;
  Peer& agent_;
  Peer client_;
  const BootTime began_ = boot_now();
  std::optional<BootAlarm> lease_;
  std::optional<NewFile> file_;
};

Result<void> Receiving::listen_to_agent() {
  const bool there = agent_.read();
  if (const auto frame = agent_.next(); frame && frame->kind == wire::Kind::SuperviseEnd) {
    return fail(Code::job_completed, std::string(slurm_text(Code::job_completed)));
  }
  if (there && agent_.open()) return {};
  return fail(Code::no_connection, "the agent of the node was stopped");
}

Result<void> Receiving::watch_lease() {
  lease_->seen();
  const auto next = look_at_lease(read_lease_file(lease_file_of(given_.record())), began_,
                                  std::chrono::seconds(given_.lease_seconds()), boot_now());
  if (!next) {
    return fail(Code::job_completed, "the node has lost its controller, and its jobs are ended");
  }
  lease_->set(*next);
  return {};
}

Result<void> Receiving::wait(short events, int patience_ms) {
  for (;;) {
    pollfd polled[3] = {{.fd = client_.fd(), .events = events, .revents = 0},
                        {.fd = agent_.fd(), .events = POLLIN, .revents = 0},
                        {.fd = lease_ ? lease_->fd() : -1, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(polled, std::size(polled), patience_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return trouble(errno);
    if (ready == 0 && patience_ms > 0) {
      return fail(Code::timed_out, fmt::format("nothing came for {} s", patience_ms / 1000));
    }
    if (polled[1].revents != 0) {
      if (auto wanted = listen_to_agent(); !wanted) return wanted;
    }
    if (polled[2].revents != 0) {
      if (auto wanted = watch_lease(); !wanted) return wanted;
    }
    if (patience_ms == 0 || polled[0].revents != 0) return {};
  }
}

Result<wire::FileBlock> Receiving::next_block() {
  for (;;) {
    if (const auto frame = client_.next()) {
      auto block = frame->kind == wire::Kind::FileBlock
                       ? wire::decode<wire::FileBlock>(frame->payload)
                       : std::nullopt;
      if (block) return std::move(*block);
      return fail(Code::protocol, std::string(slurm_text(Code::protocol)));
    }
    if (client_.open()) {
      if (auto ready = wait(POLLIN, kPatienceMs); !ready) return pass(std::move(ready.error()));
    }
    if (!client_.open() || !client_.read()) {
      return fail(Code::no_connection,
                  fmt::format("{}: the sender went away", given_.file().path()));
    }
  }
}

Result<void> Receiving::write(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kWrittenAtOnce);
    if (!write_all(fd, piece)) return trouble(errno);
    bytes.remove_prefix(piece.size());
    if (auto wanted = wait(0, 0); !wanted) return wanted;
  }
  return {};
}

Result<void> Receiving::receive() {
  const wire::PutFile& order = given_.file();
  if (order.compressed()) return fail(Code::unsupported, "compressed files are not supported");
  if (auto wanted = wait(0, 0); !wanted) return wanted;
  auto opened = NewFile::open(order.path(), order.force());
  if (!opened) return pass(std::move(opened.error()));
  const NewFile& file = file_.emplace(std::move(*opened));
  for (bool more = true; more;) {
    const auto block = next_block();
    if (!block) return pass(block.error());
    if (auto written = write(file.fd(), block->data()); !written) return written;
    more = !block->end();
  }
  if (::fchmod(file.fd(), order.mode() & 07777) != 0) return trouble(errno);
  if (order.modified() != 0) {
    const timespec times[2] = {{.tv_sec = order.accessed(), .tv_nsec = 0},
                               {.tv_sec = order.modified(), .tv_nsec = 0}};
    ::futimens(file.fd(), times);
  }
  return file_->finish();
}

void Receiving::answer(const Error* error) {
  wire::Done done;
  if (error != nullptr) *done.mutable_refusal() = wire::to_refusal(*error);
  client_.send(done);
  while (client_.backlog() > 0 && client_.flush() && client_.backlog() > 0) {
    if (!wait(client_.proven() ? POLLOUT : POLLIN, kPatienceMs)) return;
    if (!client_.proven() && !client_.read()) return;
  }
  // To take back what was written may last: the client need not wait for that.
  file_.reset();
  if (error != nullptr) let_it_read();
}

/// What it has sent and nobody has read would break a connection over TCP before it reads why.
void Receiving::let_it_read() {
  ::shutdown(client_.fd(), SHUT_WR);
  const auto limit = boot_now() + kReadPatience;
  while (client_.open() && boot_now() < limit && wait(POLLIN, kReadPatienceMs) && client_.read()) {
    while (client_.next()) {
    }
  }
}

Result<void> enter_groups(const wire::SuperviseFile& given) {
  const auto trouble = [](const std::string& group) {
    return fail(Code::io, fmt::format("{}: {}", group, std::strerror(errno)));
  };
  if (!given.cgroup().empty() && !enter_cgroup(given.cgroup())) return trouble(given.cgroup());
  for (const std::string& group : given.join()) {
    if (!enter_v1_group(group)) return trouble(group);
  }
  return {};
}

/// From here on all that this process does is done in the job, as its user.
Result<void> become_of_job(const wire::SuperviseFile& given) {
  const auto spec = wire::decode<wire::AccessSpec>(given.file().ticket().spec());
  if (!spec) return fail(Code::no_credential, "Invalid job credential");
  if (auto entered = enter_groups(given); !entered) return entered;
  set_oom_score(kKilledFirst);
  Identity who{.uid = spec->uid(), .gid = spec->gid(), .groups = {}};
  who.groups.assign(spec->groups().begin(), spec->groups().end());
  if (who.groups.empty()) who.groups.push_back(who.gid);
  if (!who.become()) return fail(Code::io, fmt::format("cannot become user {}", who.uid));
  // For one that hangs in a file system when its agent dies; who hangs nowhere sees it by the
  // connection, also when it has died before this.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return {};
}

}  // namespace

int receive_file(const wire::SuperviseFile& given, Peer& agent, int client_fd) {
  ::signal(SIGPIPE, SIG_IGN);
  Result<void> done = become_of_job(given);
  Receiving receiving(given, agent, Peer::handed_on(Fd(client_fd), given));
  if (done) done = receiving.receive();
  receiving.answer(done ? nullptr : &done.error());
  return done ? 0 : 1;
}

}  // namespace berth::step
