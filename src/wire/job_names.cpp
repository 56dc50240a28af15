// What job_names.h promises.
#include "wire/job_names.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "wire/step_ids.h"

namespace berth::wire {
namespace {

constexpr std::uint32_t kMostId = UINT32_MAX - 16;  // the last ones have meanings of their own

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, wrong] = std::from_chars(text.data(), end, value);
  if (text.empty() || wrong != std::errc() || stopped != end || value > kMostId) {
    return std::nullopt;
  }
  return value;
}

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::optional<std::uint32_t> step_of(std::string_view text) {
  if (same_word(text, "batch")) return kBatchStep;
  if (same_word(text, "extern")) return kExternStep;
  if (same_word(text, "interactive")) return kInteractiveStep;
  return number(text);
}

/// "3-5,8:2%2": what stands in the brackets; what it means is the controller's matter.
bool is_set(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789,-:%") == std::string_view::npos;
}

}  // namespace

std::optional<JobName> parse_job_name(std::string_view word) {
  JobName name;
  const std::size_t dot = word.find('.');
  if (dot != std::string_view::npos) {
    const auto step = step_of(word.substr(dot + 1));
    if (!step) return std::nullopt;
    name.set_step(*step);
    word = word.substr(0, dot);
  }
  const std::size_t mark = word.find_first_of("_+");
  const auto id = number(word.substr(0, mark));
  if (!id || *id == 0) return std::nullopt;
  name.set_id(*id);
  if (mark == std::string_view::npos) return name;
  std::string_view rest = word.substr(mark + 1);
  if (word[mark] == '+') {
    const auto offset = number(rest);
    if (!offset) return std::nullopt;
    name.set_het_offset(*offset);
    return name;
  }
  if (const auto task = number(rest)) {
    name.set_array_task(*task);
    return name;
  }
  if (rest == "*") return name;  // all elements: the array itself
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (!is_set(rest)) return std::nullopt;
  name.set_array_set(std::string(rest));
  return name;
}

std::vector<std::string_view> split_job_list(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    if (i > begin) parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

std::string shown(const JobName& name) {
  std::string text = std::to_string(name.id());
  if (name.has_array_task()) text += "_" + std::to_string(name.array_task());
  if (!name.array_set().empty()) text += "_[" + name.array_set() + "]";
  if (name.has_het_offset()) text += "+" + std::to_string(name.het_offset());
  if (!name.has_step()) return text;
  switch (name.step()) {
    case kBatchStep:
      return text + ".batch";
    case kExternStep:
      return text + ".extern";
    case kInteractiveStep:
      return text + ".interactive";
    default:
      return text + "." + std::to_string(name.step());
  }
}

}  // namespace berth::wire
