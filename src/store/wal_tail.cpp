#include "store/wal_tail.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace berth::store {
namespace {

// https://www.sqlite.org/fileformat2.html#walformat
constexpr std::size_t kLogHeader = 32;
constexpr std::size_t kFrameHeader = 24;
constexpr off_t kSaltsAt = 16;

}  // namespace

std::uint64_t WalTail::read_generation() const {
  // Closing this descriptor drops no lock of SQLite: it locks the database and -shm, never -wal.
  const Fd log(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint64_t salts = 0;
  if (!log || ::pread(log.get(), &salts, sizeof salts, kSaltsAt) != sizeof salts) return 0;
  return salts;
}

Result<void> WalTail::cut() const {
  const Fd log(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!log && errno == ENOENT) return {};
  // A log that was begun anew by the failed commit: all that was acknowledged is in the database
  // (that is when SQLite begins anew), and the next commit begins with a header of its own.
  const bool anew = read_generation() != generation_ || frames_ == 0;
  const std::size_t size = anew ? 0 : kLogHeader + frames_ * (kFrameHeader + page_size_);
  const off_t now = log ? ::lseek(log.get(), 0, SEEK_END) : -1;
  if (now < 0 ||
      (now > static_cast<off_t>(size) && ::ftruncate(log.get(), static_cast<off_t>(size)) != 0) ||
      ::fsync(log.get()) != 0) {
    return fail(Code::io, fmt::format("cannot cut {} back to what was stored: {}", path_,
                                      std::strerror(errno)));
  }
  return {};
}

}  // namespace berth::store
