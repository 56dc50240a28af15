// What shared_start.h promises.
#include "step/shared_start.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace berth::step {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kChecksStacks = true;
#elif defined(__has_feature)
constexpr bool kChecksStacks = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kChecksStacks = false;
#endif
#if defined(__x86_64__)
constexpr bool kPossible = !kChecksStacks;
#else
constexpr bool kPossible = false;
#endif

constexpr std::size_t kStack = 256 * 1024;
constexpr std::size_t kGuard = 4096;

/// A process that starts others costs about as much as half a task.
constexpr std::size_t kMostStarters = 4;
constexpr std::size_t kFewestOfAStarter = 12;

[[noreturn]] void enter(const std::function<void()>* child) {
  (*child)();
  ::_exit(127);
}

/// clone3 for a child that begins in enter(): the C library's syscall() would return twice on two
/// stacks, and it has no clone3 of its own.
long clone_to(const clone_args& args, const std::function<void()>& child) {
#if defined(__x86_64__)
  long result = SYS_clone3;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %[child], %%rdi\n\t"
      "call *%[entry]\n\t"
      "ud2\n"
      "1:"
      : "+a"(result)
      : "D"(&args), "S"(sizeof args), [entry] "r"(&enter), [child] "r"(&child)
      : "rcx", "r11", "memory", "cc");
  return result;
#else
  static_cast<void>(args);
  static_cast<void>(child);
  return -ENOSYS;
#endif
}

/// A system call that leaves errno alone: it is the child's too.
long call(long number, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d = 0) {
#if defined(__x86_64__)
  long result = number;
  register std::uint64_t fourth asm("r10") = d;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(fourth)
               : "rcx", "r11", "memory");
  return result;
#else
  static_cast<void>(number);
  static_cast<void>(a);
  static_cast<void>(b);
  static_cast<void>(c);
  static_cast<void>(d);
  return -ENOSYS;
#endif
}

std::uint64_t address_of(const void* at) {
  return reinterpret_cast<std::uint64_t>(at);
}

/// Whether a signal or a tracer holds the process. Without the heap: it is the child's too.
bool is_held(pid_t pid) {
  constexpr std::string_view kBegin = "/proc/";
  constexpr std::string_view kEnd = "/stat";
  std::array<char, 64> path{};
  char* at = std::copy(kBegin.begin(), kBegin.end(), path.data());
  at = std::to_chars(at, path.data() + path.size(), pid).ptr;
  std::copy(kEnd.begin(), kEnd.end(), at);
  const long fd = call(SYS_open, address_of(path.data()), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  std::array<char, 512> text{};
  const long size =
      call(SYS_read, static_cast<std::uint64_t>(fd), address_of(text.data()), text.size());
  call(SYS_close, static_cast<std::uint64_t>(fd), 0, 0);
  const std::string_view stat(text.data(), static_cast<std::size_t>(std::max(size, 0L)));
  const std::size_t close = stat.rfind(')');
  if (close == std::string_view::npos || close + 2 >= stat.size()) return false;
  return stat[close + 2] == 'T' || stat[close + 2] == 't';
}

}  // namespace

std::unique_ptr<BorrowedStack> BorrowedStack::make() {
  if (!kPossible) return nullptr;
  void* memory = ::mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ::mprotect(memory, kGuard, PROT_NONE);
  return std::unique_ptr<BorrowedStack>(new BorrowedStack(memory));
}

BorrowedStack::~BorrowedStack() {
  ::munmap(memory_, kStack);
}

pid_t BorrowedStack::start(int cgroup, const std::function<void()>& child, Of of) {
  clone_args args{};
  args.flags =
      CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID | (cgroup >= 0 ? CLONE_INTO_CGROUP : 0);
  args.child_tid = address_of(&busy_);
  if (of == Of::parent_of_caller) {
    args.flags |= CLONE_PARENT;  // with the signal that this process has for its own end
  } else {
    args.exit_signal = SIGCHLD;
  }
  args.stack = reinterpret_cast<std::uint64_t>(memory_);
  args.stack_size = kStack;
  if (cgroup >= 0) args.cgroup = static_cast<std::uint64_t>(cgroup);
  busy_ = 1;
  const long result = clone_to(args, child);
  if (result >= 0) {
    await(static_cast<pid_t>(result));
    return static_cast<pid_t>(result);
  }
  errno = static_cast<int>(-result);
  return -1;
}

/// Not CLONE_VFORK, whose wait nothing but the child's end or program can break: a child that its
/// user has stopped would stop this process with it.
void BorrowedStack::await(pid_t child) const {
  bool was_stopped = false;
  while (busy_.load(std::memory_order_acquire) != 0) {
    constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 200'000'000};
    if (call(SYS_futex, address_of(&busy_), FUTEX_WAIT, 1, address_of(&kLook)) != -ETIMEDOUT) {
      continue;
    }
    // Twice in a row: one that is only looked at by a tracer goes on.
    const bool stopped = is_held(child);
    if (stopped && was_stopped) call(SYS_kill, static_cast<std::uint64_t>(child), SIGKILL, 0);
    was_stopped = stopped;
  }
}

std::vector<pid_t> BorrowedStack::start_all(int cgroup,
                                            std::span<const std::function<void()>> children) {
  std::vector<pid_t> pids(children.size(), 0);
  const std::size_t starters = std::min(kMostStarters, children.size() / kFewestOfAStarter);
  void* const memory = starters < 2
                           ? MAP_FAILED
                           : ::mmap(nullptr, pids.size() * sizeof(pid_t), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    for (std::size_t i = 0; i < pids.size(); ++i) {
      pids[i] = std::max(start(cgroup, children[i]), 0);
    }
    return pids;
  }
  auto* const started = static_cast<pid_t*>(memory);
  const auto start_share = [&](std::size_t worker, Of of) {
    for (std::size_t i = worker; i < pids.size(); i += starters) {
      started[i] = std::max(start(cgroup, children[i], of), 0);
    }
  };
  // The first share is this process's own.
  std::vector<pid_t> workers(starters, -1);
  for (std::size_t worker = 1; worker < starters; ++worker) {
    workers[worker] = ::fork();
    if (workers[worker] != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    start_share(worker, Of::parent_of_caller);
    ::_exit(0);
  }
  start_share(0, Of::caller);
  for (std::size_t worker = 0; worker < starters; ++worker) {
    int status = 0;
    while (workers[worker] > 0 && ::waitpid(workers[worker], &status, 0) < 0 && errno == EINTR) {
    }
    // One that was killed may have started what it has not written down.
    for (std::size_t i = worker; i < pids.size(); i += starters) {
      pids[i] = started[i] == 0 && status != 0 ? -1 : started[i];
    }
  }
  ::munmap(memory, pids.size() * sizeof(pid_t));
  return pids;
}

}  // namespace berth::step
