#include "conf/power_keys.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

#include "conf/values.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::conf {
namespace {

constexpr std::uint32_t kMostSeconds = 65533;

constexpr auto kKeptStates = std::to_array<std::string_view>(
    {"CLOUD", "DOWN", "DRAIN", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "FAIL", "INVALID_REG",
     "MAINTENANCE", "NOT_RESPONDING", "PERFCTRS", "PLANNED", "RESERVED"});

struct Program {
  std::string_view key;
  std::string PowerKeys::* field;
};
constexpr auto kPrograms = std::to_array<Program>({
    {"SuspendProgram", &PowerKeys::suspend_program},
    {"ResumeProgram", &PowerKeys::resume_program},
    {"ResumeFailProgram", &PowerKeys::resume_fail_program},
});

struct KeyWithCount {
  std::string_view key;
  std::uint32_t PowerKeys::* field;
};
constexpr auto kCounts = std::to_array<KeyWithCount>({
    {"SuspendTimeout", &PowerKeys::suspend_timeout_seconds},
    {"ResumeTimeout", &PowerKeys::resume_timeout_seconds},
    {"SuspendRate", &PowerKeys::suspend_rate},
    {"ResumeRate", &PowerKeys::resume_rate},
});

/// Parts between commas outside brackets.
std::vector<std::string_view> items_of(std::string_view list) {
  std::vector<std::string_view> out;
  std::size_t start = 0;
  int open = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++open;
    if (i < list.size() && list[i] == ']') --open;
    if (i < list.size() && (list[i] != ',' || open > 0)) continue;
    const std::string_view item = text::trim(list.substr(start, i - start));
    if (!item.empty()) out.push_back(item);
    start = i + 1;
  }
  return out;
}

void kept_nodes(const Pair& pair, PowerKeys& keys, Complaints& complaints) {
  keys.kept_on.clear();
  for (const std::string_view item : items_of(pair.value)) {
    KeptOn one;
    const std::size_t colon = item.rfind(':');
    auto names = text::expand_hostlist(item.substr(0, colon));
    bool good = names.has_value();
    if (good && colon != std::string_view::npos) {
      std::uint32_t count = 0;
      const char* end = item.data() + item.size();
      const auto [stopped, error] = std::from_chars(item.data() + colon + 1, end, count);
      good = error == std::errc() && stopped == end;
      one.count = count;
    }
    if (!good) {
      complaints.error(
          pair.at, fmt::format("{}={}: allowed are host lists, with a count of how many stay on "
                               "or without, like n[1-8]:2,login1",
                               pair.key, shown(std::string(item))));
      return;
    }
    one.nodes = std::move(*names);
    keys.kept_on.push_back(std::move(one));
  }
}

}  // namespace

std::optional<Located<std::uint32_t>> suspend_seconds(const Pair& pair, Complaints& complaints) {
  if (text::equal_ignoring_case(pair.value, "INFINITE") ||
      text::equal_ignoring_case(pair.value, "UNLIMITED") || pair.value == "-1") {
    return Located<std::uint32_t>{kNeverSuspend, pair.at};
  }
  return number(pair, 0, UINT32_MAX - 2, complaints);
}

bool apply_power_pair(const Pair& pair, PowerKeys& keys, Complaints& complaints) {
  for (const Program& program : kPrograms) {
    if (!is(pair, program.key)) continue;
    keys.*program.field = pair.value == "(null)" ? std::string() : pair.value;
    if (!pair.value.empty() && pair.value != "(null)" && !pair.value.starts_with('/')) {
      complaints.error(pair.at, fmt::format("{}={}: give the whole path of the program", pair.key,
                                            shown(pair.value)));
    }
    return true;
  }
  for (const KeyWithCount& count : kCounts) {
    if (!is(pair, count.key)) continue;
    if (const auto value = number(pair, 0, kMostSeconds, complaints)) {
      keys.*count.field = value->value;
    }
    return true;
  }
  if (is(pair, "SuspendTime")) {
    if (const auto value = suspend_seconds(pair, complaints)) keys.suspend_seconds = value->value;
  } else if (is(pair, "SuspendExcNodes")) {
    kept_nodes(pair, keys, complaints);
  } else if (is(pair, "SuspendExcParts")) {
    keys.kept_on_parts = word_list(pair).value;
  } else if (is(pair, "SuspendExcStates")) {
    if (const auto states = some_of(pair, kKeptStates, complaints))
      keys.kept_on_states = states->value;
  } else {
    return false;
  }
  return true;
}

}  // namespace berth::conf
