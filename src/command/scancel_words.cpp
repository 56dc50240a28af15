// The command line and the variables of scancel.
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <optional>

#include "command/option_words.h"
#include "command/scancel.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"
#include "wire/job_names.h"

namespace berth::command {
namespace {

constexpr std::array kScancelOptions = {
    OptionRow{"account", 'A', Takes::value},
    OptionRow{"admin-comment", 0, Takes::value},
    OptionRow{"batch", 'b'},
    OptionRow{"clusters", 'M', Takes::value},
    OptionRow{"cron", 'c'},
    OptionRow{"ctld", 0},
    OptionRow{"full", 'f'},
    OptionRow{"help", 0},
    OptionRow{"hurry", 'H'},
    OptionRow{"interactive", 'i'},
    OptionRow{"jobname", 0, Takes::value},
    OptionRow{"me", 0},
    OptionRow{"name", 'n', Takes::value},
    OptionRow{"nodelist", 'w', Takes::value},
    OptionRow{"partition", 'p', Takes::value},
    OptionRow{"qos", 'q', Takes::value},
    OptionRow{"quiet", 'Q'},
    OptionRow{"reservation", 'R', Takes::value},
    OptionRow{"sibling", 0, Takes::value},
    OptionRow{"signal", 's', Takes::value},
    OptionRow{"state", 't', Takes::value},
    OptionRow{"usage", 0},
    OptionRow{"user", 'u', Takes::value},
    OptionRow{"verbose", 'v'},
    OptionRow{"version", 'V'},
    OptionRow{"wckey", 0, Takes::value},
};

struct EnvironmentRow {
  std::string_view variable;
  std::string_view option;
};
constexpr std::array kScancelVariables = {
    EnvironmentRow{"SCANCEL_ACCOUNT", "account"},
    EnvironmentRow{"SCANCEL_BATCH", "batch"},
    EnvironmentRow{"SCANCEL_CRON", "cron"},
    EnvironmentRow{"SCANCEL_FULL", "full"},
    EnvironmentRow{"SCANCEL_HURRY", "hurry"},
    EnvironmentRow{"SCANCEL_INTERACTIVE", "interactive"},
    EnvironmentRow{"SCANCEL_NAME", "name"},
    EnvironmentRow{"SCANCEL_PARTITION", "partition"},
    EnvironmentRow{"SCANCEL_QOS", "qos"},
    EnvironmentRow{"SCANCEL_STATE", "state"},
    EnvironmentRow{"SCANCEL_USER", "user"},
    EnvironmentRow{"SCANCEL_VERBOSE", "verbose"},
    EnvironmentRow{"SCANCEL_WCKEY", "wckey"},
    EnvironmentRow{"SLURM_CLUSTERS", "clusters"},
};

/// What an option sets: the words of its list go into one of the filters.
template <class Add>
void add_list(std::string_view value, Add add) {
  for (const std::string_view word : text::split(value, ',')) {
    if (!word.empty()) add(std::string(word));
  }
}

Result<void> add_states(wire::CancelJobs& ask, std::string_view value) {
  for (const std::string_view word : text::split(value, ',')) {
    std::string state;
    for (const auto& [name, letters] :
         {std::pair("PENDING", "PD"), std::pair("RUNNING", "R"), std::pair("SUSPENDED", "S")}) {
      if (text::equal_ignoring_case(word, name) || text::equal_ignoring_case(word, letters)) {
        state = name;
      }
    }
    if (state.empty()) {
      return fail(Code::bad_value, fmt::format("Invalid job state specified: {}", word),
                  "valid job states are PENDING, RUNNING, and SUSPENDED");
    }
    ask.add_states(state);
  }
  return {};
}

Result<void> set_option(CancelWords& out, std::string_view name, const std::string& value) {
  wire::CancelJobs& ask = out.ask;
  const auto add_to = [&](auto* list) {
    add_list(value, [&](std::string word) { list->Add(std::move(word)); });
    ask.set_filters_given(true);
  };
  if (name == "account") add_to(ask.mutable_accounts());
  if (name == "name" || name == "jobname") add_to(ask.mutable_names());
  if (name == "partition") add_to(ask.mutable_partitions());
  if (name == "qos") add_to(ask.mutable_qos());
  if (name == "reservation") add_to(ask.mutable_reservations());
  if (name == "wckey") add_to(ask.mutable_wckeys());
  if (name == "user") add_to(ask.mutable_users());
  if (name == "me") {
    ask.set_only_mine(true);
    ask.set_filters_given(true);
  }
  if (name == "state") {
    ask.set_filters_given(true);
    return add_states(ask, value);
  }
  if (name == "nodelist") {
    Result<std::vector<std::string>> nodes = text::expand_hostlist(value);
    if (!nodes) return fail(Code::invalid_node_name, fmt::format("Invalid node list: {}", value));
    for (std::string& node : *nodes) ask.add_nodes(std::move(node));
    ask.set_filters_given(true);
  }
  if (name == "signal") {
    const std::optional<int> signal = parse_signal(value);
    if (!signal) return fail(Code::bad_value, fmt::format("Unknown job signal: {}", value));
    ask.set_signal(*signal);
  }
  if (name == "batch") ask.set_batch_only(true);
  if (name == "full") ask.set_full(true);
  if (name == "hurry") ask.set_hurry(true);
  out.interactive = out.interactive || name == "interactive";
  out.quiet = out.quiet || name == "quiet";
  out.help = out.help || name == "help" || name == "usage";
  out.version = out.version || name == "version";
  if (name == "verbose") ++out.verbose;
  if (name == "cron") {
    return fail(Code::unsupported, "--cron is not supported by berth",
                "there is no scrontab; leave the option out");
  }
  if (name == "admin-comment") {
    return fail(Code::unsupported, "--admin-comment is not supported by berth",
                "use scontrol update JobId=… AdminComment=… first");
  }
  if (name == "sibling" || (name == "clusters" && value != "all")) {
    return fail(Code::unsupported, fmt::format("--{} is not supported by berth", name),
                "one berth serves one cluster; run the command there");
  }
  return {};
}

}  // namespace

std::optional<int> parse_signal(std::string_view text) {
  if (const auto number = text::parse_number(text, SIGRTMAX)) {
    return *number == 0 ? std::nullopt : std::optional(static_cast<int>(*number));
  }
  struct Name {
    std::string_view name;
    int number;
  };
  constexpr std::array kNames = {
      Name{"HUP", SIGHUP},       Name{"INT", SIGINT},   Name{"QUIT", SIGQUIT},
      Name{"ILL", SIGILL},       Name{"TRAP", SIGTRAP}, Name{"ABRT", SIGABRT},
      Name{"BUS", SIGBUS},       Name{"FPE", SIGFPE},   Name{"KILL", SIGKILL},
      Name{"USR1", SIGUSR1},     Name{"SEGV", SIGSEGV}, Name{"USR2", SIGUSR2},
      Name{"PIPE", SIGPIPE},     Name{"ALRM", SIGALRM}, Name{"TERM", SIGTERM},
      Name{"CHLD", SIGCHLD},     Name{"CONT", SIGCONT}, Name{"STOP", SIGSTOP},
      Name{"TSTP", SIGTSTP},     Name{"TTIN", SIGTTIN}, Name{"TTOU", SIGTTOU},
      Name{"URG", SIGURG},       Name{"XCPU", SIGXCPU}, Name{"XFSZ", SIGXFSZ},
      Name{"VTALRM", SIGVTALRM}, Name{"PROF", SIGPROF}, Name{"WINCH", SIGWINCH},
      Name{"IO", SIGIO},         Name{"PWR", SIGPWR},   Name{"SYS", SIGSYS}};
  const std::string lower = text::to_lower(text);
  const std::string_view bare = std::string_view(lower).substr(lower.starts_with("sig") ? 3 : 0);
  for (const Name& row : kNames) {
    if (text::equal_ignoring_case(row.name, bare)) return row.number;
  }
  return std::nullopt;
}

Result<CancelWords> parse_scancel(std::span<const std::string> words,
                                  const request::Environment& environment) {
  CancelWords out;
  Result<ReadWords> read = read_options("scancel", kScancelOptions, words);
  if (!read) return pass(std::move(read.error()));
  for (const EnvironmentRow& row : kScancelVariables) {
    const auto found = environment.find(std::string(row.variable));
    if (found == environment.end()) continue;
    // A variable is a default: the same option on the command line comes instead.
    bool given = false;
    for (const GivenOption& option : read->options) given = given || option.row->name == row.option;
    if (given) continue;
    if (auto set = set_option(out, row.option, found->second); !set) {
      return pass(std::move(set.error()));
    }
  }
  for (const GivenOption& option : read->options) {
    if (auto set = set_option(out, option.row->name, option.value.value_or("")); !set) {
      return pass(std::move(set.error()));
    }
  }
  if (out.help || out.version) return out;
  for (const std::string& operand : read->operands) {
    for (const std::string_view word : wire::split_job_list(operand)) {
      const auto name = wire::parse_job_name(word);
      if (!name) return fail(Code::bad_value, fmt::format("Invalid job id {}", word));
      *out.ask.add_jobs() = *name;
      out.names.emplace_back(word);
    }
  }
  if (out.ask.jobs().empty() && !out.ask.filters_given()) {
    return fail(Code::bad_value, "No job identification provided");
  }
  return out;
}

}  // namespace berth::command
