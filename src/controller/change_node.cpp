// scontrol update NodeName=.
#include <fmt/format.h>

#include <array>

#include "controller/change_update.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::controller {
namespace {

struct StateWord {
  std::string_view word;
  std::size_t letters;
  std::string_view reason_for = {};  // "DRAINING": a reason must be given
};
constexpr std::array kStates = {
    StateWord{"DRAIN", 2, "DRAINING"},
    StateWord{"DOWN", 2, "DOWNING"},
    StateWord{"FAIL", 3, "FAILING"},
    StateWord{"RESUME", 1},
    StateWord{"UNDRAIN", 3},
    StateWord{"IDLE", 1},
    StateWord{"NORESP", 3},
    StateWord{"POWER_UP", 7},
    StateWord{"POWER_DOWN", 7},
    StateWord{"POWER_DOWN_ASAP", 12},
    StateWord{"POWER_DOWN_FORCE", 12},
};

constexpr std::array kRefused = {
    RefusedKey{"ResumeAfter", "resume the node when it is ready: State=RESUME"},
    RefusedKey{"Gres", "change Gres= in slurm.conf, then scontrol reconfigure"},
    RefusedKey{"CpuBind", "use --cpu-bind, or TaskPluginParam in slurm.conf"},
    RefusedKey{"NodeAddr", "change NodeAddr= in slurm.conf, then scontrol reconfigure"},
    RefusedKey{"NodeHostName", "change NodeHostName= in slurm.conf, then scontrol reconfigure"},
    RefusedKey{"InstanceId", "use Comment= or Extra="},
    RefusedKey{"InstanceType", "use Comment= or Extra="},
    RefusedKey{"Topology", "berth plans without a topology"},
};

Result<std::string> state_word(std::string_view value) {
  for (const StateWord& row : kStates) {
    if (is_key(value, row.word, row.letters)) return std::string(row.word);
  }
  std::string instead =
      "DOWN, DRAIN, FAIL, IDLE, RESUME, UNDRAIN, POWER_UP, POWER_DOWN, POWER_DOWN_ASAP and "
      "POWER_DOWN_FORCE are known";
  if (text::equal_ignoring_case(value, "cancel_reboot")) {
    instead = "berth does not reboot nodes";
  } else if (text::equal_ignoring_case(value, "future")) {
    instead = "write State=FUTURE in slurm.conf, then scontrol reconfigure";
  }
  return fail(Code::bad_value, fmt::format("Invalid node state specified: {}", value), instead);
}

Result<void> add_key(job::NodeChange& change, const std::string& key, const std::string& value) {
  if (is_key(key, "State", 1)) {
    auto word = state_word(value);
    if (!word) return pass(std::move(word.error()));
    change.state = std::move(*word);
    return {};
  }
  if (is_key(key, "Reason", 1)) {
    change.reason = value;
    return {};
  }
  if (is_key(key, "Comment", 3)) {
    change.comment = value;
    return {};
  }
  if (is_key(key, "Extra", 2)) {
    change.extra = value;
    return {};
  }
  if (is_key(key, "Weight", 1)) {
    const auto number = text::parse_number(value, UINT32_MAX - 2);
    if (!number) return fail(Code::bad_value, fmt::format("Invalid Weight value: {}", value));
    change.weight = static_cast<std::uint32_t>(*number);
    return {};
  }
  if (is_key(key, "Features", 1) || is_key(key, "AvailableFeatures", 3) ||
      is_key(key, "ActiveFeatures", 3)) {
    change.features = value;
    return {};
  }
  for (const RefusedKey& row : kRefused) {
    if (is_key(key, row.key, 3)) {
      return refused(row);
    }
  }
  return fail(Code::bad_value,
              fmt::format("Update of this parameter is not supported: {}={}", key, value),
              "State, Reason, Weight, Features, Comment and Extra of a node can be changed");
}

/// A node that leaves service has to say why.
Result<void> check_reason(const job::NodeChange& change, const job::State& state,
                          const std::string& name) {
  if (!change.state || !change.reason.value_or("").empty()) return {};
  for (const StateWord& row : kStates) {
    if (row.word != *change.state || row.reason_for.empty()) continue;
    const job::NodeState* node = state.find_node(name);
    if (node != nullptr && !node->reason.empty() && !change.reason) return {};
    Error error;
    error.code = Code::bad_value;
    error.messages.push_back(
        {Severity::bare,
         fmt::format("You must specify a reason when {} a node. Request denied", row.reason_for)});
    error.hint = "add Reason=\"…\"";
    return std::unexpected(std::move(error));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> nodes_meant(const job::State& state, const std::string& list) {
  std::vector<std::string> names;
  if (text::equal_ignoring_case(list, "ALL")) {
    for (const cluster::Node& node : state.cluster().nodes) names.push_back(node.name);
    return names;
  }
  auto expanded = text::expand_hostlist(list);
  if (!expanded) {
    return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
                std::string(expanded.error().what()));
  }
  for (const std::string& name : *expanded) {
    if (!state.cluster().find_node(name)) {
      return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
                  fmt::format("{} is not in slurm.conf", name));
    }
  }
  return std::move(*expanded);
}

Result<void> change_node(job::State& state, const Caller& caller, const wire::Change& ask,
                         job::Time now) {
  if (!caller.privileged) return pass(job::job_error(job::JobFault::not_yours));
  job::NodeChange change;
  change.caller = caller;
  for (const wire::Variable& key : ask.keys()) {
    if (is_key(key.name(), "NodeName", 4)) continue;
    if (auto added = add_key(change, key.name(), key.value()); !added) return added;
  }
  const auto names = nodes_meant(state, selected(ask, "NodeName", 4));
  if (!names) return pass(names.error());
  for (const std::string& name : *names) {
    if (auto fine = check_reason(change, state, name); !fine) return fine;
  }
  for (const std::string& name : *names) {
    if (auto done = state.change_node(name, change, now); !done) return done;
  }
  return {};
}

}  // namespace berth::controller
