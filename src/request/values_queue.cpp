// When and under what conditions: time limits, begin, signals, mail, arrays and other bookkeeping.
#include <algorithm>

#include <fmt/format.h>

#include "base/bits.h"
#include "request/signals.h"
#include "request/values.h"
#include "text/duration.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::request {
namespace {

constexpr std::string_view kTimeForms =
    "minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]";

Applied time_limit(const Value& value, Request& request) {
  const std::optional<text::TimeLimit> limit = text::parse_time_limit(value.text);
  if (!limit) return invalid_value(value, std::string(kTimeForms));
  const bool unlimited = limit->unlimited || limit->minutes == 0;
  request.time_limit = unlimited ? std::optional<std::uint32_t>() : std::optional(limit->minutes);
  return {};
}

Applied time_min(const Value& value, Request& request) {
  const std::optional<text::TimeLimit> limit = text::parse_time_limit(value.text);
  if (!limit) return invalid_value(value, std::string(kTimeForms));
  if (!limit->unlimited && limit->minutes > 0) request.time_min = limit->minutes;
  return {};
}

Applied gpu_idle_timeout(const Value& value, Request& request) {
  if (value.step) {
    return fail(Code::bad_value, fmt::format("{} is of a whole job", dashed(value.opt)),
                "give it to sbatch, salloc or the srun that makes the job; of a job that runs: "
                "scontrol update jobid=$SLURM_JOB_ID GpuIdleTimeout=…",
                255);
  }
  const auto limit = text::parse_limit_in_seconds(value.text);
  if (!limit) {
    return invalid_value(value,
                         fmt::format("{}, a number with s, m, h or d, 0 or unlimited", kTimeForms));
  }
  request.gpu_idle_seconds = *limit;
  return {};
}

Applied moment(const Value& value, Request&) {
  std::size_t position = 0;
  if (text::valid_time_spec(value.text, position)) return {};
  Error error = invalid_value(value, "e.g. 16:00, now+2hours, tomorrow, 2030-01-31T08:00").error();
  error.messages.insert(error.messages.begin(),
                        {Severity::bare, fmt::format("Invalid time specification (pos={}): {}",
                                                     position, value.text)});
  return std::unexpected(std::move(error));
}

Applied delay_boot(const Value& value, Request&) {
  if (text::parse_time_limit(value.text)) return {};
  return invalid_value(value, "minutes");
}

/// [R][B:]signal[@seconds].
Applied signal(const Value& value, Request&) {
  constexpr std::string_view kForm = "[R:|B:]signal[@seconds], e.g. B:USR1@300";
  std::string_view rest = value.text;
  if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
    const std::string_view who = rest.substr(0, colon);
    const bool known = who == "R" || who == "B" || who == "RB" || who == "BR";
    const bool batch = who.find('B') != std::string_view::npos;
    if (!known || (batch && value.command != Command::sbatch)) {
      return invalid_value(value, std::string(kForm));
    }
    rest.remove_prefix(colon + 1);
  }
  const std::size_t at = std::min(rest.find('@'), rest.size());
  const bool seconds = at == rest.size() || text::parse_number(rest.substr(at + 1), UINT16_MAX);
  if (!parse_signal(rest.substr(0, at)) || !seconds) {
    return invalid_value(value, std::string(kForm));
  }
  return {};
}

/// Each word of a comma list must be known.
template <std::size_t N>
Applied words_of(const Value& value, const std::string_view (&known)[N]) {
  for (const std::string_view word : text::split(value.text, ',')) {
    const bool found = std::ranges::any_of(
        known, [&](std::string_view one) { return text::equal_ignoring_case(one, word); });
    if (!found) return invalid_value(value, fmt::format("{}", fmt::join(known, ", ")));
  }
  return {};
}

Applied mail_type(const Value& value, Request&) {
  static constexpr std::string_view kWords[] = {
      "NONE",          "BEGIN",          "END",        "FAIL",       "REQUEUE",
      "ALL",           "INVALID_DEPEND", "STAGE_OUT",  "TIME_LIMIT", "TIME_LIMIT_90",
      "TIME_LIMIT_80", "TIME_LIMIT_50",  "ARRAY_TASKS"};
  return words_of(value, kWords);
}

Applied profile(const Value& value, Request&) {
  static constexpr std::string_view kWords[] = {"all",    "none",       "energy", "task",
                                                "lustre", "filesystem", "network"};
  return words_of(value, kWords);
}

Applied propagate(const Value& value, Request&) {
  static constexpr std::string_view kWords[] = {"AS",    "CORE",    "CPU",    "DATA",
                                                "FSIZE", "MEMLOCK", "NOFILE", "NPROC",
                                                "RSS",   "STACK",   "ALL",    "NONE"};
  return value.text.empty() ? Applied{} : words_of(value, kWords);
}

Applied open_mode(const Value& value, Request&) {
  static constexpr std::string_view kWords[] = {"append", "truncate", "a", "t"};
  return words_of(value, kWords);
}

Applied yes_or_no(const Value& value, Request&) {
  static constexpr std::string_view kWords[] = {"yes", "no"};
  return words_of(value, kWords);
}

Applied zero_or_one(const Value& value, Request&) {
  const bool optional = row_of(value.opt).argument == Argument::optional;
  if (value.text == "0" || value.text == "1" || (optional && value.text.empty())) return {};
  return invalid_value(value, "0 or 1");
}

Applied no_kill(const Value& value, Request&) {
  if (value.text.empty() || text::equal_ignoring_case(value.text, "off")) return {};
  return invalid_value(value, "alone, or off");
}

Applied requeue(const Value& value, Request&) {
  if (value.text.empty() || text::equal_ignoring_case(value.text, "expedite")) return {};
  return invalid_value(value, "alone, or expedite");
}

Applied acctg_freq(const Value& value, Request&) {
  for (const std::string_view item : text::split(value.text, ',')) {
    const std::size_t equals = item.find('=');
    const std::string_view kind =
        equals == std::string_view::npos ? "task" : item.substr(0, equals);
    constexpr std::string_view kKinds[] = {"task", "energy", "network", "filesystem"};
    const std::string_view seconds =
        equals == std::string_view::npos ? item : item.substr(equals + 1);
    if (std::ranges::find(kKinds, text::to_lower(kind)) == std::end(kKinds) ||
        !text::parse_number(seconds, UINT16_MAX)) {
      return invalid_value(value,
                           "seconds, or kind=seconds with task, energy, network, filesystem");
    }
  }
  return {};
}

Applied nice(const Value& value, Request&) {
  if (value.text.empty()) return {};
  const bool negative = value.text.starts_with('-');
  if (!text::parse_number(value.text.substr(negative ? 1 : 0), 2147483645)) {
    return invalid_value(value, "a whole number; larger is later");
  }
  const bool refused = negative && !value.around->is_root && value.around->judges_nice;
  if (refused && value.building) {
    value.warnings->push_back({Severity::error, "Nice value must be non-negative, value ignored"});
  }
  return {};
}

Applied priority(const Value& value, Request&) {
  if (text::equal_ignoring_case(value.text, "TOP")) return {};
  if (text::parse_number(value.text, UINT32_MAX - 2)) return {};
  return invalid_number(value, "a whole number, or TOP");
}

/// count[@time].
Applied switches(const Value& value, Request& request) {
  const std::size_t at = std::min(value.text.find('@'), value.text.size());
  const auto count = text::parse_number(value.text.substr(0, at), INT32_MAX);
  SwitchAsk ask;
  if (at < value.text.size()) {
    const std::string_view time = value.text.substr(at + 1);
    const auto limit = text::parse_time_limit(time);
    if (!limit) return invalid_value(value, "count[@time to wait]");
    if (!limit->unlimited) ask.wait_seconds = text::parse_seconds(time);
  }
  if (!count) return invalid_value(value, "count[@time to wait]");
  ask.count = static_cast<std::uint32_t>(*count);
  request.switches.reset();
  if (ask.count > 0) request.switches = ask;
  return {};
}

Applied root_only(const Value& value, Request&) {
  if (value.around->is_root) return {};
  return fail(Code::bad_value, fmt::format("{} only permitted by root user", dashed(value.opt)),
              "submit as that user instead", 255);
}

/// [low|medium|high|highm1|kHz][-…][:governor], or a governor.
Applied cpu_freq(const Value& value, Request&) {
  constexpr std::string_view kLevels[] = {"low", "medium", "high", "highm1"};
  constexpr std::string_view kGovernors[] = {"conservative", "ondemand",  "performance",
                                             "powersave",    "schedutil", "userspace"};
  const std::string lower = text::to_lower(value.text);
  const auto is_level = [&](std::string_view word) {
    return std::ranges::find(kLevels, word) != std::end(kLevels) ||
           text::parse_number(word, UINT32_MAX).has_value();
  };
  const auto is_governor = [&](std::string_view word) {
    return std::ranges::find(kGovernors, word) != std::end(kGovernors);
  };
  if (is_governor(lower)) return {};
  const std::vector<std::string_view> parts = text::split(lower, ':');
  const std::vector<std::string_view> levels = text::split(parts[0], '-');
  if (parts.size() > 2 || (parts.size() == 2 && !is_governor(parts[1])) || levels.size() > 2 ||
      !std::ranges::all_of(levels, is_level)) {
    return invalid_value(value, "low, medium, high, highm1 or kHz, p1[-p2[:governor]]");
  }
  return {};
}

Applied segment(const Value& value, Request& request) {
  const auto number = text::parse_number(value.text, UINT16_MAX);
  if (number && *number > 0) {
    request.segment = static_cast<std::uint32_t>(*number);
    return {};
  }
  return invalid_value(value, "nodes in a block, from 1");
}

/// percent@time.
Applied mem_update(const Value& value, Request&) {
  const std::size_t at = value.text.find('@');
  if (at != std::string_view::npos && text::parse_number(value.text.substr(0, at), 100) &&
      text::parse_time_limit(value.text.substr(at + 1))) {
    return {};
  }
  return invalid_value(value, "percent@time");
}

constexpr std::uint64_t kMaxIndex = 4'000'000;     // what MaxArraySize can be set to
constexpr std::uint64_t kMaxWork = 4 * kMaxIndex;  // a list can name a long range again and again

/// a, a-b or a-b:step into `indices`; `work` counts the members written.
bool add_range(std::string_view item, Bits& indices, std::uint64_t& work) {
  const std::size_t dash = std::min(item.find('-'), item.size());
  const auto first = text::parse_number(item.substr(0, dash), kMaxIndex);
  if (!first) return false;
  if (dash == item.size()) {
    indices.set(*first);
    return true;
  }
  const std::string_view upper = item.substr(dash + 1);
  const std::size_t colon = std::min(upper.find(':'), upper.size());
  const auto last = text::parse_number(upper.substr(0, colon), kMaxIndex);
  const auto step = colon == upper.size() ? std::optional<std::uint64_t>(1)
                                          : text::parse_number(upper.substr(colon + 1), kMaxIndex);
  if (!last || !step || *step == 0 || *last < *first) return false;
  work += (*last - *first) / *step + 1;
  if (work > kMaxWork) return false;
  for (std::uint64_t i = *first; i <= *last; i += *step) indices.set(i);
  return true;
}

Applied array(const Value& value, Request& request) {
  if (!value.building) return {};
  std::string_view list = value.text;
  const std::size_t percent = std::min(list.find('%'), list.size());
  bool good = percent == list.size() || text::parse_number(list.substr(percent + 1), UINT32_MAX);
  list = list.substr(0, percent);
  if (list.size() >= 2 && list.front() == '[' && list.back() == ']') {
    list = list.substr(1, list.size() - 2);
  }
  Bits indices;
  std::uint64_t work = 0;
  for (const std::string_view item : text::split(list, ',')) {
    good = good && add_range(item, indices, work);
    if (!good) break;
  }
  if (!good) {
    return submission_failed(value.command, Code::bad_value, "Invalid job array specification",
                             fmt::format("--array={}: numbers and a-b[:step] apart by commas, then "
                                         "%most to run at once",
                                         value.text));
  }
  request.array = std::string(value.text);
  request.array_size = indices.count();
  request.array_indices = std::move(indices);
  return {};
}

/// "123", "123_4", "123_*", with "+minutes" behind after's.
bool is_job_reference(std::string_view id, bool minutes_allowed) {
  if (minutes_allowed) {
    const std::size_t plus = std::min(id.find('+'), id.size());
    if (plus < id.size() && !text::parse_number(id.substr(plus + 1), UINT32_MAX)) return false;
    id = id.substr(0, plus);
  }
  const std::size_t low = std::min(id.find('_'), id.size());
  if (!text::parse_number(id.substr(0, low), UINT32_MAX)) return false;
  if (low == id.size()) return true;
  const std::string_view index = id.substr(low + 1);
  return index == "*" || text::parse_number(index, UINT32_MAX).has_value();
}

/// type:id[:id…], a bare id (afterany), or singleton.
bool is_dependency(std::string_view item) {
  static constexpr std::string_view kTypes[] = {
      "after", "afterany", "afterok", "afternotok", "aftercorr", "afterburstbuffer", "expand"};
  if (item == "singleton") return true;
  const std::vector<std::string_view> parts = text::split(item, ':');
  const bool typed = std::ranges::find(kTypes, parts.front()) != std::end(kTypes);
  if (typed && parts.size() < 2) return false;
  return std::all_of(parts.begin() + (typed ? 1 : 0), parts.end(), [&](std::string_view id) {
    return is_job_reference(id, typed && parts.front() == "after");
  });
}

Applied dependency(const Value& value, Request& request) {
  if (value.building) {
    const char separator = value.text.find('?') != std::string_view::npos ? '?' : ',';
    for (const std::string_view item : text::split(value.text, separator)) {
      if (is_dependency(item)) continue;
      return submission_failed(
          value.command, Code::dependency_problem,
          std::string(slurm_text(Code::dependency_problem)),
          fmt::format(
              "--dependency={}: write type:id[:id], such as afterok:1234, with types after, "
              "afterany, afterok, afternotok, aftercorr; or singleton",
              value.text));
    }
  }
  request.dependency = std::string(value.text);
  return {};
}

}  // namespace

Apply queue_value(Opt opt) {
  switch (opt) {
    case Opt::time:
      return time_limit;
    case Opt::time_min:
      return time_min;
    case Opt::begin:
    case Opt::deadline:
      return moment;
    case Opt::delay_boot:
      return delay_boot;
    case Opt::signal:
      return signal;
    case Opt::mail_type:
      return mail_type;
    case Opt::profile:
      return profile;
    case Opt::propagate:
      return propagate;
    case Opt::open_mode:
      return open_mode;
    case Opt::kill_on_invalid_dep:
      return yes_or_no;
    case Opt::wait_all_nodes:
    case Opt::kill_on_bad_exit:
    case Opt::oom_kill_step:
      return zero_or_one;
    case Opt::gpu_idle_timeout:
      return gpu_idle_timeout;
    case Opt::no_kill:
      return no_kill;
    case Opt::requeue:
      return requeue;
    case Opt::acctg_freq:
      return acctg_freq;
    case Opt::nice:
      return nice;
    case Opt::priority:
      return priority;
    case Opt::switches:
      return switches;
    case Opt::uid:
    case Opt::gid:
      return root_only;
    case Opt::cpu_freq:
      return cpu_freq;
    case Opt::core_spec:
    case Opt::thread_spec:
      return count_from_zero;
    case Opt::segment:
      return segment;
    case Opt::mem_update:
      return mem_update;
    case Opt::array:
      return array;
    case Opt::dependency:
      return dependency;
    default:
      return nullptr;
  }
}

}  // namespace berth::request
