// The file that says how far the store was acknowledged, with bytes of it changed or cut off: it is
// read as one of the two things that were written last, or as damage, and as nothing else.
#include "store/acknowledged.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

using berth::store::Acknowledged;
using berth::store::AcknowledgedFile;

constexpr Acknowledged kBefore{.commits = 41, .epoch = 7, .next_job_id = 1000};
constexpr Acknowledged kLast{.commits = 42, .epoch = 7, .next_job_id = 1001};

struct Place {
  std::string directory;
  std::string whole;
  int file = -1;

  Place() {
    char name[] = "/dev/shm/berth-fuzz-XXXXXX";
    directory = ::mkdtemp(name);
    AcknowledgedFile made;
    if (!made.open(directory)) std::abort();
    made.note(kBefore);
    made.note(kLast);
    file = ::open(AcknowledgedFile::path(directory).c_str(), O_RDWR | O_CLOEXEC);
    struct stat found{};
    if (file < 0 || ::fstat(file, &found) != 0) std::abort();
    whole.resize(static_cast<std::size_t>(found.st_size));
    if (::pread(file, whole.data(), whole.size(), 0) != found.st_size) std::abort();
  }
  ~Place() { std::filesystem::remove_all(directory); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Place place;
  std::string bytes = place.whole;
  bool cut = false;
  // Three bytes for each change: which of the two places, where in it, and what.
  for (; size >= 3; size -= 3, data += 3) {
    const std::size_t at = (data[0] % 2 * std::size_t{4096} + data[1] % 64) % bytes.size();
    if (data[0] >= 250) {
      bytes.resize(at + 1);
      cut = true;
    } else {
      bytes[at] = static_cast<char>(bytes[at] ^ data[2]);
    }
  }
  if (::ftruncate(place.file, 0) != 0 ||
      ::pwrite(place.file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  const auto found = AcknowledgedFile::read(place.directory);
  if (found && *found && **found != kLast && **found != kBefore) std::abort();
  if (bytes == place.whole && !(found && *found && **found == kLast)) std::abort();
  // Nothing in it, where something was written: only when all of it was zeroed or cut away.
  if (found && !*found && !cut && bytes.find_first_not_of('\0') != std::string::npos) std::abort();
  return 0;
}
