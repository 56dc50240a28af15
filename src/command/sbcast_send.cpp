#include "command/sbcast_send.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/fd.h"
#include "command/controller_client.h"
#include "launch/node_link.h"
#include "text/words.h"

namespace berth::command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::size_t kMostCopiesDialling = 64;
constexpr std::size_t kMostCopyBacklog = std::size_t{1} << 20;
/// AccessSpec of a whole job has no step.
constexpr std::uint32_t kNoStep = 0xfffffffe;

std::unexpected<Error> cannot_open(const std::string& path, int problem) {
  return fail(Code::io, fmt::format("Can't open `{}`: {}", path, std::strerror(problem)));
}

class Sending {
 public:
  Sending(const FileCopy& copy, Fd file, std::uint64_t size)
      : copy_(copy), file_(std::move(file)), size_(size) {}
  void add(std::string node, launch::NodeLink link) {
    targets_.push_back({std::move(node), std::move(link)});
  }

  Result<void> run() {
    const seconds patience = copy_.patience.value_or(seconds(60));
    auto progress = steady_clock::now();
    while (std::ranges::any_of(targets_, [](const Target& t) { return !t.link.closed(); })) {
      dial_some();
      std::vector<pollfd> polled;
      for (Target& target : targets_) {
        feed(target);
        polled.push_back({target.link.fd(), target.link.events(), 0});
      }
      const int ready = ::poll(polled.data(), polled.size(), 100);
      if (ready > 0) progress = steady_clock::now();
      if (steady_clock::now() - progress > patience) {
        for (Target& target : targets_) {
          if (!target.link.closed()) give_up(target, "no answer");
        }
        break;
      }
      for (std::size_t i = 0; i < targets_.size(); ++i) {
        if (polled[i].fd >= 0 && polled[i].revents != 0) serve(targets_[i], polled[i].revents);
      }
    }
    if (problem_.messages.empty()) return {};
    return std::unexpected(std::move(problem_));
  }

 private:
  struct Target {
    std::string node;
    launch::NodeLink link;
    std::uint64_t sent = 0;
    bool ended = false;
  };

  void dial_some() {
    std::size_t open = 0;
    for (const Target& target : targets_) {
      if (target.link.dialled() && !target.link.closed()) ++open;
    }
    for (Target& target : targets_) {
      if (open >= kMostCopiesDialling) return;
      if (target.link.dialled()) continue;
      if (auto begun = target.link.dial(); !begun) {
        give_up(target, std::string(begun.error().what()));
        continue;
      }
      if (!target.link.dialled()) return;  // the agent is busy: again in a moment
      ++open;
    }
  }

  void feed(Target& target) {
    if (target.ended || !target.link.open()) return;
    std::string buffer(copy_.block, '\0');
    while (!target.ended && target.link.backlog() < kMostCopyBacklog) {
      const ssize_t n =
          ::pread(file_.get(), buffer.data(), buffer.size(), static_cast<off_t>(target.sent));
      if (n < 0) return give_up(target, std::strerror(errno));
      wire::FileBlock block;
      block.set_data(buffer.data(), static_cast<std::size_t>(n));
      target.sent += static_cast<std::uint64_t>(n);
      target.ended = n == 0 || target.sent >= size_;
      block.set_end(target.ended);
      target.link.send(block);
    }
  }

  void serve(Target& target, short events) {
    if (target.link.closed()) return;
    const auto done = target.link.ready(events);
    if (done && (events & (POLLIN | POLLHUP | POLLERR)) == 0) return;
    // A node that refuses before it has read everything has said why.
    auto frame = target.link.next();
    if (!done && (!frame || !*frame)) return lost(target, done.error());
    if (!frame) return lost(target, frame.error());
    if (!*frame) return;
    const auto answer = net::Client::reply_in<wire::Done>(**frame);
    if (!answer) return give_up(target, std::string(answer.error().what()));
    target.link.close();
  }

  /// Without a word from the node.
  void lost(Target& target, const Error& why) {
    const bool there = target.link.open();
    give_up(target, std::string(why.what()));
    if (!there) return;
    problem_.hint =
        "its receiver was ended there, with its job or since the memory of the job (--mem) was "
        "used "
        "up, or the network broke";
  }

  void give_up(Target& target, std::string why) {
    target.link.close();
    problem_.code = Code::io;
    problem_.messages.push_back(
        {Severity::error, fmt::format("REQUEST_FILE_BCAST({}): {}", target.node, std::move(why))});
  }

  const FileCopy& copy_;
  Fd file_;
  std::uint64_t size_;
  std::vector<Target> targets_;
  Error problem_;
};

}  // namespace

Result<void> send_file(const FileCopy& copy, const request::Environment& environment,
                       std::string_view program) {
  Fd file(::open(copy.source.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return cannot_open(copy.source, errno);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return cannot_open(copy.source, errno);
  if (!S_ISREG(status.st_mode))
    return cannot_open(copy.source, S_ISDIR(status.st_mode) ? EISDIR : EINVAL);

  wire::GetAccess ask;
  ask.set_job_id(copy.job_id);
  ask.set_step_id(copy.step_id.value_or(kNoStep));
  ask.set_purpose("file");
  const auto access = ask_controller<wire::AccessGrant>(environment, program, ask);
  if (!access) return pass(access.error());

  wire::PutFile put;
  put.set_path(copy.destination);
  put.set_mode(status.st_mode & 07777);
  put.set_force(copy.force);
  put.set_size(static_cast<std::uint64_t>(status.st_size));
  if (copy.preserve) {
    put.set_modified(status.st_mtim.tv_sec);
    put.set_accessed(status.st_atim.tv_sec);
  }
  Sending sending(copy, std::move(file), static_cast<std::uint64_t>(status.st_size));
  for (int i = 0; i < access->tickets_size() && i < access->addresses_size(); ++i) {
    *put.mutable_ticket() = launch::shown(access->tickets(i));
    sending.add(access->tickets(i).node(),
                launch::NodeLink({.nodes = {0, 1},
                                  .address = net::Address::from(access->addresses(i)),
                                  .request = wire::framed(put),
                                  .session = launch::session_of(access->tickets(i))}));
  }
  return sending.run();
}

std::string find_program(const std::string& name, const request::Environment& environment) {
  if (name.find('/') != std::string::npos) return name;
  const auto path = environment.find("PATH");
  if (path == environment.end()) return name;
  for (const std::string_view directory : text::split(path->second, ':')) {
    std::string candidate = fmt::format("{}/{}", directory.empty() ? "." : directory, name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return name;
}

}  // namespace berth::command
