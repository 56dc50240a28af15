// What cluster_clock.h promises.
#include "base/cluster_clock.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace berth {
namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// FNV-1a.
std::uint64_t number_of(std::string_view text) {
  std::uint64_t out = 0xcbf29ce484222325U;
  for (const char c : text) out = (out ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return out;
}

nanoseconds size_of(nanoseconds length) {
  return length < nanoseconds(0) ? -length : length;
}

}  // namespace

nanoseconds MachineTime::wall() const {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

std::uint64_t MachineTime::boot_number() const {
  const std::string id = this_boot_id();
  if (id == "unknown") return 0;
  // A container may have a time since the start of its own.
  struct stat space{};
  const bool known = ::stat("/proc/self/ns/time", &space) == 0;
  // The store keeps it as a signed number.
  return number_of(id + '/' + (known ? std::to_string(space.st_ino) : "")) >> 1U;
}

nanoseconds ClusterClock::Piece::at(BootTime now) const {
  const nanoseconds passed = now - boot;
  const nanoseconds most = passed * kFollowedPercent / 100;
  return time + passed + std::clamp(behind, -most, most);
}

ClusterClock::ClusterClock(const TimeSource& source)
    : source_(source), boot_number_(source.boot_number()) {
  const Reading now = read();
  piece_ = {.boot = now.boot, .time = now.wall};
}

/// Both at the same moment: a process that is stopped between the two must not take that for a
/// clock that was set.
ClusterClock::Reading ClusterClock::read() const {
  constexpr std::chrono::milliseconds kShort(50);
  constexpr int kTries = 5;
  Reading out;
  for (int i = 0; i < kTries; ++i) {
    out.boot = source_.boot();
    out.wall = source_.wall();
    if (source_.boot() - out.boot <= kShort) break;
  }
  return out;
}

nanoseconds ClusterClock::now() const {
  return piece_.at(std::max(source_.boot(), piece_.boot));
}

ClusterClock::Mark ClusterClock::mark() const {
  const std::lock_guard lock(mutex_);
  const BootTime boot = std::max(source_.boot(), piece_.boot);
  return {.boot = boot_number_, .ahead = piece_.at(boot) - boot, .adopted = adopted_};
}

bool ClusterClock::resume(const Mark& mark) {
  const std::lock_guard lock(mutex_);
  adopted_ = mark.adopted;
  set_.reset();
  if (mark.boot == 0 || mark.boot != boot_number_) return false;
  const BootTime boot = source_.boot();
  piece_ = {.boot = boot, .time = boot + mark.ahead};
  return true;
}

std::int64_t ClusterClock::seconds() const {
  const std::lock_guard lock(mutex_);
  return std::chrono::floor<Seconds>(now()).count();
}

std::int64_t ClusterClock::even_seconds() const {
  const std::lock_guard lock(mutex_);
  return std::chrono::floor<Seconds>(now()).count() - adopted_;
}

nanoseconds ClusterClock::until(std::int64_t seconds) const {
  const std::lock_guard lock(mutex_);
  return Seconds(seconds) - now();
}

ClusterClock::Seen ClusterClock::look() {
  const std::lock_guard lock(mutex_);
  const Reading seen = read();
  const nanoseconds time = piece_.at(seen.boot);
  const nanoseconds ahead = seen.wall - time;
  if (size_of(ahead) <= kFollowed) {
    piece_ = {.boot = seen.boot, .time = time, .behind = ahead};
    const bool was_set = set_.has_value();
    set_.reset();
    return was_set ? Seen::back : Seen::nothing;
  }
  piece_ = {.boot = seen.boot, .time = time};
  if (set_ && size_of(ahead - set_->ahead) <= kFollowed) return Seen::nothing;
  set_ = Set{.ahead = ahead, .since = seen.boot};
  return Seen::set;
}

std::optional<ClusterClock::Seconds> ClusterClock::ahead() const {
  const std::lock_guard lock(mutex_);
  if (!set_) return std::nullopt;
  return std::chrono::round<Seconds>(set_->ahead);
}

std::optional<ClusterClock::Seconds> ClusterClock::adopts_in() const {
  const std::lock_guard lock(mutex_);
  if (!set_) return std::nullopt;
  const nanoseconds left = set_->since + kStands - source_.boot();
  return std::max(std::chrono::ceil<Seconds>(left), Seconds(0));
}

ClusterClock::Seconds ClusterClock::adopt() {
  const std::lock_guard lock(mutex_);
  const Reading seen = read();
  const nanoseconds time = piece_.at(seen.boot);
  // Whole seconds, as moments are remembered; the rest is followed.
  const auto by = std::chrono::round<Seconds>(seen.wall - time);
  piece_ = {.boot = seen.boot, .time = time + by, .behind = seen.wall - time - by};
  adopted_ += by.count();
  set_.reset();
  return by;
}

std::int64_t ClusterClock::adopted() const {
  const std::lock_guard lock(mutex_);
  return adopted_;
}

}  // namespace berth
