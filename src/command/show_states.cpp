#include "command/show_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "command/show_text.h"
#include "text/words.h"

namespace berth::command {
namespace {

constexpr std::array kBases = {
    StateName{"PENDING", "PD"},   StateName{"RUNNING", "R"},    StateName{"SUSPENDED", "S"},
    StateName{"COMPLETED", "CD"}, StateName{"CANCELLED", "CA"}, StateName{"FAILED", "F"},
    StateName{"TIMEOUT", "TO"},   StateName{"NODE_FAIL", "NF"}, StateName{"PREEMPTED", "PR"},
    StateName{"BOOT_FAIL", "BF"}, StateName{"DEADLINE", "DL"},  StateName{"OUT_OF_MEMORY", "OOM"},
};
constexpr std::size_t kFirstEnded = 3;

// In the order in which they are preferred.
constexpr std::array kFlags = {
    StateName{"COMPLETING", "CG", true},   StateName{"STAGE_OUT", "SO", true},
    StateName{"CONFIGURING", "CF", true},  StateName{"EXPEDITING", "EX", true},
    StateName{"RESIZING", "RS", true},     StateName{"REQUEUED", "RQ", true},
    StateName{"REQUEUE_FED", "RF", true},  StateName{"REQUEUE_HOLD", "RH", true},
    StateName{"SPECIAL_EXIT", "SE", true}, StateName{"STOPPED", "ST", true},
    StateName{"REVOKED", "RV", true},      StateName{"RESV_DEL_HOLD", "RD", true},
    StateName{"SIGNALING", "SI", true},
};
// Flags that users may name although no job is shown by them.
constexpr std::array kSilentFlags = {
    StateName{"LAUNCH_FAILED", "LF", true},
    StateName{"RECONFIG_FAIL", "RECONFIG_FAIL", true},
    StateName{"POWER_UP_NODE", "PO", true},
};

bool has(const wire::JobInfo& job, std::string_view flag) {
  return std::ranges::find(job.flags(), flag) != job.flags().end();
}

std::size_t base_index(const wire::JobInfo& job) {
  for (std::size_t i = 0; i < kBases.size(); ++i) {
    if (kBases[i].name == job.state()) return i;
  }
  return 0;
}

const StateName* find_state(std::string_view word) {
  const auto in = [&](const auto& table) -> const StateName* {
    for (const StateName& state : table) {
      if (text::equal_ignoring_case(state.name, word) ||
          text::equal_ignoring_case(state.brief, word)) {
        return &state;
      }
    }
    return nullptr;
  };
  if (const StateName* base = in(kBases)) return base;
  if (const StateName* flag = in(kFlags)) return flag;
  return in(kSilentFlags);
}

struct NodeWord {
  std::string_view full;
  std::string_view brief;
};

/// The word a node is shown by, before its suffix.
NodeWord node_word(const wire::NodeInfo& node) {
  const std::string& base = node.state();
  const bool busy = base == "ALLOCATED" || base == "MIXED" || has_flag(node, "COMPLETING");
  if (has_flag(node, "INVALID_REG")) return {"inval", "inval"};
  if (has_flag(node, "MAINT") && !busy && base != "DOWN" && !has_flag(node, "DRAIN")) {
    return {"maint", "maint"};
  }
  if (has_flag(node, "DRAIN")) {
    return busy ? NodeWord{"draining", "drng"} : NodeWord{"drained", "drain"};
  }
  if (has_flag(node, "FAIL")) return busy ? NodeWord{"failing", "failg"} : NodeWord{"fail", "fail"};
  if (base == "DOWN") return {"down", "down"};
  if (base == "ALLOCATED") return {"allocated", "alloc"};
  if (has_flag(node, "COMPLETING") && base != "MIXED") return {"completing", "comp"};
  if (base == "MIXED") return {"mixed", "mix"};
  if (base == "IDLE") {
    if (has_flag(node, "RESERVED")) return {"reserved", "resv"};
    if (has_flag(node, "PLANNED")) return {"planned", "plnd"};
    return {"idle", "idle"};
  }
  if (base == "FUTURE") return {"future", "futr"};
  return {"unknown", "unk"};
}

/// One character about what goes on beside the state; '\0' = nothing.
char node_suffix(const wire::NodeInfo& node) {
  const bool busy = node.state() == "ALLOCATED" || node.state() == "MIXED";
  if (has_flag(node, "POWERING_UP")) return '#';
  if (has_flag(node, "POWERING_DOWN")) return '%';
  if (has_flag(node, "POWERED_DOWN")) return '~';
  if (has_flag(node, "POWER_DOWN")) return '!';
  if (has_flag(node, "NOT_RESPONDING")) return '*';
  if (has_flag(node, "REBOOT_ISSUED")) return '^';
  if (has_flag(node, "REBOOT_REQUESTED")) return '@';
  if (has_flag(node, "DRAIN") || has_flag(node, "FAIL")) return '\0';
  if (has_flag(node, "MAINT") && busy) return '$';
  if (has_flag(node, "PLANNED") && busy) return '-';
  if (has_flag(node, "COMPLETING") && busy) return '+';
  return '\0';
}

constexpr auto kNodeStates = std::to_array<std::string_view>(
    {"ALLOC",      "ALLOCATED",      "COMP",          "COMPLETING",  "DOWN",       "DRAIN",
     "DRAINED",    "DRAINING",       "DRNG",          "FAIL",        "FAILING",    "FUTURE",
     "FUTR",       "IDLE",           "INVAL",         "MAINT",       "MIX",        "MIXED",
     "NO_RESPOND", "NOT_RESPONDING", "PLANNED",       "RESERVED",    "UNK",        "UNKNOWN",
     "CLOUD",      "POWERED_DOWN",   "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP"});

bool matches_word(std::string_view word, const wire::NodeInfo& node) {
  const std::string& base = node.state();
  const bool drain = has_flag(node, "DRAIN");
  const bool busy = base == "ALLOCATED" || base == "MIXED" || has_flag(node, "COMPLETING");
  if (word == "ALLOC" || word == "ALLOCATED") return base == "ALLOCATED";
  if (word == "MIX" || word == "MIXED") return base == "MIXED";
  if (word == "IDLE") return base == "IDLE" && !drain && !has_flag(node, "COMPLETING");
  if (word == "COMP" || word == "COMPLETING") return has_flag(node, "COMPLETING");
  if (word == "DRAIN") return drain;
  if (word == "DRAINED") return drain && !busy;
  if (word == "DRAINING" || word == "DRNG") return drain && busy;
  if (word == "FAIL") return has_flag(node, "FAIL");
  if (word == "FAILING") return has_flag(node, "FAIL") && busy;
  if (word == "FUTR") return base == "FUTURE";
  if (word == "UNK") return base == "UNKNOWN";
  if (word == "INVAL") return has_flag(node, "INVALID_REG");
  if (word == "POWER_UP") return has_flag(node, "POWERING_UP");
  if (word == "NO_RESPOND") return has_flag(node, "NOT_RESPONDING");
  return base == word || has_flag(node, word);
}

}  // namespace

const StateName& shown_state(const wire::JobInfo& job) {
  if (!job.flags().empty()) {
    for (const StateName& flag : kFlags) {
      if (has(job, flag.name)) return flag;
    }
  }
  return kBases[base_index(job)];
}

std::int64_t state_number(const wire::JobInfo& job) {
  std::int64_t number = static_cast<std::int64_t>(base_index(job));
  if (has(job, "REQUEUED")) number |= 1 << 10;
  if (has(job, "REQUEUE_HOLD")) number |= 1 << 11;
  if (has(job, "SPECIAL_EXIT")) number |= 1 << 12;
  if (has(job, "CONFIGURING")) number |= 1 << 14;
  if (has(job, "COMPLETING")) number |= 1 << 15;
  return number;
}

bool has_ended(const wire::JobInfo& job) {
  return base_index(job) >= kFirstEnded;
}

Result<StateFilter> parse_states(std::string_view list) {
  StateFilter filter;
  for (const std::string& word : list_of(list)) {
    if (text::equal_ignoring_case(word, "all")) {
      filter.all = true;
      continue;
    }
    const StateName* state = find_state(word);
    if (state == nullptr) {
      std::string known;
      for (const StateName& base : kBases) known += fmt::format("{},", base.name);
      for (const StateName& flag : kFlags) known += fmt::format("{},", flag.name);
      known.pop_back();
      Error error;
      error.messages = {{Severity::error, fmt::format("Invalid job state specified: {}", word)},
                        {Severity::error, fmt::format("Valid job states include: {}", known)}};
      return std::unexpected(std::move(error));
    }
    filter.names.emplace_back(state->name);
  }
  return filter;
}

std::string states_help() {
  std::string out;
  for (const StateName& base : kBases) out += fmt::format("{}\n", base.name);
  for (const StateName& flag : kFlags) out += fmt::format("{}\n", flag.name);
  return out;
}

bool matches(const StateFilter& filter, const wire::JobInfo& job) {
  if (filter.all) return true;
  if (filter.names.empty()) return !has_ended(job) || has(job, "COMPLETING");
  return std::ranges::any_of(
      filter.names, [&](const std::string& name) { return name == job.state() || has(job, name); });
}

bool has_flag(const wire::NodeInfo& node, std::string_view flag) {
  return std::ranges::find(node.flags(), flag) != node.flags().end();
}

void append_node_state(std::string& out, const wire::NodeInfo& node, bool compact) {
  const NodeWord word = node_word(node);
  out += compact ? word.brief : word.full;
  if (const char suffix = node_suffix(node); suffix != '\0') out += suffix;
}

void append_whole_node_state(std::string& out, const wire::NodeInfo& node) {
  out += text::to_lower(node.state());
  for (const std::string& flag : node.flags()) {
    out += '+';
    out += text::to_lower(flag);
  }
}

std::int64_t node_state_number(const wire::NodeInfo& node) {
  constexpr std::array<std::string_view, 7> kBaseOrder = {"UNKNOWN", "DOWN",  "IDLE",  "ALLOCATED",
                                                          "ERROR",   "MIXED", "FUTURE"};
  constexpr std::array<std::string_view, 8> kFlagOrder = {
      "RESERVED", "DRAIN", "COMPLETING", "NOT_RESPONDING",
      "FAIL",     "MAINT", "PLANNED",    "INVALID_REG"};
  std::int64_t number = std::ranges::find(kBaseOrder, node.state()) - kBaseOrder.begin();
  for (std::size_t i = 0; i < kFlagOrder.size(); ++i) {
    if (has_flag(node, kFlagOrder[i])) number |= std::int64_t{1} << (i + 8);
  }
  return number;
}

Result<NodeStateFilter> parse_node_states(std::string_view list) {
  NodeStateFilter filter;
  for (const std::string& term : list_of(list)) {
    if (text::equal_ignoring_case(term, "all")) return NodeStateFilter{};
    std::vector<std::string> words;
    for (const std::string_view part : text::split(term, '&')) {
      const std::string word = text::to_upper(text::trim(part));
      if (std::ranges::find(kNodeStates, word) == kNodeStates.end()) {
        std::string known;
        for (const std::string_view state : kNodeStates) known += fmt::format("{},", state);
        known.pop_back();
        Error error;
        error.messages = {{Severity::error, fmt::format("Bad state string: \"{}\"", part)},
                          {Severity::error, fmt::format("Valid states: {}", known)}};
        return std::unexpected(std::move(error));
      }
      words.push_back(std::move(word));
    }
    filter.any_of_all.push_back(std::move(words));
  }
  return filter;
}

bool matches(const NodeStateFilter& filter, const wire::NodeInfo& node) {
  if (filter.any_of_all.empty()) return true;
  return std::ranges::any_of(filter.any_of_all, [&](const std::vector<std::string>& words) {
    return std::ranges::all_of(words,
                               [&](const std::string& word) { return matches_word(word, node); });
  });
}

}  // namespace berth::command
