#include "command/squeue_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "command/option_words.h"
#include "command/show_text.h"
#include "text/duration.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "wire/job_names.h"

namespace berth::command {
namespace {

constexpr OptionRow kSqueueOptions[] = {
    {"account", 'A', Takes::value},
    {"accounts", 0, Takes::value},
    {"all", 'a'},
    {"array", 'r'},
    {"array-unique", 0},
    {"clusters", 'M', Takes::value},
    {"expand-patterns", 0},
    {"federation", 0},
    {"Format", 'O', Takes::value},
    {"format", 'o', Takes::value},
    {"help", 0},
    {"helpstate", 0},
    {"hide", 0},
    {"iterate", 'i', Takes::value},
    {"jobs", 'j', Takes::follows},
    {"json", 0, Takes::attached},
    {"licenses", 'L', Takes::value},
    {"local", 0},
    {"long", 'l'},
    {"me", 0},
    {"name", 'n', Takes::value},
    {"noconvert", 0},
    {"nodelist", 'w', Takes::value},
    {"nodes", 0, Takes::value},
    {"noheader", 'h'},
    {"notme", 0},
    {"only-job-state", 0},
    {"partition", 'p', Takes::value},
    {"priority", 'P'},
    {"qos", 'q', Takes::value},
    {"reservation", 'R', Takes::value},
    {"running-over", 0, Takes::value},
    {"running-under", 0, Takes::value},
    {"sibling", 0},
    {"sort", 'S', Takes::value},
    {"start", 0},
    {"why", 0},
    {"states", 't', Takes::value},
    {"steps", 's', Takes::follows},
    {"usage", 0},
    {"user", 'u', Takes::value},
    {"users", 0, Takes::value},
    {"verbose", 'v'},
    {"version", 'V'},
    {"yaml", 0, Takes::attached},
};

Result<std::vector<wire::JobName>> job_list(std::string_view list, std::string_view what) {
  std::vector<wire::JobName> out;
  for (const std::string_view word : wire::split_job_list(list)) {
    if (word.empty()) continue;
    std::optional<wire::JobName> name = wire::parse_job_name(word);
    if (!name) return fail(Code::bad_value, fmt::format("Invalid {}: {}", what, word));
    out.push_back(std::move(*name));
  }
  return out;
}

Result<std::int64_t> run_time(std::string_view text, std::string_view option) {
  const std::optional<text::TimeLimit> limit = text::parse_time_limit(text);
  if (!limit || limit->unlimited) {
    return fail(Code::bad_value,
                fmt::format("Invalid time specification for {}: {}", option, text));
  }
  return std::int64_t{limit->minutes} * 60;
}

struct SqueueSetter {
  SqueueOptions& to;
  bool format_from_words = false;

  Result<void> states(std::string_view list) {
    Result<StateFilter> filter = parse_states(list);
    if (!filter) return pass(std::move(filter.error()));
    to.states = std::move(*filter);
    return {};
  }

  Result<void> set(const GivenOption& given) {
    const std::string_view name = given.row->name;
    const std::string value = given.value.value_or("");
    if (name == "account" || name == "accounts") to.accounts = list_of(value);
    if (name == "all") to.hidden_too = true;
    if (name == "hide") to.hidden_too = false;
    if (name == "array" || name == "array-unique") to.each_element = true;
    if (name == "clusters") to.clusters = value;
    if (name == "expand-patterns") to.expand_patterns = true;
    if (name == "format") {
      to.format = value;
      to.long_fields.reset();
    }
    if (name == "Format") {
      to.long_fields = value;
      to.format.reset();
    }
    if (name == "help") to.help = true;
    if (name == "helpstate") to.helpstate = true;
    if (name == "usage") to.usage = true;
    if (name == "version") to.version = true;
    if (name == "verbose") to.verbose = true;
    if (name == "json") to.json = true;
    if (name == "licenses") to.licenses = list_of(value);
    if (name == "long") to.long_format = true;
    if (name == "me") to.me = true;
    if (name == "notme") to.not_me = true;
    if (name == "name") to.names = list_of(value);
    if (name == "noconvert") to.convert = false;
    if (name == "noheader") to.header = false;
    if (name == "only-job-state") to.only_state = true;
    if (name == "partition") to.partitions = list_of(value);
    if (name == "priority") to.each_partition = true;
    if (name == "qos") to.qos = list_of(value);
    if (name == "reservation") to.reservations = list_of(value);
    if (name == "sort") to.sort = value;
    if (name == "start") to.start = true;
    if (name == "why") to.why = true;
    if (name == "states") return states(value);
    if (name == "user" || name == "users") to.users = list_of(value);
    if (name == "iterate") return set_iterate(value);
    if (name == "jobs") return set_jobs(value);
    if (name == "steps") return set_steps(value);
    if (name == "nodelist" || name == "nodes") return set_nodes(value);
    if (name == "running-over") return set_seconds(to.running_over, value, "--running-over");
    if (name == "running-under") return set_seconds(to.running_under, value, "--running-under");
    if (name == "yaml") {
      return fail(Code::bad_value, "--yaml is not available", "use --json");
    }
    return {};
  }

  Result<void> set_iterate(std::string_view value) {
    const auto number = text::parse_number(value);
    if (!number || *number == 0 || *number > 86400) {
      return fail(Code::bad_value, fmt::format("--iterate={}", value));
    }
    to.iterate_seconds = static_cast<std::uint32_t>(*number);
    return {};
  }
  Result<void> set_jobs(std::string_view value) {
    Result<std::vector<wire::JobName>> names = job_list(value, "job id");
    if (!names) return pass(std::move(names.error()));
    to.jobs = std::move(*names);
    return {};
  }
  Result<void> set_steps(std::string_view value) {
    to.steps = true;
    Result<std::vector<wire::JobName>> names = job_list(value, "job_step id");
    if (!names) return pass(std::move(names.error()));
    to.step_names = std::move(*names);
    return {};
  }
  Result<void> set_nodes(std::string_view value) {
    Result<std::vector<std::string>> names = text::expand_hostlist(value);
    if (!names)
      return fail(Code::bad_value, fmt::format("'{}' invalid entry for --nodelist", value));
    to.nodes = std::move(*names);
    return {};
  }
  static Result<void> set_seconds(std::optional<std::int64_t>& out, std::string_view value,
                                  std::string_view option) {
    Result<std::int64_t> length = run_time(value, option);
    if (!length) return pass(std::move(length.error()));
    out = *length;
    return {};
  }

  /// Variables come first, so that options win.
  Result<void> read_environment(const request::Environment& environment) {
    const auto value = [&](const char* name) -> const std::string* {
      const auto at = environment.find(name);
      return at == environment.end() ? nullptr : &at->second;
    };
    if (const auto* v = value("SQUEUE_ACCOUNT")) to.accounts = list_of(*v);
    if (value("SQUEUE_ALL") != nullptr) to.hidden_too = true;
    if (value("SQUEUE_ARRAY") != nullptr || value("SQUEUE_ARRAY_UNIQUE") != nullptr) {
      to.each_element = true;
    }
    if (const auto* v = value("SLURM_CLUSTERS")) to.clusters = *v;
    if (const auto* v = value("SQUEUE_FORMAT")) {
      to.format = *v;
    } else if (const auto* v2 = value("SQUEUE_FORMAT2")) {
      to.long_fields = *v2;
    }
    if (value("SQUEUE_EXPAND_PATTERNS") != nullptr) to.expand_patterns = true;
    if (const auto* v = value("SQUEUE_LICENSES")) to.licenses = list_of(*v);
    if (const auto* v = value("SQUEUE_NAMES")) to.names = list_of(*v);
    if (const auto* v = value("SQUEUE_PARTITION")) to.partitions = list_of(*v);
    if (value("SQUEUE_PRIORITY") != nullptr) to.each_partition = true;
    if (const auto* v = value("SQUEUE_QOS")) to.qos = list_of(*v);
    if (const auto* v = value("SQUEUE_SORT")) to.sort = *v;
    if (const auto* v = value("SQUEUE_USERS")) to.users = list_of(*v);
    if (const auto* v = value("SQUEUE_STATES")) return states(*v);
    return {};
  }
};

bool is_all(const std::vector<std::string>& list) {
  return std::ranges::any_of(list, [](const std::string& word) { return word == "all"; });
}

}  // namespace

Result<SqueueOptions> parse_squeue(std::span<const std::string> words,
                                   const request::Environment& environment) {
  Result<ReadWords> read = read_options("squeue", kSqueueOptions, words);
  if (!read) return pass(std::move(read.error()));
  SqueueOptions options;
  SqueueSetter setter{options};
  if (Result<void> set = setter.read_environment(environment); !set) {
    return pass(std::move(set.error()));
  }
  for (const GivenOption& given : read->options) {
    if (Result<void> set = setter.set(given); !set) return pass(std::move(set.error()));
  }
  if (!read->operands.empty()) {
    return fail(Code::bad_value, fmt::format("Unrecognized option: {}", read->operands.front()),
                "squeue -j LIST shows jobs by id");
  }
  if (is_all(options.users)) options.users.clear();
  if (is_all(options.partitions)) options.partitions.clear();
  if ((options.start || options.why) && options.states.names.empty() && !options.states.all) {
    options.states.names = {"PENDING"};
  }
  return options;
}

wire::ListJobs squeue_request(const SqueueOptions& options) {
  wire::ListJobs ask;
  for (const wire::JobName& name : options.jobs) *ask.add_ids() = name;
  for (const std::string& user : options.users) {
    if (const auto uid = text::parse_number(user)) {
      ask.add_users(static_cast<std::uint32_t>(*uid));
    } else {
      ask.add_user_names(user);
    }
  }
  for (const std::string& partition : options.partitions) ask.add_partitions(partition);
  for (const std::string& state : options.states.names) ask.add_states(state);
  if (options.states.all) ask.add_states("all");
  for (const std::string& name : options.names) ask.add_names(name);
  for (const std::string& account : options.accounts) ask.add_accounts(account);
  // A job that has just ended is not an unknown one: with ids, its record has to come.
  ask.set_with_ended(options.states.all || !options.states.names.empty() || !options.jobs.empty());
  if (!options.jobs.empty()) ask.clear_states();
  ask.set_with_steps(options.steps);
  ask.set_split_arrays(options.each_element);
  ask.set_only_mine(options.me);
  ask.set_with_hidden(options.hidden_too || !options.partitions.empty());
  ask.set_with_detail(options.json);
  return ask;
}

std::string_view squeue_usage() {
  return R"(Usage: squeue [-A account] [--clusters names] [-i seconds] [--job jobid] [-n name]
              [-o format] [-O fields] [-p partitions] [--qos qos] [--reservation reservation]
              [--sort fields] [--start] [--why] [--step step_id] [-t states] [-u user_name]
              [--user user_name] [-w nodes] [-ahjlrs] [--json]
)";
}

std::string_view squeue_help() {
  return R"(Usage: squeue [OPTIONS]
  -A, --account=account(s)        comma separated list of accounts to view
  -a, --all                       display jobs in hidden partitions too
      --array-unique              one line for each job array element
      --expand-patterns           expand file name patterns in StdOut, StdErr and StdIn
      --federation                report federated information; here: this cluster
  -h, --noheader                  no headers on output
      --helpstate                 list the states of jobs
      --hide                      do not display jobs in hidden partitions
  -i, --iterate=seconds           repeat every so many seconds
  -j, --jobs[=list]               comma separated list of job ids to view
      --json                      the reply as JSON
  -l, --long                      long report
  -L, --licenses=list             comma separated list of license names to view
      --local                     this cluster only
      --me                        your own jobs
  -M, --clusters=cluster_name     this cluster's name, or all
  -n, --name=name(s)              comma separated list of job names to view
      --noconvert                 do not convert sizes to larger units
      --notme                     jobs of everyone but you
  -o, --format=format             format specification
  -O, --Format=format             format specification by field names
      --only-job-state            job id and state only
  -p, --partition=partition(s)    comma separated list of partitions to view
  -P, --priority                  one line for each partition a job may choose
  -q, --qos=qos(s)                comma separated list of QOS to view
  -r, --array                     one line for each job array element
  -R, --reservation=name          reservation to view
      --running-over=time         jobs running longer than this
      --running-under=time        jobs running shorter than this
      --sibling                   report sibling jobs; here: this cluster
  -s, --step[=step_id]            comma separated list of job steps to view
  -S, --sort=fields               comma separated list of fields to sort on
      --start                     expected start times of pending jobs
  -t, --states=states             comma separated list of states to view, or all
  -u, --user=user_name(s)         comma separated list of users to view
  -v, --verbose                   say what is asked
  -V, --version                   version and exit
  -w, --nodelist=hostlist         jobs on these nodes
      --why                       why pending jobs wait, and what would start them now
Help options:
      --help                      show this help message
      --usage                     brief usage
)";
}

}  // namespace berth::command
