// What change_job_keys.h promises.
#include "controller/change_job_keys.h"

#include <fmt/format.h>

#include <array>

#include "controller/change_update.h"
#include "job/when.h"
#include "request/sizes.h"
#include "text/duration.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::controller {
namespace {

/// A key that is an option of sbatch: the word is "--option=value".
struct OptionKey {
  std::string_view key;
  std::string_view option;
  std::size_t letters;  // of the key that are enough
};
constexpr std::array kOptionKeys = {
    OptionKey{"Account", "account", 3},
    OptionKey{"CoreSpec", "core-spec", 4},
    OptionKey{"CPUsPerTask", "cpus-per-task", 9},
    OptionKey{"CpusPerTres", "cpus-per-gpu", 10},
    OptionKey{"DelayBoot", "delay-boot", 5},
    OptionKey{"ExcNodeList", "exclude", 3},
    OptionKey{"ExcludedNodes", "exclude", 4},
    OptionKey{"Extra", "extra", 4},
    OptionKey{"Features", "constraint", 1},
    OptionKey{"Gres", "gres", 2},
    OptionKey{"JobName", "job-name", 4},
    OptionKey{"Name", "job-name", 2},
    OptionKey{"Licenses", "licenses", 1},
    OptionKey{"MailType", "mail-type", 5},
    OptionKey{"MailUser", "mail-user", 5},
    OptionKey{"MinCPUsNode", "mincpus", 4},
    OptionKey{"MinMemoryCPU", "mem-per-cpu", 10},
    OptionKey{"MinMemoryNode", "mem", 10},
    OptionKey{"MinTmpDiskNode", "tmp", 5},
    OptionKey{"ReqNodeList", "nodelist", 8},
    OptionKey{"NodeList", "nodelist", 8},
    OptionKey{"NumNodes", "nodes", 4},
    OptionKey{"MinNodes", "nodes", 4},
    OptionKey{"ReqNodes", "nodes", 8},
    OptionKey{"NumTasks", "ntasks", 4},
    OptionKey{"ReqProcs", "ntasks", 4},
    OptionKey{"Partition", "partition", 2},
    OptionKey{"Prefer", "prefer", 3},
    OptionKey{"QOS", "qos", 1},
    OptionKey{"ReqCores", "cores-per-socket", 4},
    OptionKey{"ReqSockets", "sockets-per-node", 4},
    OptionKey{"ReqThreads", "threads-per-core", 4},
    OptionKey{"ReservationName", "reservation", 3},
    OptionKey{"StdErr", "error", 4},
    OptionKey{"StdIn", "input", 4},
    OptionKey{"StdOut", "output", 4},
    OptionKey{"Switches", "switches", 2},
    OptionKey{"TasksPerNode", "ntasks-per-node", 2},
    OptionKey{"NtasksPerNode", "ntasks-per-node", 7},
    OptionKey{"ThreadSpec", "thread-spec", 4},
    OptionKey{"TimeMin", "time-min", 5},
    OptionKey{"TresPerJob", "gpus", 8},
    OptionKey{"TresPerNode", "gres", 8},
    OptionKey{"TresPerTask", "tres-per-task", 8},
    OptionKey{"WCKey", "wckey", 1},
    OptionKey{"WorkDir", "chdir", 2},
};

constexpr std::array kRefusedKeys = {
    RefusedKey{"BurstBuffer", "berth has no burst buffers"},
    RefusedKey{"ClusterFeatures", "one berth serves one cluster; use Features="},
    RefusedKey{"Clusters", "one berth serves one cluster"},
    RefusedKey{"CPUsPerTres", "use CPUsPerTask="},
    RefusedKey{"MCSLabel", "berth keeps no security labels"},
    RefusedKey{"MemPerTres", "use MinMemoryNode="},
    RefusedKey{"Network", "choose the network with the program's own variables"},
    RefusedKey{"NumCPUs", "use NumTasks= and CPUsPerTask="},
    RefusedKey{"ReqCPUs", "use NumTasks= and CPUsPerTask="},
    RefusedKey{"Reboot", "jobs do not reboot nodes"},
    RefusedKey{"ResetAccrueTime", "berth has no age factor to reset"},
    RefusedKey{"SiteFactor", "use Priority= or Nice="},
    RefusedKey{"TresBind", "cancel the job and submit it again with --tres-bind"},
    RefusedKey{"TresFreq", "berth does not set the clocks of GPUs"},
    RefusedKey{"TresPerSocket", "use TresPerNode="},
    RefusedKey{"UserID", "cancel the job and submit it again with --uid"},
};

std::unexpected<Error> bad(std::string_view key, std::string_view value, std::string_view want) {
  return fail(Code::bad_value, fmt::format("Invalid {} value: {}", key, value), std::string(want));
}

std::optional<bool> yes_or_no(std::string_view value) {
  for (const char* word : {"yes", "1", "true", "ok"}) {
    if (text::equal_ignoring_case(value, word)) return true;
  }
  for (const char* word : {"no", "0", "false"}) {
    if (text::equal_ignoring_case(value, word)) return false;
  }
  return std::nullopt;
}

/// "30", "+30", "-10", "UNLIMITED".
Result<std::optional<std::uint32_t>> time_limit(std::string_view value, const job::Job& current) {
  const char sign = value.empty() ? '\0' : value.front();
  const bool relative = (sign == '+' || sign == '-') && value != "-1";
  const auto limit = text::parse_time_limit(relative ? value.substr(1) : value);
  const auto invalid = [&] {
    return fail(Code::invalid_time_limit, std::string(slurm_text(Code::invalid_time_limit)),
                "write minutes, hours:minutes:seconds, days-hours, or UNLIMITED");
  };
  if (!limit || (relative && limit->unlimited)) return invalid();
  if (!relative) {
    if (limit->unlimited || limit->minutes == 0) return std::optional<std::uint32_t>();
    return std::optional(limit->minutes);
  }
  if (!current.time_limit_minutes) return invalid();
  const std::int64_t minutes = std::int64_t{*current.time_limit_minutes} +
                               (sign == '+' ? 1 : -1) * std::int64_t{limit->minutes};
  if (minutes < 1 || minutes > UINT32_MAX - 3) return invalid();
  return std::optional(static_cast<std::uint32_t>(minutes));
}

Result<job::Time> moment(std::string_view key, std::string_view value, job::Time now) {
  std::size_t position = 0;
  const auto time = job::parse_when(value, now);
  if (!text::valid_time_spec(value, position) || !time) {
    return fail(Code::bad_value,
                fmt::format("Invalid time specification (pos={}): {}", position, value),
                fmt::format("{} takes what --begin takes, e.g. 16:00, now+1hour, 2027-01-20", key));
  }
  return *time;
}

/// Keys that are not options. False: it is none of them.
Result<bool> add_state_key(JobUpdate& update, std::string_view key, std::string_view value,
                           const job::Job& current, job::Time now) {
  job::JobChange& change = update.change;
  const request::Opt like =
      is_key(key, "Dependency", 3) ? request::Opt::dependency : request::Opt::comment;
  const std::size_t most = request::most_bytes(like);
  if (is_key(key, "TimeLimit", 4) && !is_key(key, "TimeMin", 5)) {
    auto limit = time_limit(value, current);
    if (!limit) return pass(std::move(limit.error()));
    change.time_limit_minutes = *limit;
  } else if (is_key(key, "Priority", 3)) {
    const auto number = text::parse_number(value, UINT32_MAX - 2);
    if (!number) return bad(key, value, "a whole number; 0 holds the job");
    change.priority = static_cast<std::uint32_t>(*number);
  } else if (is_key(key, "Nice", 2)) {
    const bool negative = value.starts_with('-');
    const auto number = value.empty()
                            ? std::optional<std::uint64_t>(100)
                            : text::parse_number(value.substr(negative ? 1 : 0), 2147483645);
    if (!number) return bad(key, value, "a whole number");
    change.nice = static_cast<std::int32_t>(*number) * (negative ? -1 : 1);
  } else if (is_key(key, "Comment", 3)) {
    if (value.size() > most) return request::too_long(key, value.size(), most);
    change.comment = std::string(value);
  } else if (is_key(key, "AdminComment", 3)) {
    if (value.size() > most) return request::too_long(key, value.size(), most);
    change.admin_comment = std::string(value);
  } else if (is_key(key, "ArrayTaskThrottle", 5)) {
    const auto number = text::parse_number(value, UINT32_MAX - 2);
    if (!number) return bad(key, value, "a whole number; 0 is no limit");
    change.array_throttle = static_cast<std::uint32_t>(*number);
  } else if (is_key(key, "Requeue", 4)) {
    change.requeue = yes_or_no(value);
    if (!change.requeue) return bad(key, value, "0 or 1");
  } else if (is_key(key, "StartTime", 5) || is_key(key, "EligibleTime", 3)) {
    const auto time = moment(key, value, now);
    if (!time) return pass(time.error());
    change.begin_time = *time;
    change.begin_is_length = text::when_is_length(value);
  } else if (is_key(key, "EndTime", 2)) {
    const auto time = moment(key, value, now);
    if (!time) return pass(time.error());
    change.end_time = *time;
  } else if (is_key(key, "Deadline", 4)) {
    const auto time = moment(key, value, now);
    if (!time) return pass(time.error());
    change.deadline = *time;
    change.deadline_is_length = text::when_is_length(value);
  } else if (text::equal_ignoring_case(key, "GpuIdleTimeout")) {
    change.gpu_idle_seconds = text::parse_limit_in_seconds(value);
    if (!change.gpu_idle_seconds) {
      return bad(key, value, "minutes, hours:minutes:seconds, 90s, 30m, 2h, 0 or UNLIMITED");
    }
  } else if (is_key(key, "Dependency", 3)) {
    if (value.size() > most) return request::too_long(key, value.size(), most);
    change.dependency = std::string(value);
  } else {
    return false;
  }
  update.has_change = true;
  return true;
}

/// "gres/gpu:2" and "gres/gpu=2" as --gres and --gpus write them.
std::string without_prefix(std::string_view option, std::string_view value) {
  std::string text(value);
  if (option != "gres" && option != "gpus" && option != "cpus-per-gpu") return text;
  if (text.starts_with("gres/") || text.starts_with("gres:")) text.erase(0, 5);
  if (option == "gres") return text;
  if (text.starts_with("gpu:") || text.starts_with("gpu=")) text.erase(0, 4);
  return text;
}

std::string nearest_key(std::string_view key) {
  std::vector<std::string_view> known = {
      "TimeLimit",     "Priority",          "Nice",          "Comment", "StartTime",
      "EndTime",       "Deadline",          "Dependency",    "Requeue", "Contiguous",
      "OverSubscribe", "ArrayTaskThrottle", "GpuIdleTimeout"};
  for (const OptionKey& row : kOptionKeys) known.push_back(row.key);
  return text::nearest(key, known);
}

}  // namespace

Result<void> add_job_key(JobUpdate& update, std::string_view key, std::string_view value,
                         const job::Job& current, job::Time now) {
  for (const RefusedKey& row : kRefusedKeys) {
    if (text::equal_ignoring_case(key, row.key)) {
      return refused(row);
    }
  }
  auto known = add_state_key(update, key, value, current, now);
  if (!known) return pass(std::move(known.error()));
  if (*known) return {};
  if (is_key(key, "Contiguous", 3) || is_key(key, "OverSubscribe", 5) || is_key(key, "Shared", 2)) {
    const bool contiguous = is_key(key, "Contiguous", 3);
    const auto wanted = yes_or_no(value);
    if (!wanted) return bad(key, value, "yes or no");
    if (!*wanted) {
      return fail(Code::unsupported, fmt::format("{}=no is not supported by berth", key),
                  "cancel the job and submit it again without the option");
    }
    update.words.emplace_back(contiguous ? "--contiguous" : "--oversubscribe");
    return {};
  }
  const OptionKey* found = nullptr;
  for (const OptionKey& row : kOptionKeys) {
    if (text::equal_ignoring_case(key, row.key)) found = &row;
  }
  for (const OptionKey& row : kOptionKeys) {
    if (found == nullptr && is_key(key, row.key, row.letters)) found = &row;
  }
  if (found == nullptr) {
    const std::string near = nearest_key(key);
    return fail(Code::bad_value,
                fmt::format("Update of this parameter is not supported: {}={}", key, value),
                near.empty() ? "`scontrol --help` shows where the keys are listed"
                             : fmt::format("did you mean {}?", near));
  }
  update.words.push_back(
      fmt::format("--{}={}", found->option, without_prefix(found->option, value)));
  return {};
}

}  // namespace berth::controller
