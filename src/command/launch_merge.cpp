#include "command/launch_merge.h"

#include <fmt/format.h>

namespace berth::command {

LineMerger::LineMerger(std::uint32_t ntasks, bool label, bool whole_lines)
    : label_(label),
      whole_lines_(whole_lines),
      width_(static_cast<int>(std::to_string(ntasks > 0 ? ntasks - 1 : 0).size())) {}

void LineMerger::append_labelled(std::string& out, std::uint32_t rank, Stream& stream,
                                 std::string_view data) {
  if (!label_) {
    out += data;
    return;
  }
  while (!data.empty()) {
    if (!stream.inside_line) out += fmt::format("{:>{}}: ", rank, width_);
    const std::size_t newline = data.find('\n');
    const std::size_t size = newline == std::string_view::npos ? data.size() : newline + 1;
    out += data.substr(0, size);
    stream.inside_line = newline == std::string_view::npos;
    data.remove_prefix(size);
  }
}

std::string LineMerger::take(std::uint32_t rank, bool error, std::string_view data) {
  std::string out;
  Stream& stream = streams_[{rank, error}];
  if (!whole_lines_) {
    append_labelled(out, rank, stream, data);
    return out;
  }
  const std::size_t newline = data.rfind('\n');
  if (newline != std::string_view::npos) {
    append_labelled(out, rank, stream, stream.held);
    stream.held.clear();
    append_labelled(out, rank, stream, data.substr(0, newline + 1));
    data.remove_prefix(newline + 1);
  }
  stream.held += data;
  if (stream.held.size() >= kMostHeldLine) {
    append_labelled(out, rank, stream, stream.held);
    stream.held.clear();
  }
  return out;
}

std::string LineMerger::end(std::uint32_t rank, bool error) {
  std::string out;
  const auto at = streams_.find({rank, error});
  if (at == streams_.end()) return out;
  append_labelled(out, rank, at->second, at->second.held);
  // The next labelled line must not continue this one.
  if (label_ && at->second.inside_line) out += '\n';
  streams_.erase(at);
  return out;
}

std::string LineMerger::rest(bool error) {
  std::string out;
  for (auto at = streams_.begin(); at != streams_.end();) {
    const auto [rank, is_error] = at->first;
    ++at;
    if (is_error == error) out += end(rank, error);
  }
  return out;
}

}  // namespace berth::command
