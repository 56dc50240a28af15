#include "command/up_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>

#include "base/fd.h"
#include "base/process.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::command {
namespace {

std::string link_of(const std::string& path) {
  std::string target(PATH_MAX, '\0');
  const ssize_t n = ::readlink(path.c_str(), target.data(), target.size());
  target.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return target;
}

/// A file of /proc, whose size is not known beforehand.
std::string contents(const std::string& path, std::size_t most) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::string piece(65536, '\0');
  while (file && text.size() < most) {
    const ssize_t n = ::read(file.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(piece, 0, static_cast<std::size_t>(n));
  }
  return text;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("SLURM_") || text.starts_with("BERTH_CLUSTER=")) continue;
    out.emplace_back(text);
  }
  return out;
}

/// Whether the environment (of /proc) has an entry for which `matches` holds.
template <class Matches>
bool any_variable(std::string_view environment, Matches matches) {
  for (std::size_t at = 0; at < environment.size();) {
    const std::size_t end = std::min(environment.find('\0', at), environment.size());
    if (matches(environment.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

/// Whether a process has a file open whose path begins so: a supervisor keeps its step's lock.
bool holds_file_in(const std::string& folder, const std::string& start) {
  constexpr int kFirst = 3;
  constexpr int kLast = 31;
  for (int fd = kFirst; fd <= kLast; ++fd) {
    if (link_of(fmt::format("{}/fd/{}", folder, fd)).starts_with(start)) return true;
  }
  return false;
}

}  // namespace

Result<std::string> program_beside(std::string_view name) {
  const std::string self = link_of("/proc/self/exe");
  std::string path = fmt::format("{}/{}", self.substr(0, self.rfind('/')), name);
  if (::access(path.c_str(), X_OK) == 0) return path;
  return fail(Code::io, fmt::format("cannot run {}: {}", path, std::strerror(errno)),
              "berth, berthctld, berthd and berth-stepd belong in one directory");
}

Result<pid_t> start_daemon(const std::vector<std::string>& words, const std::string& log) {
  std::vector<std::string> arguments = words;
  std::vector<std::string> environment = own_environment();
  const std::vector<char*> argv = pointers_to(arguments);
  const std::vector<char*> envp = pointers_to(environment);
  const Fd output(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!output) {
    return fail(Code::io, fmt::format("cannot write {}: {}", log, std::strerror(errno)));
  }
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const pid_t child = ::fork();
  if (child < 0) return fail(Code::io, fmt::format("cannot fork: {}", std::strerror(errno)));
  if (child > 0) return child;
  // In the child: system calls only.
  ::setsid();
  ::umask(022);
  if (::chdir("/") != 0) ::_exit(126);
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(output.get(), STDOUT_FILENO);
  ::dup2(output.get(), STDERR_FILENO);
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

std::optional<int> ended(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) == child) return status;
  return std::nullopt;
}

std::vector<std::string> tail(const std::string& path, std::size_t lines) {
  constexpr off_t kMost = 65536;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  ::lseek(file.get(), std::max<off_t>(0, size - kMost), SEEK_SET);
  std::string text(static_cast<std::size_t>(kMost), '\0');
  const ssize_t n = ::read(file.get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  std::deque<std::string> last;
  for (const std::string_view line : text::split(text, '\n')) {
    if (line.empty()) continue;
    last.emplace_back(line);
    if (last.size() > lines) last.pop_front();
  }
  return {last.begin(), last.end()};
}

bool wait_until(std::chrono::milliseconds longest, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + longest;
  auto pause = std::chrono::milliseconds(5);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(200));
  }
  return true;
}

bool alive(pid_t pid) {
  (void)ended(pid);  // a child of ours that ended is not alive
  if (::kill(pid, 0) != 0 && errno == ESRCH) return false;
  const std::string status = contents(fmt::format("/proc/{}/stat", pid), 4096);
  const std::size_t name_end = status.rfind(')');
  return name_end != std::string::npos && name_end + 2 < status.size() &&
         status[name_end + 2] != 'Z' && status[name_end + 2] != 'X';
}

bool end_process(pid_t pid, std::chrono::milliseconds patience) {
  if (::kill(pid, SIGTERM) != 0 && errno == ESRCH) return true;
  if (wait_until(patience, [&] { return !alive(pid); })) return true;
  ::kill(pid, SIGKILL);
  return wait_until(std::chrono::seconds(5), [&] { return !alive(pid); });
}

std::vector<pid_t> left_processes(const std::string& spool, const std::string& conf) {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return out;
  const std::string conf_entry = "SLURM_CONF=" + conf;
  const std::string self = link_of("/proc/self/exe");
  const std::string program = self.substr(0, self.rfind('/') + 1) + "berth-stepd";
  while (const dirent* entry = ::readdir(proc.get())) {
    const auto pid = text::parse_number(entry->d_name, INT_MAX);
    if (!pid || static_cast<pid_t>(*pid) == ::getpid()) continue;
    const std::string folder = fmt::format("/proc/{}", *pid);
    const bool supervisor =
        link_of(folder + "/exe").starts_with(program) && holds_file_in(folder, spool + "/");
    bool task = false;
    if (!supervisor) {
      const std::string environment = contents(folder + "/environ", std::size_t{4} << 20);
      task = any_variable(environment, [&](std::string_view e) { return e == conf_entry; }) &&
             any_variable(environment,
                          [](std::string_view e) { return e.starts_with("SLURMD_NODENAME="); });
    }
    if ((supervisor || task) && alive(static_cast<pid_t>(*pid))) {
      out.push_back(static_cast<pid_t>(*pid));
    }
  }
  return out;
}

}  // namespace berth::command
