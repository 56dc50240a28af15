// The agent's log: one line for each event, with the time, to standard error or a file. Each line
// is written by one call, so that lines never mix.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace berth::node {

class Log {
 public:
  Result<void> open(const std::string& path);

  template <class... T>
  void error(fmt::format_string<T...> text, T&&... values) {
    write("error: ", fmt::format(text, std::forward<T>(values)...));
  }
  template <class... T>
  void info(fmt::format_string<T...> text, T&&... values) {
    write("", fmt::format(text, std::forward<T>(values)...));
  }

 private:
  void write(std::string_view level, std::string_view text);
  Fd file_;  // none = standard error
};

}  // namespace berth::node
