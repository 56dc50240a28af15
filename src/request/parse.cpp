// Putting it together: command line, script and variables in order of precedence, component by
// component, into Requests.
#include "request/parse.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "request/conflicts.h"
#include "request/counts.h"
#include "request/directives.h"
#include "request/effects.h"
#include "request/environment.h"
#include "request/getopt.h"
#include "request/sizes.h"
#include "request/table.h"
#include "request/values.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::request {
namespace {

constexpr std::size_t kMaxComponents = 128;  // as Slurm
constexpr std::string_view kSeparator = ":";
constexpr std::size_t kLongestMessage = 1000;
constexpr std::size_t kLongestHint = 500;

/// The words of one component: its options, and the program if it names one.
struct WordComponent {
  std::vector<Occurrence> options;
  std::vector<std::string> argv;
  std::size_t argv_at = 0;  // index of the program; size of the words when there is none
};

/// Splits at ":" words: between option sets for all commands, after a program only for srun.
Result<std::vector<WordComponent>> split_words(Command command,
                                               std::span<const std::string> words) {
  std::vector<WordComponent> out;
  std::size_t at = 0;
  while (true) {
    Result<Scanned> scanned = scan_words(command, words, at);
    if (!scanned) return pass(std::move(scanned.error()));
    WordComponent component{std::move(scanned->options), {}, scanned->rest};
    std::size_t end = scanned->rest;
    if (command == Command::srun) {
      const auto rest = words.subspan(end);
      end += static_cast<std::size_t>(std::ranges::find(rest, kSeparator) - rest.begin());
    } else if (end < words.size() && words[end] != kSeparator) {
      end = words.size();
    }
    component.argv.assign(words.begin() + static_cast<std::ptrdiff_t>(scanned->rest),
                          words.begin() + static_cast<std::ptrdiff_t>(end));
    if (component.argv.empty()) component.argv_at = words.size();
    out.push_back(std::move(component));
    if (end >= words.size()) return out;
    if (out.size() == kMaxComponents) {
      return fail(Code::limit, "too many components",
                  fmt::format("a heterogeneous job has at most {}", kMaxComponents));
    }
    at = end + 1;
  }
}

bool has_option(const std::vector<Occurrence>& options, Opt opt) {
  return std::ranges::find(options, opt, &Occurrence::opt) != options.end();
}

/// Says in the hint where the value stood.
std::unexpected<Error> with_origin(Error error, const Given& given) {
  if (given.level == Level::directive) {
    error.hint = fmt::format("line {} of the script: {}", given.line, error.hint);
  } else if (given.level == Level::environment) {
    error.hint = fmt::format("from the variable {}: {}", given.variable, error.hint);
  }
  return std::unexpected(std::move(error));
}

class Parser {
 public:
  Parser(Command command, std::span<const std::string> words, std::string_view script,
         const Surroundings& around)
      : command_(command), words_(words), script_(script), around_(&around) {}

  Result<Parsed> run() {
    Result<std::vector<WordComponent>> lines = split_words(command_, words_);
    if (!lines) return pass(std::move(lines.error()));
    if (std::optional<Request> about = question(*lines)) {
      out_.components.push_back(std::move(*about));
      return std::move(out_);
    }
    if (command_ == Command::sbatch) {
      if (Result<void> read = read_script(*lines); !read) return pass(std::move(read.error()));
    }
    share_programs(*lines);
    const std::size_t count = std::max(lines->size(), directives_.size());
    lines->resize(count);
    directives_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (Result<void> built = component((*lines)[i], directives_[i]); !built) {
        return pass(std::move(built.error()));
      }
    }
    if (Result<void> checked = check_all(); !checked) return pass(std::move(checked.error()));
    return std::move(out_);
  }

 private:
  /// --help and the like: nothing else matters then.
  std::optional<Request> question(const std::vector<WordComponent>& lines) const {
    for (const WordComponent& line : lines) {
      for (const Occurrence& option : line.options) {
        if (option.opt != Opt::help && option.opt != Opt::usage && option.opt != Opt::version) {
          continue;
        }
        Request request;
        request.command = command_;
        request.given.put(option.opt, Given{});
        return request;
      }
    }
    return std::nullopt;
  }

  Result<void> read_script(const std::vector<WordComponent>& lines) {
    const WordComponent& last = lines.back();
    const bool wrapped = std::ranges::any_of(
        lines, [](const WordComponent& line) { return has_option(line.options, Opt::wrap); });
    if (wrapped) {
      if (last.argv.empty()) return {};
      return fail(Code::conflict, "Script arguments not permitted with --wrap option",
                  fmt::format("\"{}\" and --wrap: give one of them", last.argv.front()));
    }
    const std::size_t most = around_->stored ? script_.size() : around_->max_script;
    if (Result<void> checked = check_script(script_, most); !checked) return checked;
    const std::vector<VariableOption> variables =
        environment_options(command_, around_->environment, false, std::nullopt);
    const bool ignore_pbs = has_option(lines.front().options, Opt::ignore_pbs) ||
                            std::ranges::any_of(variables, [](const VariableOption& variable) {
                              return variable.option.opt == Opt::ignore_pbs;
                            });
    Result<ScriptOptions> found = script_options(
        script_, last.argv.empty() ? "stdin" : std::string_view(last.argv.front()), ignore_pbs);
    if (!found) return pass(std::move(found.error()));
    if (found->components.size() > kMaxComponents) {
      return fail(Code::limit, "too many components",
                  fmt::format("a heterogeneous job has at most {}", kMaxComponents));
    }
    directives_ = std::move(found->components);
    std::ranges::move(found->warnings, std::back_inserter(out_.warnings));
    return {};
  }

  /// A component without a program runs the next one's; the script belongs to the first.
  void share_programs(std::vector<WordComponent>& lines) const {
    if (command_ != Command::srun) {
      if (lines.size() > 1) lines.front().argv = std::move(lines.back().argv);
      // --wrap is a script too, and the first component has it.
      for (std::size_t i = 1; i < lines.size(); ++i) {
        const auto at = std::ranges::find(lines[i].options, Opt::wrap, &Occurrence::opt);
        if (at == lines[i].options.end()) continue;
        lines.front().options.push_back(std::move(*at));
        lines[i].options.erase(at);
      }
      return;
    }
    for (std::size_t i = lines.size(); i-- > 1;) {
      if (lines[i - 1].argv.empty()) lines[i - 1].argv = lines[i].argv;
    }
  }

  /// One component of the command line with its directives. --het-group makes several of it.
  Result<void> component(const WordComponent& line, const std::vector<DirectiveOption>& script) {
    std::vector<std::uint32_t> groups;
    for (const Occurrence& option : line.options) {
      if (option.opt != Opt::het_group) continue;
      Request scratch;
      if (Applied read = check(option, scratch); !read) return pass(std::move(read.error()));
      groups = scratch.het_groups;
    }
    if (groups.empty()) return add_component(line, script, next_group());
    if (groups.size() == 1) return add_component(line, script, groups.front());
    for (const std::uint32_t group : groups) {
      if (Result<void> added = add_component(line, script, group); !added) return added;
      out_.components.back().het_groups = {group};
    }
    return {};
  }

  /// Inside a heterogeneous job the parts of an srun go to its components in order.
  [[nodiscard]] std::optional<std::uint32_t> next_group() const {
    const auto size = around_->environment.find("SLURM_HET_SIZE");
    if (size == around_->environment.end()) return std::nullopt;
    const std::size_t part = out_.components.size();
    const bool there = part < text::parse_number(size->second, kMaxComponents).value_or(0);
    return there ? static_cast<std::uint32_t>(part) : 0;
  }

  Result<void> add_component(const WordComponent& line, const std::vector<DirectiveOption>& script,
                             std::optional<std::uint32_t> group) {
    Request request;
    request.command = command_;
    request.argv = line.argv;
    if (!line.argv.empty() && !around_->stored && line.argv.front().size() > kMostPath) {
      return too_long("the program's name", line.argv.front().size(), kMostPath);
    }
    step_ =
        command_ == Command::srun && (around_->inside_job || has_option(line.options, Opt::jobid) ||
                                      around_->environment.contains("SLURM_JOB_ID"));
    if (Result<void> gathered = gather(line, script, group, request.given); !gathered) {
      return gathered;
    }
    inherit_from_first(request.given);
    use_hostfile(request.given);
    if (Result<void> settled = resolve_conflicts(command_, step_, request.given); !settled) {
      return settled;
    }
    if (Result<void> done = check_effects(step_, request.given, out_.warnings); !done) return done;
    if (Result<void> built = build(request); !built) return built;
    if (Result<void> checked = check_request(request, step_); !checked) return checked;
    out_.components.push_back(std::move(request));
    return {};
  }

  /// All options by rising precedence; each is checked where it stands.
  Result<void> gather(const WordComponent& line, const std::vector<DirectiveOption>& script,
                      std::optional<std::uint32_t> group, OptionSet& options) {
    for (const DirectiveOption& one : script) {
      Given given{one.option.text, Level::directive, one.line, ""};
      if (Result<void> added = add(one.option, std::move(given), options); !added) return added;
    }
    for (const VariableOption& one :
         environment_options(command_, around_->environment, step_, group)) {
      Given given{one.option.text, Level::environment, 0, one.variable};
      if (Result<void> added = add(one.option, std::move(given), options); !added) return added;
    }
    for (const Occurrence& one : line.options) {
      Given given{one.text, Level::command_line, 0, ""};
      if (Result<void> added = add(one, std::move(given), options); !added) return added;
    }
    return {};
  }

  Applied check(const Occurrence& option, Request& scratch) {
    return apply_value({option.opt, option.text, command_, around_, false, step_, &out_.warnings},
                       scratch);
  }

  Result<void> add(const Occurrence& option, Given given, OptionSet& options) {
    Request scratch;
    if (Applied checked = check(option, scratch); !checked) {
      return with_origin(std::move(checked.error()), given);
    }
    if (option.opt == Opt::verbose && given.level == Level::command_line) {
      const Given* before = options.find(Opt::verbose);
      const bool again = before != nullptr && before->level == Level::command_line;
      given.text =
          fmt::format("{}", 1 + (again ? text::parse_number(before->text).value_or(0) : 0));
    }
    // The later of two opposites counts.
    if (option.opt == Opt::requeue) options.erase(Opt::no_requeue);
    if (option.opt == Opt::no_requeue) options.erase(Opt::requeue);
    if (option.opt == Opt::bell) options.erase(Opt::no_bell);
    if (option.opt == Opt::no_bell) options.erase(Opt::bell);
    if (option.opt == Opt::nodefile) options.erase(Opt::nodelist);
    if (option.opt == Opt::nodelist) options.erase(Opt::nodefile);
    options.put(option.opt, std::move(given));
    return {};
  }

  /// What describes the whole job is said once, with the first component.
  void inherit_from_first(OptionSet& options) const {
    if (out_.components.empty()) return;
    constexpr Opt kWhole[] = {Opt::account,   Opt::begin,      Opt::chdir,      Opt::comment,
                              Opt::deadline,  Opt::dependency, Opt::export_env, Opt::get_user_env,
                              Opt::hold,      Opt::immediate,  Opt::job_name,   Opt::jobid,
                              Opt::mail_type, Opt::mail_user,  Opt::wckey,      Opt::quiet,
                              Opt::verbose,   Opt::wait_job,   Opt::wrap,       Opt::label,
                              Opt::output,    Opt::error,      Opt::input,      Opt::mpi};
    for (const Opt opt : kWhole) {
      const Given* first = out_.components.front().given.find(opt);
      if (first != nullptr && !options.has(opt)) options.put(opt, *first);
    }
  }

  /// SLURM_HOSTFILE lays tasks out by its lines, unless the layout was chosen now.
  void use_hostfile(OptionSet& options) const {
    const auto file = around_->environment.find("SLURM_HOSTFILE");
    if (file == around_->environment.end() || file->second.empty()) return;
    const Given* dist = options.find(Opt::distribution);
    const bool arbitrary = dist != nullptr && text::to_lower(dist->text).starts_with("arbitrary");
    const bool chosen = dist != nullptr && dist->level != Level::environment;
    if (chosen ? !arbitrary : command_ != Command::srun) return;
    if (!chosen) {
      options.put(Opt::distribution, {"arbitrary", Level::environment, 0, "SLURM_HOSTFILE"});
    }
    if (!options.has(Opt::nodelist) && !options.has(Opt::nodefile)) {
      options.put(Opt::nodefile, {file->second, Level::environment, 0, "SLURM_HOSTFILE"});
    }
  }

  Result<void> build(Request& request) {
    for (const auto& [opt, given] : request.given.all()) {
      const Value value{opt, given.text, command_, around_, true, step_, &out_.warnings};
      if (Applied applied = apply_value(value, request); !applied) {
        return with_origin(std::move(applied.error()), given);
      }
    }
    const Given* file = request.given.find(Opt::nodefile);
    if (file != nullptr && file->variable == "SLURM_HOSTFILE" && request.ntasks) {
      if (request.nodelist.size() < *request.ntasks) return too_few_hosts(request);
      request.nodelist.resize(*request.ntasks);
    }
    return {};
  }

  static Result<void> too_few_hosts(const Request& request) {
    Error error;
    error.code = Code::conflict;
    error.messages = {{Severity::error, "Too few NodeNames in Slurm Hostfile"},
                      {Severity::error, "Failure getting NodeNames from hostfile"}};
    error.hint = fmt::format("SLURM_HOSTFILE names {} hosts for {} tasks: one line a task",
                             request.nodelist.size(), *request.ntasks);
    return std::unexpected(std::move(error));
  }

  Result<void> check_all() const {
    for (const Request& request : out_.components) {
      if (command_ == Command::srun && request.argv.empty()) {
        return fail_fatal(Code::option_syntax, "No command given to execute.",
                          "put the program after the options: srun -n4 ./program");
      }
      if (step_) continue;  // a step is held against its job, not by itself
      if (Result<Counts> counts = derive_counts(request); !counts) {
        return pass(std::move(counts.error()));
      }
    }
    return {};
  }

  Command command_;
  std::span<const std::string> words_;
  std::string_view script_;
  const Surroundings* around_;
  bool step_ = false;
  std::vector<std::vector<DirectiveOption>> directives_;
  Parsed out_;
};

/// SLURM_EXIT_ERROR replaces the exit code 1 of plain errors.
void use_exit_variable(Error& error, const Environment& environment) {
  const auto at = environment.find("SLURM_EXIT_ERROR");
  if (at == environment.end() || error.exit_code != 1 || error.messages.empty()) return;
  if (error.messages.front().severity != Severity::error) return;
  if (const auto code = text::parse_number(at->second, 255); code && *code > 0) {
    error.exit_code = static_cast<int>(*code);
  }
}

/// A value can be megabytes long; what is printed about it is not.
void shorten(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  text += "…";
}

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace

Result<Parsed> parse(Command command, std::span<const std::string> words, std::string_view script,
                     const Surroundings& around) {
  Result<Parsed> parsed = Parser(command, words, script, around).run();
  if (!parsed) {
    use_exit_variable(parsed.error(), around.environment);
    for (Message& message : parsed.error().messages) shorten(message.text, kLongestMessage);
    shorten(parsed.error().hint, kLongestHint);
  }
  return parsed;
}

std::size_t first_argument(Command command, std::span<const std::string> words) {
  const Result<std::vector<WordComponent>> lines = split_words(command, words);
  if (!lines) return words.size();
  for (const WordComponent& line : *lines) {
    if (!line.argv.empty()) return line.argv_at;
  }
  return words.size();
}

std::vector<std::string> files_wanted(Command command, std::span<const std::string> words,
                                      std::string_view script, const Environment& environment) {
  std::set<std::string> names;
  const auto consider = [&](const Occurrence& option) {
    const bool list = option.opt == Opt::nodelist || option.opt == Opt::exclude;
    const bool path = option.text.find('/') != std::string::npos;
    if (option.opt == Opt::nodefile || (list && path)) names.insert(option.text);
  };
  if (const Result<std::vector<WordComponent>> lines = split_words(command, words)) {
    for (const WordComponent& line : *lines) {
      std::ranges::for_each(line.options, consider);
      const auto multi = [](const Occurrence& option) { return option.opt == Opt::multi_prog; };
      if (!line.argv.empty() && std::ranges::any_of(line.options, multi)) {
        names.insert(line.argv.front());
      }
    }
  }
  if (command == Command::sbatch && script.size() <= kMostScript) {
    if (const Result<ScriptOptions> found = script_options(script, "", true)) {
      for (const auto& component : found->components) {
        for (const DirectiveOption& one : component) consider(one.option);
      }
    }
  }
  if (const auto file = environment.find("SLURM_HOSTFILE");
      file != environment.end() && !file->second.empty()) {
    names.insert(file->second);
  }
  return {names.begin(), names.end()};
}

std::string job_name_of(const Request& request) {
  if (request.job_name) return *request.job_name;
  if (request.wrap) return "wrap";
  if (request.command == Command::salloc) return "interactive";  // also with a command
  if (!request.argv.empty()) return base_name(request.argv.front());
  return std::string(command_name(request.command));
}

}  // namespace berth::request
