// States of jobs and nodes: Slurm's names, short forms and numbers, and which one is shown when
// there are several.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/info.pb.h"

namespace berth::command {

struct StateName {
  std::string_view name;   // "PENDING"
  std::string_view brief;  // "PD"
  bool flag = false;
};

/// The state a job is shown in: the first of its flags, else the base state.
const StateName& shown_state(const wire::JobInfo& job);
/// Order of states: base state's number, flags above all.
std::int64_t state_number(const wire::JobInfo& job);
/// Base state COMPLETED or later.
bool has_ended(const wire::JobInfo& job);

/// "PD,running,…" → full names; "all" gives `all`. The error names the word and lists what there
/// is.
struct StateFilter {
  bool all = false;
  std::vector<std::string> names;
};
Result<StateFilter> parse_states(std::string_view list);
/// The list of --helpstate.
std::string states_help();
/// Without names: jobs that have not ended, and COMPLETING ones.
bool matches(const StateFilter& filter, const wire::JobInfo& job);

/// "mixed-", "idle*", "drained", …; compact "mix-", "idle*", "drain".
void append_node_state(std::string& out, const wire::NodeInfo& node, bool compact);
/// "idle+drain": everything.
void append_whole_node_state(std::string& out, const wire::NodeInfo& node);
/// For sorting: flags above base states.
std::int64_t node_state_number(const wire::NodeInfo& node);
bool has_flag(const wire::NodeInfo& node, std::string_view flag);
/// sinfo -t: all of the words of an "a&b" term, any of the comma-separated terms.
struct NodeStateFilter {
  std::vector<std::vector<std::string>> any_of_all;
};
Result<NodeStateFilter> parse_node_states(std::string_view list);
bool matches(const NodeStateFilter& filter, const wire::NodeInfo& node);

}  // namespace berth::command
