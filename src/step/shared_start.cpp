// What shared_start.h promises.
#include "step/shared_start.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace berth::step {
namespace {

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kPossible = true;
#else
constexpr bool kPossible = false;
#endif

constexpr std::size_t kStack = 256 * 1024;
constexpr std::size_t kGuard = 4096;

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

pid_t BorrowedStack::start(int cgroup, const std::function<void()>& child) {
  clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK | (cgroup >= 0 ? CLONE_INTO_CGROUP : 0);
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<std::uint64_t>(memory_);
  args.stack_size = kStack;
  if (cgroup >= 0) args.cgroup = static_cast<std::uint64_t>(cgroup);
  const long result = clone_to(args, child);
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace berth::step
