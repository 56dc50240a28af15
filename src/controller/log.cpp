#include "controller/log.h"

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/printable.h"
#include "text/words.h"

namespace berth::controller {

Result<LogLevel> log_level(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, LogLevel>, 10> kNames = {{
      {"quiet", LogLevel::error},
      {"fatal", LogLevel::error},
      {"error", LogLevel::error},
      {"info", LogLevel::info},
      {"verbose", LogLevel::info},
      {"debug", LogLevel::debug},
      {"debug2", LogLevel::debug},
      {"debug3", LogLevel::debug},
      {"debug4", LogLevel::debug},
      {"debug5", LogLevel::debug},
  }};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (text::equal_ignoring_case(text, kNames[i].first) || text == std::to_string(i)) {
      return kNames[i].second;
    }
  }
  return fail(Code::bad_value, fmt::format("Invalid debug level: {}", text),
              "one of quiet, fatal, error, info, verbose, debug, debug2 … debug5");
}

Log::~Log() {
  tell_left_out(true);
  if (fd_ != STDERR_FILENO) ::close(fd_);
}

Result<void> Log::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    return fail(Code::io, fmt::format("cannot write the log {}: {}", path, std::strerror(errno)));
  }
  if (fd_ != STDERR_FILENO) ::close(fd_);
  fd_ = fd;
  return {};
}

bool Log::may_write(std::string_view source) {
  const LineLimit::Verdict verdict = lines_.line(source);
  for (const std::string& told : verdict.before) write("", told);
  return verdict.write;
}

void Log::tell_left_out(bool all) {
  for (const std::string& told : lines_.ended(all)) write("", told);
}

void Log::write(std::string_view prefix, std::string_view text) const {
  timeval now{};
  ::gettimeofday(&now, nullptr);
  std::tm parts{};
  ::localtime_r(&now.tv_sec, &parts);
  const std::string line =
      fmt::format("[{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}] {}{}\n", parts.tm_year + 1900,
                  parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                  now.tv_usec / 1000, prefix, printable(text));
  // A log that cannot be written must not stop the controller.
  [[maybe_unused]] const ssize_t written = ::write(fd_, line.data(), line.size());
}

}  // namespace berth::controller
