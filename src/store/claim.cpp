#include "store/claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "store/schema.h"

namespace berth::store {

Result<Fd> claim_store(const std::string& directory) {
  std::error_code trouble;
  std::filesystem::create_directories(directory, trouble);
  const std::string path = directory + "/berth.lock";
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return fail(Code::io, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Code::io, fmt::format("another controller uses {}", directory));
  }
  const std::string database = database_path(directory);
  const Fd made(::open(database.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!made) {
    return fail(Code::io, fmt::format("cannot open {}: {}", database, std::strerror(errno)));
  }
  return lock;
}

}  // namespace berth::store
