// What log.h promises.
#include "node/log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace berth::node {

Result<void> Log::open(const std::string& path) {
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (file_) return {};
  return fail(Code::io, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

void Log::write(std::string_view level, std::string_view text) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  const std::string line = fmt::format("[{:%Y-%m-%dT%H:%M:%S}] {}{}\n", local, level, text);
  // A log that cannot be written must not stop the agent.
  (void)!::write(file_ ? file_.get() : STDERR_FILENO, line.data(), line.size());
}

}  // namespace berth::node
