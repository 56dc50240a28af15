// What container.h promises.
#include "step/container.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cgroup/kernel.h"
#include "step/oom_score.h"
#include "step/spool.h"

namespace berth::step {
namespace {

bool write_to(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::optional<pid_t> pid_of(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid <= 0) return std::nullopt;
  return pid;
}

template <class Fn>
void each_process(Fn&& fn) {
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder)) {
    if (const auto pid = pid_of(entry->d_name)) fn(*pid);
  }
  ::closedir(folder);
}

struct Stat {
  char state = '?';
  pid_t parent = 0;
};
/// "pid (name) S ppid …": the name may hold anything, so the last ')' counts.
std::optional<Stat> stat_of(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  const std::size_t close = text->rfind(')');
  if (close == std::string::npos || close + 4 >= text->size()) return std::nullopt;
  Stat stat{.state = (*text)[close + 2]};
  const char* begin = text->data() + close + 4;
  std::from_chars(begin, text->data() + text->size(), stat.parent);
  return stat;
}

pid_t clone_into(int cgroup) {
  clone_args args{};
  args.flags = CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<std::uint64_t>(cgroup);
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}

/// The program of a process; "" when there is none (any more).
std::string program_of(const std::string& process) {
  char path[PATH_MAX];
  const ssize_t size = ::readlink(fmt::format("/proc/{}/exe", process).c_str(), path, sizeof path);
  return {path, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

/// Waits until each has a program, and so memory, of its own or is gone: the kernel says that a
/// child has left this memory a moment before it has. False when one takes too long.
bool have_left(std::span<const pid_t> children) {
  constexpr int kLooks = 10'000;
  const std::string own = program_of("self");
  int looks = 0;
  for (const pid_t pid : children) {
    while (pid > 0 && program_of(std::to_string(pid)) == own) {
      if (++looks > kLooks) return false;
      ::usleep(100);
    }
  }
  return true;
}

}  // namespace

std::vector<pid_t> members_of(const std::string& cgroup) {
  std::vector<pid_t> pids;
  const auto text = read_file(cgroup + "/cgroup.procs");
  if (!text) return pids;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto pid = pid_of(rest.substr(0, end))) pids.push_back(*pid);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return pids;
}

std::vector<pid_t> descendants_of(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  each_process([&](pid_t pid) {
    const auto stat = stat_of(pid);
    if (stat && stat->state != 'Z' && stat->state != 'X') children.emplace(stat->parent, pid);
  });
  std::vector<pid_t> found;
  std::vector<pid_t> look_at{ancestor};
  while (!look_at.empty()) {
    const pid_t parent = look_at.back();
    look_at.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto it = first; it != last; ++it) {
      found.push_back(it->second);
      look_at.push_back(it->second);
    }
  }
  return found;
}

std::vector<pid_t> processes_marked(const std::string& assignment) {
  std::vector<pid_t> found;
  const std::string middle = '\0' + assignment + '\0';
  each_process([&](pid_t pid) {
    const auto text = read_file("/proc/" + std::to_string(pid) + "/environ");
    if (!text || pid == ::getpid()) return;
    if (('\0' + *text).find(middle) != std::string::npos) found.push_back(pid);
  });
  return found;
}

std::vector<pid_t> processes_holding(const std::string& file, int descriptor) {
  std::vector<pid_t> found;
  std::array<char, PATH_MAX> whole{};
  if (::realpath(file.c_str(), whole.data()) == nullptr) return found;
  const std::string_view wanted = whole.data();
  each_process([&](pid_t pid) {
    // The link's text: to follow it could wait for a file server that is dead.
    const std::string link = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
    if (size > 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == wanted) {
      found.push_back(pid);
    }
  });
  return found;
}

bool is_stopped(pid_t pid) {
  const auto stat = stat_of(pid);
  return stat && (stat->state == 'T' || stat->state == 't');
}

std::string describe_process(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto stat = stat_of(pid);
  if (!stat) return std::to_string(pid);
  std::string name = read_file(folder + "/comm").value_or("?");
  // A user chooses it, and administrators read it.
  std::erase_if(name, [](char c) { return c < ' ' || c > '~'; });
  const std::string where = read_file(folder + "/wchan").value_or("");
  std::string text = std::to_string(pid) + ' ' + name + " (" + stat->state;
  if (!where.empty() && where != "0") text += ", in " + where;
  return text + ')';
}

bool enter_cgroup(const std::string& path) {
  return write_to(path + "/cgroup.procs", "0");
}

bool enter_v1_group(const std::string& path) {
  // By `tasks`, not `cgroup.procs`: for a thread that moves itself the kernel waits for nobody.
  return write_to(path + "/tasks", "0");
}

void kill_cgroup(const std::string& path) {
  if (write_to(path + "/cgroup.kill", "1")) return;
  for (const pid_t pid : members_of(path)) ::kill(pid, SIGKILL);
}

bool clear_cgroup(const std::string& path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return true;
  kill_cgroup(path);
  // Those of its tasks.
  for (const std::string& name : cgroup::this_kernel().directories(path)) {
    clear_cgroup(path + '/' + name);
  }
  return ::rmdir(path.c_str()) == 0 || errno == ENOENT;
}

Container::Container(std::string cgroup, std::vector<std::string> fences)
    : path_(std::move(cgroup)), fences_(std::move(fences)) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!path_.empty()) {
    folder_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder_) path_.clear();
  }
}

pid_t Container::start_outside(const std::function<void()>& child) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  child();
  ::_exit(127);
}

pid_t Container::start_beside(const std::function<void()>& child) {
  const pid_t pid = start_outside(child);
  if (pid > 0) beside_.push_back(pid);
  return pid;
}

pid_t Container::start(const std::function<void()>& child, const std::string& below) {
  if (below.empty()) return start_in(path_, folder_.get(), child);
  const Fd own(::open(below.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return own ? start_in(below, own.get(), child) : -1;
}

pid_t Container::start_in(const std::string& cgroup, int folder,
                          const std::function<void()>& child) const {
  if (folder < 0) return start_outside(child);
  const pid_t pid = clone_into(folder);
  if (pid == 0) {
    child();
    ::_exit(127);
  }
  if (pid > 0) return pid;
  // No clone3 here (seccomp, an old kernel): the child moves itself.
  return start_outside([&] {
    if (!enter_cgroup(cgroup)) ::_exit(127);
    child();
  });
}

std::vector<pid_t> Container::start_sharing(const std::vector<std::function<void()>>& children) {
  if (!stack_ && low_) stack_ = BorrowedStack::make();
  std::vector<pid_t> pids(children.size(), 0);
  if (stack_) {
    // The kernel gives processes that share their memory one score: what a child says of itself
    // would stay with this one, and what this one says afterwards would go to the child.
    StartsUnspared together;
    pids = stack_->start_all(folder_.get(), children);
    if (together.needed() && !have_left(pids)) together.stay();
  }
  for (std::size_t i = 0; i < pids.size(); ++i) {
    if (pids[i] == 0) pids[i] = start(children[i]);
  }
  if (low_) low_->release();
  return pids;
}

std::vector<pid_t> Container::pids() const {
  std::vector<pid_t> found = path_.empty() ? descendants_of(::getpid()) : members_of(path_);
  std::erase_if(found, [&](pid_t pid) { return std::ranges::find(beside_, pid) != beside_.end(); });
  for (const std::string& group : fences_) {
    for (const pid_t pid : members_of(group)) {
      if (std::ranges::find(found, pid) == found.end()) found.push_back(pid);
    }
  }
  return found;
}

void Container::signal(int number, const std::vector<pid_t>& first) const {
  for (const pid_t pid : first) ::kill(pid, number);
  for (const pid_t pid : pids()) {
    if (std::ranges::find(first, pid) == first.end()) ::kill(pid, number);
  }
}

void Container::kill() {
  if (!path_.empty() && write_to(path_ + "/cgroup.kill", "1")) {
    // Only root can have left the one and stayed in the other.
    for (const std::string& group : fences_) {
      for (const pid_t pid : members_of(group)) ::kill(pid, SIGKILL);
    }
    return;
  }
  // Stopped processes cannot make new ones while the rest is looked for.
  for (const pid_t pid : pids()) ::kill(pid, SIGSTOP);
  for (const pid_t pid : pids()) ::kill(pid, SIGKILL);
}

bool Container::remove() {
  std::erase_if(fences_, [](const std::string& group) {
    return ::rmdir(group.c_str()) == 0 || errno == ENOENT;
  });
  if (!fences_.empty()) return false;
  if (path_.empty()) return true;
  if (::rmdir(path_.c_str()) != 0 && errno != ENOENT) return false;
  path_.clear();
  folder_.reset();
  return true;
}

}  // namespace berth::step
