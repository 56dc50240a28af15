#include "command/sacct_options.h"

#include <fmt/format.h>

#include "command/option_words.h"
#include "command/sacct_time.h"
#include "command/show_text.h"
#include "text/duration.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"
#include "wire/job_names.h"

namespace berth::command {
namespace {

constexpr OptionRow kSacctOptions[] = {
    {"accounts", 'A', Takes::value},
    {"allclusters", 'L'},
    {"allocations", 'X'},
    {"allusers", 'a'},
    {"array", 0},
    {"batch-script", 'B'},
    {"brief", 'b'},
    {"cluster", 0, Takes::value},
    {"clusters", 'M', Takes::value},
    {"delimiter", 0, Takes::value},
    {"duplicates", 'D'},
    {"endtime", 'E', Takes::value},
    {"env-vars", 0},
    {"expand-patterns", 0},
    {"federation", 0},
    {"fields", 0, Takes::value},
    {"format", 'o', Takes::value},
    {"gid", 'g', Takes::value},
    {"group", 0, Takes::value},
    {"help", 'h'},
    {"helpformat", 'e'},
    {"jobs", 'j', Takes::value},
    {"json", 0, Takes::attached},
    {"local", 0},
    {"long", 'l'},
    {"name", 0, Takes::value},
    {"ncpus", 'I', Takes::value},
    {"nnodes", 'i', Takes::value},
    {"noconvert", 0},
    {"nodelist", 'N', Takes::value},
    {"noheader", 'n'},
    {"parsable", 'p'},
    {"parsable2", 'P'},
    {"partition", 'r', Takes::value},
    {"qos", 'q', Takes::value},
    {"starttime", 'S', Takes::value},
    {"state", 's', Takes::value},
    {"timelimit-max", 'K', Takes::value},
    {"timelimit-min", 'k', Takes::value},
    {"truncate", 'T'},
    {"uid", 0, Takes::value},
    {"units", 0, Takes::value},
    {"usage", 0},
    {"use-local-uid", 0},
    {"user", 'u', Takes::value},
    {"verbose", 'v'},
    {"version", 'V'},
    {"wckeys", 'W', Takes::value},
    {"yaml", 0, Takes::attached},
};

constexpr std::string_view kDefaultFields =
    "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
constexpr std::string_view kBrief = "JobID,State,ExitCode";
constexpr std::string_view kSacctLong =
    "JobID,JobIDRaw,JobName,Partition,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,"
    "MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,"
    "MinCPUTask,AveCPU,NTasks,AllocCPUS,Elapsed,State,ExitCode,AveCPUFreq,ReqCPUFreqMin,"
    "ReqCPUFreqMax,ReqCPUFreqGov,ReqMem,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,"
    "AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,ReqTRES,AllocTRES,"
    "TRESUsageInAve,TRESUsageInMax,TRESUsageInTot";

struct SacctSetter {
  SacctOptions& to;
  std::int64_t now = 0;

  Result<void> set(const GivenOption& given) {
    const std::string_view name = given.row->name;
    const std::string value = given.value.value_or("");
    if (name == "accounts") to.accounts = list_of(value);
    if (name == "allocations") to.allocations = true;
    if (name == "allusers") to.all_users = true;
    if (name == "array") to.each_element = true;
    if (name == "batch-script") to.scripts = true;
    if (name == "brief") to.fields = kBrief;
    if (name == "clusters" || name == "cluster") to.clusters = value;
    if (name == "delimiter") to.style.delimiter = value;
    if (name == "duplicates") to.duplicates = true;
    if (name == "expand-patterns") to.expand_patterns = true;
    if (name == "env-vars") to.environments = true;
    if (name == "format" || name == "fields") add_fields(value);
    if (name == "gid" || name == "group") to.groups = list_of(value);
    if (name == "help") to.help = true;
    if (name == "helpformat") to.help_format = true;
    if (name == "json") to.json = true;
    if (name == "long") to.fields = kSacctLong;
    if (name == "name") to.names = list_of(value);
    if (name == "noconvert") to.convert = false;
    if (name == "noheader") to.style.header = false;
    if (name == "parsable") to.style.kind = TableStyle::Kind::parsable;
    if (name == "parsable2") to.style.kind = TableStyle::Kind::parsable2;
    if (name == "partition") to.partitions = list_of(value);
    if (name == "qos") to.qos = list_of(value);
    if (name == "truncate") to.truncate = true;
    if (name == "usage") to.usage = true;
    if (name == "user" || name == "uid") to.users = list_of(value);
    if (name == "version") to.version = true;
    if (name == "wckeys") to.wckeys = list_of(value);
    if (name == "starttime") return set_time(to.from, value, "starttime");
    if (name == "endtime") return set_time(to.until, value, "endtime");
    if (name == "jobs") return set_jobs(value);
    if (name == "state") return set_states(value);
    if (name == "nodelist") return set_nodes(value);
    if (name == "units") return set_units(value);
    if (name == "nnodes") return set_range(to.node_counts, value, name);
    if (name == "ncpus") return set_range(to.cpu_counts, value, name);
    if (name == "timelimit-min") return set_minutes(to.least_minutes, value);
    if (name == "timelimit-max") return set_minutes(to.most_minutes, value);
    if (name == "yaml") return fail(Code::bad_value, "--yaml is not available", "use --json");
    return {};
  }

  bool fields_given = false;
  /// Several -o add up.
  void add_fields(const std::string& value) {
    to.fields = fields_given ? to.fields + "," + value : value;
    fields_given = true;
  }

  Result<void> set_time(std::optional<std::int64_t>& out, std::string_view value,
                        std::string_view option) const {
    out = parse_when(value, now);
    if (!out) {
      return fail(Code::bad_value,
                  fmt::format("Invalid time specification for --{}: {}", option, value));
    }
    return {};
  }
  Result<void> set_jobs(std::string_view value) {
    for (const std::string_view word : wire::split_job_list(value)) {
      if (text::trim(word).empty()) continue;
      std::optional<wire::JobName> name = wire::parse_job_name(text::trim(word));
      if (!name)
        return fail_fatal(Code::bad_value, fmt::format("Bad job/step specified: {}", word));
      to.jobs.push_back(std::move(*name));
    }
    return {};
  }
  Result<void> set_states(std::string_view value) {
    Result<StateFilter> states = parse_states(value);
    if (!states) return pass(std::move(states.error()));
    to.states = std::move(*states);
    return {};
  }
  Result<void> set_nodes(std::string_view value) {
    Result<std::vector<std::string>> nodes = text::expand_hostlist(value);
    if (!nodes) return pass(std::move(nodes.error()));
    to.nodes = std::move(*nodes);
    return {};
  }
  Result<void> set_units(std::string_view value) {
    if (value.size() != 1 || std::string_view("KMGTP").find(value[0]) == std::string_view::npos) {
      return fail(Code::bad_value,
                  fmt::format("Invalid --units={}, expected K, M, G, T or P", value));
    }
    to.unit = value[0];
    return {};
  }
  static Result<void> set_range(std::optional<std::pair<std::uint64_t, std::uint64_t>>& out,
                                std::string_view value, std::string_view option) {
    const std::size_t dash = value.find('-');
    const auto least = text::parse_number(value.substr(0, dash));
    const auto most = dash == value.npos ? least : text::parse_number(value.substr(dash + 1));
    if (!least || !most) {
      return fail(Code::bad_value, fmt::format("Invalid --{} specification: {}", option, value));
    }
    out = {*least, *most};
    return {};
  }
  static Result<void> set_minutes(std::optional<std::uint64_t>& out, std::string_view value) {
    const std::optional<text::TimeLimit> limit = text::parse_time_limit(value);
    if (!limit) return fail(Code::bad_value, fmt::format("Invalid time limit: {}", value));
    out = limit->unlimited ? UINT64_MAX : limit->minutes;
    return {};
  }
};

}  // namespace

Result<SacctOptions> parse_sacct(std::span<const std::string> words,
                                 const request::Environment& environment, std::int64_t now,
                                 std::uint32_t uid) {
  Result<ReadWords> read = read_options("sacct", kSacctOptions, words);
  if (!read) return pass(std::move(read.error()));
  SacctOptions options;
  options.fields = kDefaultFields;
  const auto format = environment.find("SACCT_FORMAT");
  if (format != environment.end() && !format->second.empty()) options.fields = format->second;
  const auto clusters = environment.find("SLURM_CLUSTERS");
  if (clusters != environment.end()) options.clusters = clusters->second;
  SacctSetter setter{options, now};
  for (const GivenOption& given : read->options) {
    if (Result<void> set = setter.set(given); !set) return pass(std::move(set.error()));
  }
  if (!read->operands.empty()) {
    return fail(Code::bad_value, fmt::format("Unrecognized option: {}", read->operands.front()),
                "sacct -j LIST shows jobs by id");
  }
  // Jobs named by id are shown whoever they belong to; root sees all.
  if (options.users.empty() && (uid == 0 || !options.jobs.empty())) options.all_users = true;
  return options;
}

wire::ListHistory sacct_request(const SacctOptions& options, std::int64_t now) {
  wire::ListHistory ask;
  for (const wire::JobName& name : options.jobs) *ask.add_ids() = name;
  for (const std::string& user : options.users) ask.add_users(user);
  ask.set_all_users(options.all_users && options.users.empty());
  // Without -S: jobs by id from the beginning, states as they are now, else today's.
  const bool by_state = !options.states.names.empty();
  const std::int64_t from = !options.jobs.empty() ? 0 : by_state ? now : midnight_before(now);
  ask.set_from(options.from.value_or(from));
  ask.set_until(options.until.value_or(0));
  for (const std::string& state : options.states.names) ask.add_states(state);
  for (const std::string& partition : options.partitions) ask.add_partitions(partition);
  for (const std::string& account : options.accounts) ask.add_accounts(account);
  for (const std::string& node : options.nodes) ask.add_nodes(node);
  for (const std::string& name : options.names) ask.add_names(name);
  for (const std::string& qos : options.qos) ask.add_qos(qos);
  ask.set_with_steps(true);
  ask.set_duplicates(options.duplicates);
  ask.set_with_script(options.scripts);
  ask.set_with_environment(options.environments);
  return ask;
}

std::string_view sacct_usage() {
  return "Usage: sacct [options]\n\tUse --help for help\n";
}

std::string_view sacct_help() {
  return R"(Usage: sacct [OPTIONS]
  -A, --accounts=list       accounts to show
  -a, --allusers            jobs of all users
      --array               one line for each pending element of a job array
  -B, --batch-script        print the batch script of jobs
  -b, --brief               JobID, State and ExitCode
      --delimiter=text      separator of -p and -P
  -D, --duplicates          also earlier runs of requeued jobs
  -E, --endtime=time        jobs before this time
      --expand-patterns     file names with their patterns expanded
      --env-vars            print the environment of jobs
  -e, --helpformat          list of fields for --format
  -g, --gid=list            groups to show
  -h, --help                this text
  -I, --ncpus=N[-M]         jobs with this many CPUs
  -i, --nnodes=N[-M]        jobs with this many nodes
  -j, --jobs=list           jobs and steps to show
      --json                the reply as JSON
  -K, --timelimit-max=time  jobs with a time limit of at most this
  -k, --timelimit-min=time  jobs with a time limit of at least this
  -L, --allclusters         all clusters; here: this one
  -l, --long                many fields
  -M, --clusters=names      this cluster's name, or all
  -N, --nodelist=list       jobs that ran on these nodes
      --name=list           jobs of these names
  -n, --noheader            no header
      --noconvert           do not convert sizes to larger units
  -o, --format=list         fields to show, as name or name%width
  -P, --parsable2           separated by '|'
  -p, --parsable            separated by '|', with one at the end
  -q, --qos=list            QOS to show
  -r, --partition=list      partitions to show
  -S, --starttime=time      jobs after this time
  -s, --state=list          states to show
  -T, --truncate            start and end within the times asked for
      --units=K|M|G|T|P     unit of sizes
  -u, --user=list           users to show
  -V, --version             version and exit
  -W, --wckeys=list         wckeys to show
  -X, --allocations         jobs without their steps
)";
}

}  // namespace berth::command
