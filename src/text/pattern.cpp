// What pattern.h promises.
#include "text/pattern.h"

#include <algorithm>
#include <cstddef>

namespace berth::text {
namespace {

constexpr std::size_t kMaxWidth = 10;
/// What Slurm puts for %a where there is no array (recorded; lint rule B704 warns of it).
constexpr std::string_view kNoIndex = "4294967294";
constexpr std::size_t kMaxPath = 4096;  // longer names are no file names; expansion stops there

bool digit(char c) {
  return c >= '0' && c <= '9';
}

struct Field {
  std::string text;
  bool numeric = false;
  bool known = true;
};

Field field(char letter, const PatternValues& v) {
  const std::string index = v.array_index.value_or(std::string(kNoIndex));
  switch (letter) {
    case '%':
      return {"%"};
    case 'A':
      return {v.array_master.value_or(v.job_id), true};
    case 'a':
      return {index, true};
    case 'b':
      return {index.empty() ? "0" : std::string(1, index.back()), true};
    case 'J':
      return {v.step_id.empty() ? v.job_id : v.job_id + '.' + v.step_id, true};
    case 'j':
      return {v.job_id, true};
    case 'N':
      return {v.node.substr(0, v.node.find('.'))};
    case 'n':
      return {v.node_rank, true};
    case 'r':
      return {v.restarts, true};
    case 'S':
      return {v.sluid};
    case 's':
      return {v.step_id.empty() ? "batch" : v.step_id, true};
    case 't':
      return {v.task, true};
    case 'u':
      return {v.user};
    case 'x':
      return {v.job_name};
    default:
      return {"", false, false};
  }
}

}  // namespace

std::string expand_pattern(std::string_view pattern, const PatternValues& values) {
  std::string out;
  if (pattern.find('\\') != std::string_view::npos) {
    std::ranges::copy_if(pattern, std::back_inserter(out), [](char c) { return c != '\\'; });
    return out;
  }
  for (std::size_t i = 0; i < pattern.size() && out.size() < kMaxPath;) {
    if (pattern[i] != '%') {
      out += pattern[i++];
      continue;
    }
    std::size_t end = i + 1;
    std::size_t width = 0;
    while (end < pattern.size() && digit(pattern[end])) {
      width = std::min(width * 10 + static_cast<std::size_t>(pattern[end] - '0'), kMaxWidth);
      ++end;
    }
    const Field f = end < pattern.size() ? field(pattern[end], values) : Field{"", false, false};
    if (!f.known) {
      out += pattern[i++];
      continue;
    }
    if (f.numeric && f.text.size() < width) out.append(width - f.text.size(), '0');
    out += f.text;
    i = end + 1;
  }
  return out;
}

bool same_for_all_elements(std::string_view pattern) {
  PatternValues first;
  first.job_id = "1";
  first.array_master = "1";
  first.array_index = "1";
  first.sluid = "s1";
  PatternValues second = first;
  second.job_id = "2";
  second.array_index = "2";
  second.sluid = "s2";
  return expand_pattern(pattern, first) == expand_pattern(pattern, second);
}

}  // namespace berth::text
