#include "command/print.h"

#include <unistd.h>

#include <cerrno>

#include "base/printable.h"

namespace berth::command {

int print_table(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 1;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

int print_text(std::string_view text) {
  return print_table(printable(text, Layout::lines));
}

}  // namespace berth::command
