// What log.h promises.
#include "node/log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/printable.h"

namespace berth::node {

Result<void> Log::open(const std::string& path) {
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (file_) return {};
  return fail(Code::io, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

bool Log::may_write(std::string_view source) {
  const LineLimit::Verdict verdict = lines_.line(source);
  for (const std::string& told : verdict.before) write("", told);
  return verdict.write;
}

void Log::tell_left_out(bool all) {
  for (const std::string& told : lines_.ended(all)) write("", told);
}

void Log::write(std::string_view level, std::string_view text) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  const std::string line =
      fmt::format("[{:%Y-%m-%dT%H:%M:%S}] {}{}\n", local, level, printable(text));
  // A log that cannot be written must not stop the agent.
  (void)!::write(file_ ? file_.get() : STDERR_FILENO, line.data(), line.size());
}

}  // namespace berth::node
