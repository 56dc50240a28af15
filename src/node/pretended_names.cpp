// What pretended_names.h promises.
#include "node/pretended_names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "step/spool.h"

namespace berth::node {
namespace {

bool put(const char* path, const char* text) {
  const Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
  return fd && step::write_all(fd.get(), text);
}

/// The child that makes the namespaces: nothing but system calls, as the agent may have threads.
/// What it says is the error, 0 = done.
int make_namespaces(const char* file, const char* uids, const char* gids, bool as_root) {
  if (::unshare(CLONE_NEWNS | (as_root ? 0 : CLONE_NEWUSER)) != 0) return errno;
  if (!as_root && (!put("/proc/self/setgroups", "deny") || !put("/proc/self/uid_map", uids) ||
                   !put("/proc/self/gid_map", gids))) {
    return errno;
  }
  // What is mounted later on the machine is seen here too, and nothing the other way.
  if (::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return errno;
  return ::mount(file, "/etc/hosts", nullptr, MS_BIND, nullptr) == 0 ? 0 : errno;
}

Fd namespace_of(pid_t pid, const char* which) {
  return Fd(::open(fmt::format("/proc/{}/ns/{}", pid, which).c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

std::string pretended_address(std::size_t index) {
  constexpr std::size_t kInOne = 254;  // .1 to .254
  return fmt::format("127.{}.{}.{}", 77 + index / (kInOne * 256), index / kInOne % 256,
                     index % kInOne + 1);
}

std::string hosts_text(const std::string& machine, const std::vector<std::string>& nodes) {
  std::string out = machine;
  if (!out.empty() && !out.ends_with('\n')) out += '\n';
  out += "# nodes that berth pretends\n";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    out += fmt::format("{} {}\n", pretended_address(i), nodes[i]);
  }
  return out;
}

bool PretendedNames::write(const std::string& file, const std::vector<std::string>& nodes) {
  // Into the file that is mounted, not beside it. One line more or less may be read half: names of
  // nodes that run jobs stay where they are.
  const std::string text = hosts_text(step::read_file("/etc/hosts").value_or(""), nodes);
  if (step::read_file(file) == text) return true;
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  return fd && step::write_all(fd.get(), text) &&
         ::ftruncate(fd.get(), static_cast<off_t>(text.size())) == 0 &&
         ::fchmod(fd.get(), 0644) == 0;
}

PretendedNames PretendedNames::make(const std::string& file, std::string& why_not) {
  PretendedNames out;
  const bool as_root = ::geteuid() == 0;
  const std::string uids = fmt::format("{0} {0} 1", ::geteuid());
  const std::string gids = fmt::format("{0} {0} 1", ::getegid());
  int ready[2] = {-1, -1};
  int seen[2] = {-1, -1};
  if (::pipe2(ready, O_CLOEXEC) != 0 || ::pipe2(seen, O_CLOEXEC) != 0) {
    why_not = std::strerror(errno);
    return out;
  }
  const Fd ready_in(ready[0]);
  Fd ready_out(ready[1]);
  const Fd seen_in(seen[0]);
  Fd seen_out(seen[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    seen_out.reset();
    const int said = make_namespaces(file.c_str(), uids.c_str(), gids.c_str(), as_root);
    char end = 0;
    if (::write(ready_out.get(), &said, sizeof said) == sizeof said) {
      static_cast<void>(::read(seen_in.get(), &end, 1));  // until they are held
    }
    ::_exit(0);
  }
  ready_out.reset();
  int said = errno;
  if (pid > 0) {
    if (::read(ready_in.get(), &said, sizeof said) != sizeof said) said = EIO;
    if (said == 0) {
      out.mounts_ = namespace_of(pid, "mnt");
      if (!as_root) out.users_ = namespace_of(pid, "user");
      if (!out.mounts_ || (!as_root && !out.users_)) said = errno;
    }
    seen_out.reset();
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (said != 0) {
    why_not = std::strerror(said);
    out = PretendedNames();
  }
  return out;
}

}  // namespace berth::node
