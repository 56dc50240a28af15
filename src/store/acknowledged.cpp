#include "store/acknowledged.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "store/page_sum.h"

namespace berth::store {
namespace {

constexpr std::uint64_t kMagic = 0x3164656b63616262;  // "bbacked1"
constexpr off_t kApart = 4096;                        // never in one sector
constexpr int kPlaces = 2;

struct Place {
  std::uint64_t magic = kMagic;
  std::uint64_t turn = 0;
  std::uint64_t commits = 0;
  std::uint64_t epoch = 0;
  std::uint64_t next_job_id = 0;
  std::uint64_t sum = 0;

  [[nodiscard]] std::uint64_t right_sum() const {
    return sum_of(this, sizeof *this - sizeof sum, kMagic);
  }
  [[nodiscard]] bool whole() const { return magic == kMagic && sum == right_sum(); }
};

/// Made, and nothing was written yet.
bool untouched(int file) {
  for (int i = 0; i < kPlaces; ++i) {
    char bytes[sizeof(Place)] = {};
    const ssize_t got = ::pread(file, bytes, sizeof bytes, i * kApart);
    if (got < 0 || std::any_of(bytes, bytes + got, [](char byte) { return byte != 0; })) {
      return false;
    }
  }
  return true;
}

/// The newest place that is whole; nullopt = none is.
std::optional<Place> newest(int file) {
  std::optional<Place> found;
  for (int i = 0; i < kPlaces; ++i) {
    Place place;
    if (::pread(file, &place, sizeof place, i * kApart) != sizeof place || !place.whole()) continue;
    if (!found || place.turn > found->turn) found = place;
  }
  return found;
}

std::unexpected<Error> trouble(const std::string& path) {
  return fail(Code::io, fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace

Result<void> compare_acknowledged(const std::string& directory, const Acknowledged& has,
                                  const Acknowledged& told) {
  if (has.commits >= told.commits && has.epoch >= told.epoch) return {};
  const std::string what = has.commits == 0
                               ? fmt::format("the store in {} is empty", directory)
                               : fmt::format("the store in {} has {} commits up to start {}",
                                             directory, has.commits, has.epoch);
  return fail(Code::io,
              fmt::format("{}, but {} commits up to start {} were acknowledged: a part of it is "
                          "missing, or an older copy is in its place",
                          what, told.commits, told.epoch),
              fmt::format("put the files of the last stop back, or a backup by `berth restore`; {}",
                          kAcceptHint));
}

Result<std::optional<Acknowledged>> AcknowledgedFile::read(const std::string& directory) {
  const std::string name = path(directory);
  const Fd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) return trouble(name);
  const std::optional<Place> place = newest(file.get());
  if (!place && untouched(file.get())) return std::nullopt;
  if (!place) return fail(Code::io, fmt::format("{} is damaged", name));
  return Acknowledged{place->commits, place->epoch, place->next_job_id};
}

Result<void> AcknowledgedFile::open(const std::string& directory) {
  const std::string name = path(directory);
  file_.reset(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file_) return trouble(name);
  const std::optional<Place> place = newest(file_.get());
  turn_ = place ? place->turn : 0;
  // Its blocks are there from now on: writing needs no room.
  if (::posix_fallocate(file_.get(), 0, kPlaces * kApart) != 0) {
    return fail(Code::io, fmt::format("{}: there is no room for it", name));
  }
  return {};
}

void AcknowledgedFile::note(const Acknowledged& now) {
  Place place{
      .turn = ++turn_, .commits = now.commits, .epoch = now.epoch, .next_job_id = now.next_job_id};
  place.sum = place.right_sum();
  const auto at = static_cast<off_t>(turn_ % kPlaces) * kApart;
  // When it fails, what is there asks for less than there is: the commit is stored all the same.
  if (::pwrite(file_.get(), &place, sizeof place, at) == sizeof place) unsynced_ = true;
}

void AcknowledgedFile::sync() {
  if (unsynced_.exchange(false)) ::fdatasync(file_.get());
}

}  // namespace berth::store
