// One table from the name of a key to its field; the few keys with a form of their own come first.
#include "conf/daemon_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "conf/gpu_parameters.h"
#include "conf/process_parameters.h"
#include "conf/values.h"
#include "text/cpumask.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::conf {
namespace {

constexpr std::uint32_t kMaxSeconds = 65533;  // what Slurm keeps timeouts in
constexpr std::uint32_t kLargest = UINT32_MAX - 2;

bool unlimited(const Pair& pair) {
  return text::equal_ignoring_case(pair.value, "UNLIMITED") ||
         text::equal_ignoring_case(pair.value, "INFINITE") || pair.value == "-1";
}

using K = DaemonKeys;
enum class Letters { as_written, lower, upper };

struct Count {
  std::uint32_t K::* field;
  std::uint32_t max = kMaxSeconds;
  std::uint32_t min = 0;
};
struct Limit {
  std::optional<std::uint32_t> K::* field;
};
struct Text {
  std::string K::* field;
};
struct Flag {
  bool K::* field;
};
struct Choice {
  std::optional<bool> K::* field;
};
struct Words {
  std::vector<std::string> K::* field;
  Letters letters = Letters::as_written;
  bool adds = false;  // each line adds to the ones before it
};
struct Options {
  Parameters K::* field;
};
struct Row {
  std::string_view key;
  std::variant<Count, Limit, Text, Flag, Choice, Words, Options> to;
};

constexpr auto kRows = std::to_array<Row>({
    {"SlurmdPort", Count{&K::node_port, 65535, 1}},
    {"SlurmUser", Text{&K::slurm_user}},
    {"SlurmdUser", Text{&K::slurmd_user}},
    {"AuthType", Text{&K::auth_type}},
    {"StateSaveLocation", Text{&K::state_save_location}},
    {"SlurmdSpoolDir", Text{&K::spool_dir}},
    {"SlurmctldPidFile", Text{&K::controller_pid_file}},
    {"SlurmdPidFile", Text{&K::node_pid_file}},
    {"SlurmctldLogFile", Text{&K::controller_log}},
    {"SlurmdLogFile", Text{&K::node_log}},
    {"SlurmctldDebug", Text{&K::controller_debug}},
    {"SlurmdDebug", Text{&K::node_debug}},
    {"TmpFS", Text{&K::tmp_fs}},
    {"SlurmctldTimeout", Count{&K::controller_timeout_seconds}},
    {"SlurmdTimeout", Count{&K::node_timeout_seconds}},
    {"ReturnToService", Count{&K::return_to_service, 2}},
    {"KillWait", Count{&K::kill_wait_seconds}},
    {"KillOnBadExit", Choice{&K::kill_on_bad_exit}},
    {"WaitTime", Count{&K::wait_seconds}},
    {"InactiveLimit", Count{&K::inactive_seconds}},
    {"MinJobAge", Count{&K::min_job_age_seconds, kLargest}},
    {"BatchStartTimeout", Count{&K::batch_start_timeout_seconds}},
    {"CompleteWait", Count{&K::complete_wait_seconds}},
    {"OverTimeLimit", Limit{&K::over_time_limit_minutes}},
    {"ResvOverRun", Limit{&K::reservation_overrun_minutes}},
    {"UnkillableStepTimeout", Count{&K::unkillable_seconds}},
    {"UnkillableStepProgram", Text{&K::unkillable_program}},
    {"TreeWidth", Count{&K::tree_width, 65533, 1}},
    {"FirstJobId", Count{&K::first_job_id, kLargest, 1}},
    {"MaxJobId", Count{&K::max_job_id, 67043328, 1}},
    {"MaxJobCount", Count{&K::max_job_count, kLargest, 1}},
    {"MaxStepCount", Count{&K::max_step_count, kLargest, 1}},
    {"MaxBatchRequeue", Count{&K::max_batch_requeue, kLargest}},
    {"JobRequeue", Flag{&K::job_requeue}},
    {"JobFileAppend", Flag{&K::job_file_append}},
    {"Prolog", Words{&K::prolog, Letters::as_written, true}},
    {"Epilog", Words{&K::epilog, Letters::as_written, true}},
    {"PrologSlurmctld", Text{&K::prolog_controller}},
    {"EpilogSlurmctld", Text{&K::epilog_controller}},
    {"TaskProlog", Text{&K::task_prolog}},
    {"TaskEpilog", Text{&K::task_epilog}},
    {"SrunProlog", Text{&K::srun_prolog}},
    {"SrunEpilog", Text{&K::srun_epilog}},
    {"PrologFlags", Words{&K::prolog_flags, Letters::lower}},
    {"PrologTimeout", Limit{&K::prolog_timeout_seconds}},
    {"EpilogTimeout", Limit{&K::epilog_timeout_seconds}},
    {"HealthCheckProgram", Text{&K::health_check_program}},
    {"HealthCheckInterval", Count{&K::health_check_seconds}},
    {"HealthCheckNodeState", Text{&K::health_check_node_state}},
    {"PrivateData", Words{&K::private_data, Letters::lower}},
    {"PropagateResourceLimits", Words{&K::propagate_limits, Letters::upper}},
    {"PropagateResourceLimitsExcept", Words{&K::propagate_limits_except, Letters::upper}},
    {"PropagatePrioProcess", Count{&K::propagate_niceness, 2}},
    {"DisableRootJobs", Flag{&K::disable_root_jobs}},
    {"Licenses", Text{&K::licenses}},
    {"ProctrackType", Text{&K::proctrack_type}},
    {"SchedulerType", Text{&K::scheduler_type}},
    {"SchedulerParameters", Options{&K::scheduler}},
    {"LaunchParameters", Options{&K::launch}},
    {"SlurmctldParameters", Options{&K::controller}},
    {"SlurmdParameters", Options{&K::node}},
    {"DependencyParameters", Options{&K::dependency}},
    {"InteractiveStepOptions", Text{&K::interactive_step_options}},
    {"AccountingStorageType", Text{&K::accounting_storage_type}},
    {"AccountingStorageEnforce", Words{&K::accounting_enforce, Letters::lower}},
    {"AccountingStorageTRES", Words{&K::accounting_tres, Letters::lower}},
    {"MpiParams", Text{&K::mpi_params}},
    {"MailProg", Text{&K::mail_program}},
});

std::string in_letters(std::string word, Letters letters) {
  if (letters == Letters::lower) return text::to_lower(word);
  if (letters == Letters::upper) return text::to_upper(word);
  return word;
}

struct Apply {
  const Pair& pair;
  K& keys;
  Complaints& complaints;

  void operator()(const Count& to) const {
    if (const auto value = number(pair, to.min, to.max, complaints)) keys.*to.field = value->value;
  }
  void operator()(const Limit& to) const {
    if (unlimited(pair)) {
      (keys.*to.field).reset();
    } else if (const auto value = number(pair, 0, kLargest, complaints)) {
      keys.*to.field = value->value;
    }
  }
  void operator()(const Text& to) const {
    // "(null)" is how `scontrol show config` writes what is not set.
    keys.*to.field = pair.value == "(null)" ? std::string() : pair.value;
  }
  void operator()(const Flag& to) const {
    if (const auto value = boolean(pair, complaints)) keys.*to.field = value->value;
  }
  void operator()(const Choice& to) const {
    if (const auto value = boolean(pair, complaints)) keys.*to.field = value->value;
  }
  void operator()(const Words& to) const {
    std::vector<std::string>& field = keys.*to.field;
    if (!to.adds) field.clear();
    for (const std::string& word : word_list(pair).value) {
      if (!text::equal_ignoring_case(word, "none") && word != "(null)") {
        field.push_back(in_letters(word, to.letters));
      }
    }
  }
  void operator()(const Options& to) const {
    (keys.*to.field).clear();
    for (const std::string& word : word_list(pair).value) {
      const std::size_t equals = word.find('=');
      (keys.*to.field)[text::to_lower(word.substr(0, equals))] =
          equals == std::string::npos ? "" : word.substr(equals + 1);
    }
  }
};

/// "host(address)", or several between commas as older files have them.
void controller_host(const Pair& pair, DaemonKeys& keys, Complaints& complaints) {
  const std::string_view text = pair.value;
  const std::size_t open = text.find('(');
  ControllerHost host{std::string(text.substr(0, open)), {}};
  if (open != std::string_view::npos) {
    if (!text.ends_with(')')) {
      complaints.error(pair.at, fmt::format("{}={}: allowed is a host name, or name(address)",
                                            pair.key, shown(pair.value)));
      return;
    }
    host.address = text.substr(open + 1, text.size() - open - 2);
  }
  if (host.address.empty()) host.address = host.name;
  if (host.name.empty()) {
    complaints.error(pair.at, fmt::format("{}= is empty", pair.key));
    return;
  }
  keys.controllers.push_back(std::move(host));
}

/// A port, or a range of which the first counts.
void controller_port(const Pair& pair, DaemonKeys& keys, Complaints& complaints) {
  Pair first = pair;
  first.value = pair.value.substr(0, pair.value.find('-'));
  if (const auto port = number(first, 1, 65535, complaints)) keys.controller_port = port->value;
}

/// "30", or "task=30,energy=0,…": how often tasks are looked at. The other kinds are not gathered.
void gather_frequency(const Pair& pair, DaemonKeys& keys, Complaints& complaints) {
  keys.gather_frequency = pair.value;
  for (const std::string& word : word_list(pair).value) {
    const std::size_t equals = word.find('=');
    const std::string kind = text::to_lower(word.substr(0, equals));
    const std::string value = equals == std::string::npos ? word : word.substr(equals + 1);
    constexpr std::uint32_t kMostSeconds = 86400;
    const auto seconds = text::parse_number(value, kMostSeconds);
    const bool known = equals == std::string::npos || kind == "task" || kind == "energy" ||
                       kind == "network" || kind == "filesystem";
    if (!known || !seconds) {
      complaints.error(pair.at,
                       fmt::format("{}={}: allowed is a number of seconds, or task=SECONDS, up to "
                                   "{}",
                                   pair.key, shown(pair.value), kMostSeconds));
      return;
    }
    if (equals == std::string::npos || kind == "task") {
      keys.gather_seconds = static_cast<std::uint32_t>(*seconds);
    } else if (*seconds > 0) {
      complaints.warn(pair.at, fmt::format("{}: {} is not gathered", pair.key, kind));
    }
  }
}

void gather_type(const Pair& pair, DaemonKeys& keys, Complaints& complaints) {
  const std::string type = text::to_lower(pair.value);
  if (type != "jobacct_gather/none" && type != "jobacct_gather/linux" &&
      type != "jobacct_gather/cgroup") {
    complaints.error(pair.at,
                     fmt::format("{}={}: allowed are jobacct_gather/cgroup, jobacct_gather/linux "
                                 "and jobacct_gather/none",
                                 pair.key, shown(pair.value)));
    return;
  }
  keys.gather_type = type;
}

void exit_codes(const Pair& pair, std::vector<std::uint32_t>& codes, Complaints& complaints) {
  const auto ids = text::parse_id_set(pair.value);
  if (!ids) {
    complaints.error(pair.at, fmt::format("{}={}: allowed is a list of exit codes like 10,12-15",
                                          pair.key, shown(pair.value)));
    return;
  }
  codes.clear();
  for (std::uint32_t code = 0; code < 256; ++code) {
    if (ids->test(code)) codes.push_back(code);
  }
}

/// What LaunchParameters says of berth's own.
void failure_grace(const Pair& pair, DaemonKeys& keys, Complaints& complaints) {
  keys.failure_grace.reset();
  const auto given = keys.launch.find("failure_grace");
  if (given == keys.launch.end()) return;
  if (const auto seconds = text::parse_number(given->second, kMaxSeconds)) {
    keys.failure_grace = static_cast<std::uint32_t>(*seconds);
    return;
  }
  complaints.error(pair.at, fmt::format("{}=failure_grace{}{}: allowed is failure_grace=SECONDS, "
                                        "0 to {} (0 = the others may go on for ever)",
                                        pair.key, given->second.empty() ? "" : "=",
                                        shown(given->second), kMaxSeconds));
}

/// What SlurmctldParameters says of berth's own.
void requeue_lease(const Pair& pair, DaemonKeys& keys, Complaints& complaints) {
  constexpr std::uint32_t kWeek = 7 * 24 * 3600;
  keys.requeue_lease = DaemonKeys().requeue_lease;
  const auto given = keys.controller.find("requeue_lease");
  if (given == keys.controller.end()) return;
  if (const auto seconds = text::parse_number(given->second, kWeek); seconds && *seconds > 0) {
    keys.requeue_lease = static_cast<std::uint32_t>(*seconds);
    return;
  }
  complaints.error(pair.at, fmt::format("{}=requeue_lease{}{}: allowed is requeue_lease=SECONDS, 1 "
                                        "to {}",
                                        pair.key, given->second.empty() ? "" : "=",
                                        shown(given->second), kWeek));
}

/// What SlurmdParameters says of berth's own.
void own_node_parameters(const Pair& pair, const DaemonKeys& keys, Complaints& complaints) {
  const auto complain = [&](const auto& read) {
    if (!read) complaints.error(pair.at, fmt::format("{}={}", pair.key, read.error().what()));
  };
  complain(gpu_parameters(keys.node));
  complain(process_parameters(keys.node));
}

/// The words of MpiParams.
void mpi_parameters(const Pair& pair, DaemonKeys& keys, Complaints& complaints) {
  keys.step_ports.reset();
  keys.hydra_bootstrap = true;
  for (const std::string& word : word_list(pair).value) {
    constexpr std::string_view kPorts = "ports=";
    constexpr std::string_view kNoHydra = "disable_slurm_hydra_bootstrap";
    if (text::equal_ignoring_case(word, kNoHydra)) {
      keys.hydra_bootstrap = false;
      continue;
    }
    if (!text::equal_ignoring_case(word.substr(0, kPorts.size()), kPorts)) {
      complaints.warn(pair.at, fmt::format("{}={}: not used; known are ports=FIRST-LAST and {}",
                                           pair.key, shown(word), kNoHydra));
      continue;
    }
    const std::string_view value = std::string_view(word).substr(kPorts.size());
    const std::size_t dash = value.find('-');
    const auto first = text::parse_number(value.substr(0, dash), UINT16_MAX);
    const auto last = dash == std::string_view::npos
                          ? std::nullopt
                          : text::parse_number(value.substr(dash + 1), UINT16_MAX);
    if (!first || !last || *first == 0 || *first > *last) {
      complaints.error(pair.at, fmt::format("{}={}: allowed is ports=FIRST-LAST, such as "
                                            "ports=20000-29999",
                                            pair.key, shown(word)));
      continue;
    }
    keys.step_ports = {static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last)};
  }
}

}  // namespace

std::uint32_t DaemonKeys::failure_grace_seconds() const {
  constexpr std::uint32_t kDefault = 30;
  // Who says in so many words that a failed task ends nothing means all tasks of all steps.
  return failure_grace.value_or(kill_on_bad_exit == false ? 0 : kDefault);
}

bool apply_daemon_pair(const Pair& pair, DaemonKeys& keys, Complaints& complaints) {
  if (apply_priority_pair(pair, keys.priority, complaints)) return true;
  if (apply_preempt_pair(pair, keys.preempt, complaints)) return true;
  if (apply_power_pair(pair, keys.power, complaints)) return true;
  if (is(pair, "SlurmctldHost")) {
    controller_host(pair, keys, complaints);
    return true;
  }
  if (is(pair, "JobAcctGatherFrequency")) {
    gather_frequency(pair, keys, complaints);
    return true;
  }
  if (is(pair, "JobAcctGatherType")) {
    gather_type(pair, keys, complaints);
    return true;
  }
  if (is(pair, "SlurmctldPort")) {
    controller_port(pair, keys, complaints);
    return true;
  }
  if (is(pair, "PrologEpilogTimeout")) {
    Apply{pair, keys, complaints}(Limit{&K::prolog_timeout_seconds});
    keys.epilog_timeout_seconds = keys.prolog_timeout_seconds;
    return true;
  }
  if (is(pair, "RequeueExit") || is(pair, "RequeueExitHold")) {
    exit_codes(pair, is(pair, "RequeueExit") ? keys.requeue_exit : keys.requeue_exit_hold,
               complaints);
    return true;
  }
  const auto row = std::ranges::find_if(kRows, [&](const Row& r) { return is(pair, r.key); });
  if (row == kRows.end()) return false;
  std::visit(Apply{pair, keys, complaints}, row->to);
  if (is(pair, "LaunchParameters")) failure_grace(pair, keys, complaints);
  if (is(pair, "SlurmctldParameters")) requeue_lease(pair, keys, complaints);
  if (is(pair, "SlurmdParameters")) own_node_parameters(pair, keys, complaints);
  if (is(pair, "MpiParams")) mpi_parameters(pair, keys, complaints);
  return true;
}

}  // namespace berth::conf
