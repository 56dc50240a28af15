// Output of many tasks to one terminal: lines of different tasks are never mixed, and with --label
// each begins with its task's number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace berth::command {

/// A line that never ends is passed on in pieces of this size.
inline constexpr std::size_t kMostHeldLine = std::size_t{64} << 10;

class LineMerger {
 public:
  /// `whole_lines`: hold the beginning of a line until its end came. Without it pieces are passed
  /// on as they come (--unbuffered, --pty, a single task).
  LineMerger(std::uint32_t ntasks, bool label, bool whole_lines);

  /// What may be written now, after `data` came from a task.
  std::string take(std::uint32_t rank, bool error, std::string_view data);
  /// What is left when the stream of a task is closed.
  std::string end(std::uint32_t rank, bool error);
  /// What is left of standard output or standard error of all tasks.
  std::string rest(bool error);

 private:
  struct Stream {
    std::string held;
    bool inside_line = false;  // the label of the current line is already out
  };
  void append_labelled(std::string& out, std::uint32_t rank, Stream& stream, std::string_view data);

  bool label_;
  bool whole_lines_;
  int width_;
  std::map<std::pair<std::uint32_t, bool>, Stream> streams_;
};

}  // namespace berth::command
