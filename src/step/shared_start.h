// A new process that shares this one's memory until it runs its program, while this one waits: a
// task costs no copy of the supervisor's page tables and no fault for each page that either of them
// writes to. As vfork(2), but born into a cgroup, with a stack of its own, with this process's
// table of descriptors until it takes another (descriptor_table.h), and with a look at the child
// now and then: it belongs to the user before it runs his program, and he could stop it for ever.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace berth::step {

class BorrowedStack {
 public:
  /// None where a process cannot be made like this: another kind of machine, or a build whose
  /// checks of memory know nothing of such stacks.
  static std::unique_ptr<BorrowedStack> make();
  BorrowedStack(const BorrowedStack&) = delete;
  BorrowedStack& operator=(const BorrowedStack&) = delete;
  ~BorrowedStack();

  /// Whose child it becomes.
  enum class Of { caller, parent_of_caller };
  /// `cgroup`: a descriptor, -1 = this process's own. `child` must end with execve or _exit: what
  /// it holds by then stays allocated here, and what it opens or closes before it has a table of
  /// its own is opened or closed here. Returns its pid, or -1 (errno). A child that is found
  /// stopped before it runs its program is killed.
  pid_t start(int cgroup, const std::function<void()>& child, Of of = Of::caller);
  /// One for each, all of them children of this process. When there are many, some processes start
  /// them side by side: one that must wait for a CPU does not hold up all the others. A pid of 0:
  /// nothing was started; -1: nobody knows.
  std::vector<pid_t> start_all(int cgroup, std::span<const std::function<void()>> children);

 private:
  explicit BorrowedStack(void* memory) : memory_(memory) {}
  void await(pid_t child) const;

  void* memory_;
  std::atomic<std::uint32_t> busy_ = 0;  // the kernel clears it when the child has left this memory
};

}  // namespace berth::step
