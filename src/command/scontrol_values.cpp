// What scontrol_values.h promises.
#include "command/scontrol_values.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/printable.h"
#include "command/show_states.h"

namespace berth::command::scontrol {
std::string time_text(std::int64_t time, const Style& style, std::string_view missing) {
  Shown shown;
  shown.now = style.now;
  shown.times = style.times;
  std::string text;
  append_time(text, time, shown, missing);
  return text;
}

std::string seconds_text(std::int64_t seconds) {
  std::string text;
  append_clock(text, std::max<std::int64_t>(seconds, 0));
  return text;
}

std::string exit_text(std::int32_t status) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return fmt::format("{}:{}", code, signal);
}

std::string_view or_null(std::string_view text) {
  return text.empty() ? "(null)" : text;
}

std::string or_star(std::uint32_t number) {
  return number == 0 ? "*" : std::to_string(number);
}

std::string_view yes_no(bool value) {
  return value ? "YES" : "NO";
}

std::int64_t run_seconds(const wire::JobInfo& job, std::int64_t now) {
  if (job.start_time() == 0 || job.state() == "PENDING") return 0;
  if (job.state() == "SUSPENDED") return job.seconds_before_suspend();
  const bool running = job.state() == "RUNNING";
  const std::int64_t until = running ? now : job.end_time();
  // A job that was suspended counts from its last resume.
  if (job.suspend_time() != 0) {
    return std::max<std::int64_t>(until - job.suspend_time(), 0) + job.seconds_before_suspend();
  }
  return std::max<std::int64_t>(until - job.start_time(), 0);
}

std::string_view state_word(const wire::JobInfo& job) {
  return shown_state(job).name;
}

void Record::line(std::string_view text) {
  if (!text_.empty()) text_ += one_line_ ? " " : "\n   ";
  const std::size_t start = text_.size();
  text_ += text;
  make_printable(text_, start);
}

void Record::maybe(std::string_view key, std::string_view value) {
  if (!value.empty()) line(fmt::format("{}={}", key, value));
}

std::string Record::done() && {
  text_ += one_line_ ? "\n" : "\n\n";
  return std::move(text_);
}

}  // namespace berth::command::scontrol
