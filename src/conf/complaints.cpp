// Gathering complaints and rendering them.
#include "conf/complaints.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/words.h"

namespace berth::conf {

std::string shown(const Location& at) {
  return at.line == 0 ? at.file : fmt::format("{}:{}", at.file, at.line);
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out(text.substr(0, kLongest));
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text.size() > kLongest ? out + "…" : out;
}

std::string shown(const UnusedKeys& unused, bool all) {
  constexpr std::size_t kFew = 3;
  const std::size_t count = unused.keys.size();
  const std::size_t named = all ? count : std::min(count, kFew);
  const auto end = unused.keys.begin() + static_cast<std::ptrdiff_t>(named);
  return fmt::format("{}: {} that Slurm has {} not used by berth: {}{}", unused.file,
                     count == 1 ? "1 key" : fmt::format("{} keys", count),
                     count == 1 ? "is" : "are", fmt::join(unused.keys.begin(), end, ", "),
                     named < count ? ", …" : "");
}

void Complaints::error(const Location& at, std::string_view text) {
  if (full()) return;
  if (errors_.size() >= kMaxErrors) {
    ++errors_left_out_;
    return;
  }
  errors_.push_back({Severity::error, fmt::format("{}: {}", shown(at), text)});
}

void Complaints::warn(const Location& at, std::string_view text) {
  if (warnings_.size() >= kMaxWarnings) {
    ++warnings_left_out_;
    return;
  }
  warnings_.push_back(fmt::format("{}: {}", shown(at), text));
}

void Complaints::warn_once(const Location& at, std::string_view about, std::string_view text) {
  if (said_.insert(fmt::format("warned {}", about)).second) warn(at, text);
}

void Complaints::unused(const Location& at, std::string_view key) {
  if (unused_.size() >= kMaxUnused) return;
  if (said_.insert(text::to_lower(fmt::format("{} {}", at.file, key))).second) {
    unused_.push_back({std::string(key), at});
  }
}

Error Complaints::as_error() const {
  Error error;
  error.code = Code::bad_config;
  error.messages = errors_;
  if (full()) {
    error.messages.push_back(
        {Severity::error,
         fmt::format("and at least {} more; the rest was not looked at", errors_left_out_)});
  } else if (errors_left_out_ > 0) {
    error.messages.push_back({Severity::error, fmt::format("and {} more", errors_left_out_)});
  }
  return error;
}

std::vector<std::string> Complaints::warnings() const {
  std::vector<std::string> out = warnings_;
  if (warnings_left_out_ > 0) {
    out.push_back(fmt::format("{} more warnings like these are not shown", warnings_left_out_));
  }
  return out;
}

std::vector<UnusedKeys> Complaints::unused_keys() const {
  std::vector<UnusedKeys> out;
  for (const Unused& item : unused_) {
    auto file = std::ranges::find(out, item.at.file, &UnusedKeys::file);
    if (file == out.end()) file = out.insert(out.end(), {item.at.file, {}});
    file->keys.push_back(fmt::format("{} (line {})", item.key, item.at.line));
  }
  return out;
}

}  // namespace berth::conf
