// What descriptor_table.h promises.
#include "step/descriptor_table.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace berth::step {

std::unique_ptr<LowDescriptors> LowDescriptors::reserve() {
  std::unique_ptr<LowDescriptors> low(new LowDescriptors);
  for (Fd& fd : low->reserved_) {
    fd.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!fd) return nullptr;
  }
  low->nothing_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!low->nothing_) return nullptr;
  return low;
}

bool LowDescriptors::take(std::span<int*> wanted) const {
  int last = 0;
  for (std::size_t i = 0; i < wanted.size() && i < kMost; ++i) {
    int& number = *wanted[i];
    last = std::max(last, reserved_[i].get());
    if (number < 0) continue;
    if (::dup3(number, reserved_[i].get(), O_CLOEXEC) < 0) return false;
    number = reserved_[i].get();
  }
  // The kernel copies no more than what stays.
  if (::syscall(SYS_close_range, static_cast<unsigned>(last + 1), ~0U, CLOSE_RANGE_UNSHARE) == 0) {
    return true;
  }
  return ::unshare(CLONE_FILES) == 0;  // a kernel before 5.9; the rest is closed by execve
}

void LowDescriptors::release() const {
  // Whichever of them is a pipe's end would keep its reader waiting.
  for (const Fd& fd : reserved_) ::dup3(nothing_.get(), fd.get(), O_CLOEXEC);
}

}  // namespace berth::step
