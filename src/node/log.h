// The agent's log: one line for each event, with the time, to standard error or a file. Each line
// is written by one call, so that lines never mix. What strangers wrote is escaped.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/fd.h"
#include "base/line_limit.h"
#include "base/result.h"

namespace berth::node {

class Log {
 public:
  Log() = default;
  ~Log() { tell_left_out(true); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  Result<void> open(const std::string& path);

  template <class... T>
  void error(fmt::format_string<T...> text, T&&... values) {
    write("error: ", fmt::format(text, std::forward<T>(values)...));
  }
  template <class... T>
  void info(fmt::format_string<T...> text, T&&... values) {
    write("", fmt::format(text, std::forward<T>(values)...));
  }

  /// For what somebody else can cause as often as he likes: a source ("uid 1000", "10.0.0.7") has
  /// a number of lines a minute, and those beyond are counted.
  class Source {
   public:
    template <class... T>
    void error(fmt::format_string<T...> text, T&&... values) {
      if (log_.may_write(name_)) log_.error(text, std::forward<T>(values)...);
    }

   private:
    friend class Log;
    Source(Log& log, std::string name) : log_(log), name_(std::move(name)) {}
    Log& log_;
    std::string name_;
  };
  Source of(std::string source) { return {*this, std::move(source)}; }
  Source of_user(std::uint32_t uid) { return of(fmt::format("uid {}", uid)); }
  [[nodiscard]] LineGate& lines() { return lines_; }
  /// Says how many lines were left out, where their minute is over.
  void tell_left_out(bool all = false);

 private:
  [[nodiscard]] bool may_write(std::string_view source);
  void write(std::string_view level, std::string_view text);
  LineGate lines_;
  Fd file_;  // none = standard error
};

}  // namespace berth::node
