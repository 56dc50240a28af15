// The descriptors of a process that begins with its parent's table instead of a copy of it. A
// supervisor has some eight descriptors for each task; copying them all for every one, to close all
// but four, would grow with the square of the tasks.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "base/fd.h"

namespace berth::step {

/// Numbers as low as there were when it was made. What a child needs is moved to them, so that the
/// table it takes for its own ends there.
class LowDescriptors {
 public:
  static constexpr std::size_t kMost = 4;
  /// None where no descriptors are left.
  static std::unique_ptr<LowDescriptors> reserve();

  /// In the child, while its parent waits: moves `wanted` (at most kMost; below 0 = none) to the
  /// reserved numbers and writes those down, and makes the table this process's own. All
  /// descriptors with higher numbers are gone then. False: it has no table of its own, and must
  /// end.
  [[nodiscard]] bool take(std::span<int*> wanted) const;
  /// In the parent, when no child is on its way: lets go of what the last one took.
  void release() const;

 private:
  LowDescriptors() = default;
  std::array<Fd, kMost> reserved_;
  Fd nothing_;
};

}  // namespace berth::step
