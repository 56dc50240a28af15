#include "command/submit_asked.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "command/controller_client.h"
#include "command/files.h"
#include "command/messages.h"
#include "command/submit_usage.h"
#include "request/directives.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::command {
namespace {

using request::Environment;
using request::Opt;

constexpr std::size_t kMaxNamedFile = std::size_t{1} << 20;

struct LimitRow {
  const char* name;
  int resource;
};
constexpr std::array kLimits = {
    LimitRow{"CPU", RLIMIT_CPU},         LimitRow{"FSIZE", RLIMIT_FSIZE},
    LimitRow{"DATA", RLIMIT_DATA},       LimitRow{"STACK", RLIMIT_STACK},
    LimitRow{"CORE", RLIMIT_CORE},       LimitRow{"RSS", RLIMIT_RSS},
    LimitRow{"NPROC", RLIMIT_NPROC},     LimitRow{"NOFILE", RLIMIT_NOFILE},
    LimitRow{"MEMLOCK", RLIMIT_MEMLOCK}, LimitRow{"AS", RLIMIT_AS}};

/// The two facts of slurm.conf that parsing may need are looked up only when a word is about them:
/// commands are fast because they do not read the configuration.
void add_cluster_facts(request::Surroundings& around, std::span<const std::string> words,
                       std::string_view script) {
  const auto mentions = [&](std::string_view text) {
    return script.find(text) != std::string_view::npos ||
           std::ranges::any_of(words, [&](const std::string& word) {
             return word.find(text) != std::string::npos;
           });
  };
  const bool clusters = mentions("-M") || mentions("--cluster") ||
                        std::ranges::any_of(around.environment, [](const auto& entry) {
                          return entry.first.ends_with("_CLUSTERS");
                        });
  if (!clusters && !mentions("one-task-per-sharing") &&
      !around.environment.contains("SBATCH_GRES_FLAGS")) {
    return;
  }
  const std::string path = conf_path_of(around.environment);
  if (path.empty()) return;
  if (const auto names = conf_values(path, "ClusterName"); !names.empty()) {
    around.cluster_name = names.back();
  }
  for (const std::string& value : conf_values(path, "SelectTypeParameters")) {
    around.multiple_sharing_gres = value.find("MULTIPLE_SHARING_GRES_PJ") != std::string::npos;
  }
}

bool of_a_step(std::string_view name) {
  for (const std::string_view prefix : {"SLURM_", "SRUN_", "OMPI_", "PRTE_", "HYDRA_", "I_MPI_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return name == "CUDA_VISIBLE_DEVICES" || name == "ROCR_VISIBLE_DEVICES" ||
         name == "GPU_DEVICE_ORDINAL" || name == "ZE_AFFINITY_MASK";
}

std::string quoted(const std::string& word) {
  const bool plain =
      !word.empty() && word.find_first_of(" \t\n'\"\\$`;&|<>()*?[]{}~#!") == std::string::npos;
  return plain ? word : fmt::format("'{}'", word);
}

}  // namespace

int Prepared::verbosity() const {
  const request::Given* given = first().given.find(Opt::verbose);
  if (given == nullptr) return 0;
  const auto times = text::parse_number(given->text, 16);
  return times ? static_cast<int>(*times) : 1;
}

Result<Prepared> prepare(request::Command command, std::span<const std::string> words,
                         std::string script, const Environment& environment, bool inside_job) {
  Prepared prepared;
  prepared.command = command;
  prepared.words.assign(words.begin(), words.end());
  prepared.script = std::move(script);
  request::Surroundings& around = prepared.around;
  around.environment = environment;
  around.inside_job = inside_job;
  around.is_root = ::geteuid() == 0;
  around.judges_nice = false;
  around.max_script = request::kMostScript;
  add_cluster_facts(around, words, prepared.script);
  for (const std::string& name :
       request::files_wanted(command, words, prepared.script, environment)) {
    if (auto text = read_file(name, kMaxNamedFile)) around.files[name] = std::move(*text);
  }
  auto parsed = request::parse(command, words, prepared.script, around);
  if (!parsed) return pass(std::move(parsed.error()));
  prepared.parsed = std::move(*parsed);
  print_messages(prepared.parsed.warnings, prepared.name());
  return prepared;
}

bool answered(const Prepared& prepared) {
  return print_answer(prepared.command, prepared.has(Opt::help), prepared.has(Opt::usage),
                      prepared.has(Opt::version));
}

wire::Asked asked_of(const Prepared& prepared, bool step) {
  wire::Asked asked;
  asked.set_command(std::string(prepared.name()));
  for (const std::string& word : prepared.words) asked.add_words(word);
  asked.set_script(prepared.script);
  for (const auto& [name, value] : prepared.around.environment) {
    if (step && !of_a_step(name)) continue;
    wire::Variable& variable = *asked.add_environment();
    variable.set_name(name);
    variable.set_value(value);
  }
  for (const auto& [name, content] : prepared.around.files) {
    wire::NamedFile& file = *asked.add_files();
    file.set_name(name);
    file.set_content(content);
  }
  asked.set_directory(current_directory());
  std::string line(prepared.name());
  for (const std::string& word : prepared.words) line += " " + quoted(word);
  asked.set_submit_line(line);
  asked.set_host(short_host_name());
  asked.set_session(static_cast<std::uint32_t>(std::max(::getsid(0), 0)));
  asked.set_umask(current_umask());
  for (wire::Limit& limit : limits_of(prepared.first())) *asked.add_limits() = std::move(limit);
  asked.set_niceness(::getpriority(PRIO_PROCESS, 0));
  return asked;
}

void put_variables(google::protobuf::RepeatedPtrField<wire::Variable>& out,
                   const Environment& variables) {
  out.Clear();
  out.Reserve(static_cast<int>(variables.size()));
  for (const auto& [name, value] : variables) {
    wire::Variable& variable = *out.Add();
    variable.set_name(name);
    variable.set_value(value);
  }
}

std::vector<wire::Limit> limits_of(const request::Request& request) {
  const request::Given* given = request.given.find(Opt::propagate);
  std::vector<std::string_view> names;
  bool all = given == nullptr || given->text.empty();
  if (!all) {
    for (const std::string_view name : text::split(given->text, ',')) {
      if (text::equal_ignoring_case(name, "NONE")) return {};
      all = all || text::equal_ignoring_case(name, "ALL");
      names.push_back(name.starts_with("RLIMIT_") ? name.substr(7) : name);
    }
  }
  std::vector<wire::Limit> limits;
  for (const LimitRow& row : kLimits) {
    const bool named = std::ranges::any_of(
        names, [&](std::string_view name) { return text::equal_ignoring_case(name, row.name); });
    rlimit value{};
    if ((!all && !named) ||
        ::getrlimit(static_cast<__rlimit_resource>(row.resource), &value) != 0) {
      continue;
    }
    wire::Limit limit;
    limit.set_name(row.name);
    if (value.rlim_cur != RLIM_INFINITY) limit.set_value(value.rlim_cur);
    limit.set_demanded(given != nullptr);
    limits.push_back(std::move(limit));
  }
  return limits;
}

std::string current_directory() {
  std::array<char, PATH_MAX> buffer{};
  return ::getcwd(buffer.data(), buffer.size()) == nullptr ? "/" : buffer.data();
}

std::string short_host_name() {
  std::array<char, HOST_NAME_MAX + 1> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0) return "localhost";
  const std::string_view name = buffer.data();
  return std::string(name.substr(0, name.find('.')));
}

mode_t current_umask() {
  const mode_t mask = ::umask(022);
  ::umask(mask);
  return mask;
}

std::optional<std::uint32_t> number_in(const Environment& environment, const char* name) {
  const auto at = environment.find(name);
  if (at == environment.end()) return std::nullopt;
  const auto number = text::parse_number(at->second, UINT32_MAX);
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

int own_exit_code(const Environment& environment, int code) {
  if (code == 0) return 0;
  return static_cast<int>(number_in(environment, "SLURM_EXIT_ERROR").value_or(code) & 0xff);
}

int immediate_exit_code(const Environment& environment) {
  return static_cast<int>(number_in(environment, "SLURM_EXIT_IMMEDIATE").value_or(1) & 0xff);
}

}  // namespace berth::command
