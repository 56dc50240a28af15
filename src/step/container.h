// All processes of a step, also those that left their process group, session or parent. With a
// cgroup the kernel keeps count; without one this process is the subreaper of its descendants and
// finds them in /proc.
//
// A cgroup that was killed once is never used again: the kernel kills what is born into it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "step/descriptor_table.h"
#include "step/shared_start.h"

namespace berth::step {

class Container {
 public:
  /// `cgroup`: an empty one that exists, "" = none. `fences`: directories that go with it, children
  /// first. Makes this process a subreaper.
  explicit Container(std::string cgroup, std::vector<std::string> fences = {});

  /// Starts a process in it; returns its pid, or -1 (errno). `child` must not return. `below`: the
  /// cgroup of one task, "" = the step's own.
  pid_t start(const std::function<void()>& child, const std::string& below = {});
  /// As start() for many, without a copy of this process's memory and descriptors: until each
  /// `child` runs its program or exits, this process waits. For children that do little, and first
  /// of all take the descriptors they need by what low() gives. The pids, -1 for what could not be
  /// started.
  std::vector<pid_t> start_sharing(const std::vector<std::function<void()>>& children);
  /// None where no descriptors were left: children of start_sharing() have copies then.
  [[nodiscard]] const LowDescriptors* low() const { return low_.get(); }
  /// Outside of it: for epilogs, which run after it was killed.
  static pid_t start_outside(const std::function<void()>& child);

  /// A child that is no part of it, and is neither signalled nor killed with it until
  /// no_more_beside() or its end.
  pid_t start_beside(const std::function<void()>& child);
  void no_more_beside(pid_t child) { std::erase(beside_, child); }

  /// The kernel keeps count: pids() need not look at all processes of the machine.
  [[nodiscard]] bool grouped() const { return !path_.empty(); }
  /// Living processes in it, without this one.
  [[nodiscard]] std::vector<pid_t> pids() const;
  /// `first` get it before the others, so that a shell does not report the death of its children.
  void signal(int number, const std::vector<pid_t>& first) const;
  /// SIGKILL to all; to be repeated until nothing is left.
  void kill();
  /// Once this process has no children left: whether it is empty. A cgroup is removed then; without
  /// one no child means no descendant, as orphans come to a subreaper.
  bool remove();

 private:
  pid_t start_in(const std::string& cgroup, int folder, const std::function<void()>& child) const;

  std::string path_;
  Fd folder_;
  std::vector<std::string> fences_;
  std::vector<pid_t> beside_;
  std::unique_ptr<LowDescriptors> low_ = LowDescriptors::reserve();
  std::unique_ptr<BorrowedStack> stack_;  // of children that share this memory
};

/// Living descendants of a process, by /proc.
std::vector<pid_t> descendants_of(pid_t ancestor);
/// Kills what is in a cgroup.
void kill_cgroup(const std::string& path);
/// Kills what is in a cgroup and removes it; false while something is left. For cgroups whose
/// supervisor is gone.
bool clear_cgroup(const std::string& path);
/// Processes that have this file as that descriptor.
std::vector<pid_t> processes_holding(const std::string& file, int descriptor);
/// A signal or a tracer holds it.
bool is_stopped(pid_t pid);
/// "4711 dd (D, in folio_wait_bit)": who it is, its state, and where it waits in the kernel.
std::string describe_process(pid_t pid);
/// Processes whose environment has this variable.
std::vector<pid_t> processes_marked(const std::string& assignment);
/// Moves this process there, of any version; false: errno tells why not.
bool enter_cgroup(const std::string& path);
/// The same for one of v1 and a process of one thread, which need not wait for a grace period of
/// the kernel's.
bool enter_v1_group(const std::string& path);
/// The members of a cgroup.
std::vector<pid_t> members_of(const std::string& cgroup);

}  // namespace berth::step
