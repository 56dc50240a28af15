// Where the cluster comes from, what is explained, where the answer goes.
#include "command/explain_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "command/arguments.h"
#include "command/explain_json.h"
#include "command/files.h"
#include "conf/source.h"
#include "explain/explain.h"
#include "explain/job.h"
#include "explain/render.h"
#include "request/parse.h"
#include "script/script.h"
#include "site/busy.h"
#include "site/site.h"

namespace berth::command {
namespace {

constexpr std::size_t kMaxHostFile = std::size_t{1} << 20;
constexpr const char* kDefaultConf = "/etc/slurm";

constexpr std::string_view kExplainHelp =
    R"(usage: berth explain [--conf DIR | --emulate SPEC] [--busy FILE] [--json] [--all] [--verbose]
                     SCRIPT [ARGS…]
       berth explain [same options] -- sbatch|srun|salloc ARGS…

Says who will get which CPUs and GPUs, rank by rank, and what is wrong with the script. Nothing runs.

  --conf DIR      the cluster of DIR/slurm.conf and DIR/gres.conf. Without it: the directory of
                  $SLURM_CONF, else /etc/slurm
  --emulate SPEC  a pretended cluster: 4x4:a100 (nodes × GPUs), or
                  gpu[1-4]:cpus=16:mem=64G:gpus=a100x4,cpu[1-2]:cpus=32
  --busy FILE     what is in use now: output of `scontrol -d show node` and `scontrol -d show job`
                  ("-" is standard input; may be given several times)
  --json          the same as JSON (docs/explain.md)
  --all           all ranks of long tables
  --verbose       all keys of the configuration that are not used, not only the first

SCRIPT may be "-" for standard input. Exit code 0: accepted, and no error was found; 1: otherwise.
)";

void complain(std::string_view text) {
  fmt::print(stderr, "berth: {}\n", text);
}

int complain(const Error& error) {
  if (error.messages.empty()) complain(error.what());
  for (const Message& message : error.messages) complain(message.text);
  if (!error.hint.empty()) complain(error.hint);
  return 1;
}

/// The directory of slurm.conf: --conf, $SLURM_CONF, /etc/slurm.
Result<std::string> conf_directory(const ExplainArguments& arguments,
                                   const request::Environment& environment) {
  std::string path;
  const auto variable = environment.find("SLURM_CONF");
  if (arguments.conf) {
    path = *arguments.conf;
  } else if (variable != environment.end() && !variable->second.empty()) {
    path = variable->second;
  } else if (!why_unreadable(fmt::format("{}/slurm.conf", kDefaultConf))) {
    return kDefaultConf;
  } else {
    return fail(Code::bad_config, "no cluster is known: there is no /etc/slurm/slurm.conf here",
                "name one with --conf DIR, or pretend one: berth explain --emulate 2x4:a100 …");
  }
  if (is_directory(path)) {
    if (auto why = why_unreadable(path + "/slurm.conf")) return pass(std::move(*why));
    return path;
  }
  if (auto why = why_unreadable(path)) return pass(std::move(*why));
  const std::size_t slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  if (file != "slurm.conf") {
    return fail(Code::bad_config,
                fmt::format("{} is not named slurm.conf: give the directory it is in", path));
  }
  if (slash == std::string::npos) return ".";
  return path.substr(0, std::max<std::size_t>(slash, 1));
}

Result<site::Site> load_site(const ExplainArguments& arguments,
                             const request::Environment& environment) {
  if (arguments.conf && arguments.emulate) {
    return fail(Code::conflict, "--conf and --emulate exclude each other");
  }
  if (arguments.emulate) return site::from_emulate_spec(*arguments.emulate);
  const auto directory = conf_directory(arguments, environment);
  if (!directory) return pass(directory.error());
  return site::read_site(conf::DirectorySource(*directory));
}

Result<std::string> read_script_file(const std::string& path) {
  auto text = read_file(path, script::kMaxScript);
  if (!text) return text;
  if (text->find('\0') != std::string::npos) {
    return fail(Code::bad_script, fmt::format("{} is not a script: it holds binary data",
                                              path == "-" ? "the input" : path));
  }
  return text;
}

/// The text of the batch script, when there is one: SCRIPT, sbatch's argument, or standard input.
Result<std::string> script_of(const ExplainArguments& arguments) {
  if (arguments.command != request::Command::sbatch) return std::string();
  if (arguments.is_script) return read_script_file(arguments.words.front());
  const std::size_t at = request::first_argument(arguments.command, arguments.words);
  if (at < arguments.words.size()) return read_script_file(arguments.words[at]);
  for (const std::string& word : arguments.words) {
    // --wrap makes a script of its own; help and version need none.
    for (const char* option : {"--wr", "--help", "--usage", "--version", "-h", "-V"}) {
      if (word.starts_with(option)) return std::string();
    }
  }
  return read_script_file("-");
}

request::Surroundings surroundings(const ExplainArguments& arguments, const std::string& script,
                                   const cluster::Cluster& cluster,
                                   request::Environment environment) {
  request::Surroundings around;
  // Inside a job the variables describe that job, not the one that is asked for.
  if (environment.contains("SLURM_JOB_ID")) {
    std::erase_if(environment, [](const auto& entry) { return entry.first.starts_with("SLURM_"); });
  }
  around.environment = std::move(environment);
  around.is_root = ::geteuid() == 0;
  around.multiple_sharing_gres = cluster.settings.multiple_sharing_gres;
  for (const std::string& name :
       request::files_wanted(arguments.command, arguments.words, script, around.environment)) {
    if (auto text = read_file(name, kMaxHostFile)) around.files[name] = std::move(*text);
  }
  return around;
}

/// What headings call it: the script, or the command when there is none.
std::string heading_of(const ExplainArguments& arguments) {
  std::string name(request::command_name(arguments.command));
  if (arguments.command == request::Command::sbatch) {
    const std::size_t at = request::first_argument(arguments.command, arguments.words);
    if (at < arguments.words.size()) name = arguments.words[at];
  }
  return name == "-" ? "the script" : name;
}

bool wants_colour(const request::Environment& environment) {
  const auto term = environment.find("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && !environment.contains("NO_COLOR") &&
         (term == environment.end() || term->second != "dumb");
}

/// What the --busy files say is in use. Marks the nodes that are down in `cluster`.
Result<cluster::Usage> usage_of(const ExplainArguments& arguments, cluster::Cluster& cluster) {
  std::vector<site::BusyText> texts;
  for (const std::string& path : arguments.busy) {
    auto text = read_file(path, site::kMaxBusyBytes);
    if (!text) return pass(text.error());
    texts.push_back({fmt::format("--busy {}", path), std::move(*text)});
  }
  if (texts.empty()) return cluster::Usage(cluster);
  const auto busy = site::parse_busy(texts, cluster);
  if (!busy) return pass(busy.error());
  for (const std::string& problem : busy->problems) complain(problem);
  for (const site::UnusableNode& node : busy->unusable) {
    cluster.nodes[node.node].usable = false;
    cluster.nodes[node.node].state_reason = node.reason;
  }
  cluster::Usage usage(cluster);
  for (const cluster::Allocation& job : busy->jobs) usage.take(job);
  return usage;
}

/// What can change the plan in full; keys that cannot in one line a file.
void warn(const site::Site& site, bool verbose) {
  for (const std::string& warning : site.warnings) complain(warning);
  for (const conf::UnusedKeys& unused : site.unused) {
    std::string text = conf::shown(unused, verbose);
    if (text != conf::shown(unused, true)) text += " (all: berth explain --verbose)";
    complain(text);
  }
}

/// sbatch's own answer to a script it cannot read, as JSON like every other refusal.
int print_unreadable(const ExplainArguments& arguments, const Error& why) {
  explain::Explanation explanation;
  explanation.name = heading_of(arguments);
  explanation.command = arguments.command;
  Error error;
  error.code = Code::io;
  error.messages = {{Severity::error, fmt::format("Unable to open file {}", explanation.name)}};
  error.hint = std::string(why.what());
  explanation.error = explain::refusal(error, arguments.command);
  fmt::print("{}", render_json(explanation));
  return error.exit_code;
}

}  // namespace

int run_explain(std::span<const std::string> words, const request::Environment& environment) {
  const auto arguments = parse_explain(words);
  if (!arguments) return complain(arguments.error());
  if (arguments->help) {
    fmt::print("{}", kExplainHelp);
    return 0;
  }
  const auto script = script_of(*arguments);
  if (!script) {
    if (arguments->is_script || !arguments->json) return complain(script.error());
    return print_unreadable(*arguments, script.error());
  }
  auto site = load_site(*arguments, environment);
  if (!site) return complain(site.error());
  warn(*site, arguments->verbose);

  const auto usage = usage_of(*arguments, site->cluster);
  if (!usage) return complain(usage.error());

  explain::Input input;
  input.command = arguments->command;
  input.words = arguments->words;
  if (arguments->is_script && arguments->words.size() == 1 && arguments->words.front() == "-") {
    input.words.clear();  // as `sbatch < script`
  }
  input.script = *script;
  input.name = heading_of(*arguments);
  input.around = surroundings(*arguments, *script, site->cluster, environment);
  input.cluster = &site->cluster;
  input.usage = &*usage;
  input.directory_exists = is_directory;
  input.with_environments = arguments->json;
  explain::Explanation explanation = explain::explain(input);
  for (const std::string& note : site->notes) explanation.notes.push_back(note);

  const std::string text =
      arguments->json
          ? render_json(explanation)
          : explain::render_text(explanation, {wants_colour(environment), arguments->all});
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    complain("cannot write the answer");
    return 1;
  }
  return explanation.fine() ? 0 : 1;
}

}  // namespace berth::command
