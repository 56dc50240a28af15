#include "device/helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/process.h"
#include "text/shown.h"

namespace berth::device {
namespace {

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(Code::io, fmt::format("pipe: {}", std::strerror(errno)));
  }
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<pid_t> start(const std::vector<std::string>& words, int output, int errors) {
  std::vector<std::string> own = words;
  const std::vector<char*> argv = pointers_to(own);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  // A signal that this program ignores or blocks is none of the other's business.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  sigset_t usual;
  sigfillset(&usual);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    return fail(Code::io, fmt::format("cannot run {}: {}", words[0], std::strerror(failed)));
  }
  return child;
}

/// Reads both ends until they are closed; false when time or room is up.
bool read_all(std::array<pollfd, 2> ends, std::array<std::string*, 2> into, std::size_t most,
              std::chrono::steady_clock::time_point end) {
  std::array<char, 65536> piece;
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    const int ready = ::poll(ends.data(), ends.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    for (std::size_t i = 0; ready > 0 && i < ends.size(); ++i) {
      if (ends[i].revents == 0) continue;
      const ssize_t n = ::read(ends[i].fd, piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        ends[i].fd = -1;
        continue;
      }
      into[i]->append(piece.data(), static_cast<std::size_t>(n));
      if (into[i]->size() > most) return false;
    }
  }
  return true;
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& words, std::size_t most_bytes,
                              std::chrono::milliseconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  auto out = make_pipe();
  if (!out) return pass(std::move(out.error()));
  auto errors = make_pipe();
  if (!errors) return pass(std::move(errors.error()));
  const auto child = start(words, out->write.get(), errors->write.get());
  if (!child) return pass(child.error());
  out->write = Fd();
  errors->write = Fd();
  std::string text;
  std::string said;
  const bool whole =
      read_all({pollfd{out->read.get(), POLLIN, 0}, pollfd{errors->read.get(), POLLIN, 0}},
               {&text, &said}, most_bytes, end);
  if (!whole) ::kill(*child, SIGKILL);
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole) {
    return fail(Code::timed_out,
                fmt::format("{} did not end within {} s, or printed more than {} bytes", words[0],
                            within.count() / 1000, most_bytes));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  const std::string first = said.substr(0, said.find('\n'));
  if (!first.empty()) return fail(Code::io, text::shown(first));
  return fail(Code::io, fmt::format("{} ended with status {}", words[0], status));
}

}  // namespace berth::device
