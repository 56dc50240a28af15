#include "command/launch_options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "command/launch_multi_prog.h"
#include "command/launch_terminal.h"
#include "command/messages.h"
#include "command/submit_environment.h"
#include "request/signals.h"
#include "text/number.h"
#include "text/pattern.h"
#include "text/words.h"

namespace berth::command {
namespace {

using request::Environment;
using request::Opt;
using request::Request;
using Stream = StreamChoice::Kind;

/// Whether the pattern names a different file on each node or for each task.
bool differs_by_node(std::string_view pattern) {
  if (pattern.find('\\') != std::string_view::npos) return false;
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    ++i;
    if (pattern[i] == '%') continue;
    while (i + 1 < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9') ++i;
    if (pattern[i] == 't' || pattern[i] == 'n' || pattern[i] == 'N') return true;
  }
  return false;
}

std::string value_in(const Environment& environment, const char* name) {
  const auto at = environment.find(name);
  return at == environment.end() ? std::string() : at->second;
}

std::string text_of(const Request& request, Opt opt) {
  const request::Given* given = request.given.find(opt);
  return given == nullptr ? std::string() : given->text;
}

/// Flags with an optional number: --kill-on-bad-exit[=0|1].
bool is_on(const Request& request, Opt opt) {
  const request::Given* given = request.given.find(opt);
  return given != nullptr && given->text != "0";
}

text::PatternValues pattern_values(const StepFacts& facts, const Environment& environment) {
  text::PatternValues values;
  values.job_id = std::to_string(facts.job_id);
  values.step_id = std::to_string(facts.step_id);
  values.job_name = facts.job_name;
  values.user = facts.user;
  values.node = short_host_name();
  const std::string array = value_in(environment, "SLURM_ARRAY_JOB_ID");
  if (!array.empty()) {
    values.array_master = array;
    values.array_index = value_in(environment, "SLURM_ARRAY_TASK_ID");
  }
  return values;
}

bool appends(const Request& request) {
  return text_of(request, Opt::open_mode).starts_with('a');
}

void put_stream(wire::StdioSpec& spec, const StreamChoice& choice) {
  switch (choice.kind) {
    case Stream::client:
    case Stream::own_file:
      spec.set_kind("client");
      break;
    case Stream::none:
      spec.set_kind("none");
      break;
    case Stream::task:
      spec.set_kind("task");
      spec.set_rank(choice.rank);
      break;
    case Stream::node_file:
      spec.set_kind("file");
      spec.set_pattern(choice.pattern);
      break;
  }
}

struct Streams {
  StreamChoice input, output, error;
};

Streams streams_of(const Request& request, std::uint32_t ntasks) {
  Streams streams;
  streams.input = read_stream(request.input, ntasks);
  streams.output = read_stream(request.output, ntasks);
  streams.error = request.error ? read_stream(request.error, ntasks) : streams.output;
  if (request.pty) streams.input = {Stream::task, {}, 0};
  return streams;
}

Environment variables_of(const Request& request, const StepFacts& facts,
                         const Environment& environment, int verbosity) {
  Environment out = step_environment(environment, request);
  out["SLURM_UMASK"] = fmt::format("{:04o}", current_umask());
  out["SLURM_PRIO_PROCESS"] = std::to_string(::getpriority(PRIO_PROCESS, 0));
  out["SLURM_LAUNCH_NODE_IPADDR"] = out["SLURM_SRUN_COMM_HOST"] = facts.host;
  out["SRUN_DEBUG"] = std::to_string(3 + verbosity);
  if (facts.own_job) {
    out["SLURM_SUBMIT_DIR"] = current_directory();
    out["SLURM_SUBMIT_HOST"] = short_host_name();
  }
  if (request.given.has(Opt::label)) out["SLURM_LABELIO"] = "1";
  if (const auto window = window_of(STDIN_FILENO); window && request.pty) {
    out["SLURM_PTY_WIN_COL"] = std::to_string(window->columns);
    out["SLURM_PTY_WIN_ROW"] = std::to_string(window->rows);
  }
  return out;
}

std::unexpected<Error> cannot_open(std::string_view what, int problem) {
  return fail(Code::io, fmt::format("Could not open {} file: {}", what, std::strerror(problem)));
}

Result<std::shared_ptr<Sink>> open_sink(std::string_view what, const std::string& path,
                                        bool append) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0666));
  if (!fd) return cannot_open(what, errno);
  return std::make_shared<Sink>(std::move(fd));
}

Result<void> open_files(RunOptions& options, const Streams& streams, const Request& request,
                        const text::PatternValues& values) {
  if (streams.input.kind == Stream::own_file) {
    options.input_file.reset(
        ::open(text::expand_pattern(streams.input.pattern, values).c_str(), O_RDONLY | O_CLOEXEC));
    if (!options.input_file) return cannot_open("stdin", errno);
  }
  if (streams.output.kind == Stream::own_file) {
    auto sink =
        open_sink("stdout", text::expand_pattern(streams.output.pattern, values), appends(request));
    if (!sink) return pass(std::move(sink.error()));
    options.output = *sink;
  }
  if (streams.error.kind == Stream::own_file) {
    if (streams.error == streams.output) {
      options.error = options.output;
      return {};
    }
    auto sink =
        open_sink("stderr", text::expand_pattern(streams.error.pattern, values), appends(request));
    if (!sink) return pass(std::move(sink.error()));
    options.error = *sink;
  }
  return {};
}

}  // namespace

StreamChoice read_stream(const std::optional<std::string>& text, std::uint32_t ntasks) {
  StreamChoice choice;
  if (!text || text->empty() || text->starts_with("all")) return choice;
  if (*text == "none") {
    choice.kind = Stream::none;
    return choice;
  }
  if (const auto rank = text::parse_number(*text, UINT32_MAX); rank && *rank < ntasks) {
    choice.kind = Stream::task;
    choice.rank = static_cast<std::uint32_t>(*rank);
    return choice;
  }
  choice.kind = differs_by_node(*text) ? Stream::node_file : Stream::own_file;
  choice.pattern = *text;
  return choice;
}

/// -K, or KillOnBadExit where it is not given.
static bool kills_on_bad_exit(const Request& request, bool otherwise) {
  return request.given.has(Opt::kill_on_bad_exit) ? is_on(request, Opt::kill_on_bad_exit)
                                                  : otherwise;
}

wire::Program program_of(const Prepared& prepared, const Request& request, const StepFacts& facts,
                         const Environment& environment) {
  wire::Program program;
  const std::string directory = request.chdir.value_or(current_directory());
  std::vector<std::string> argv = request.argv;
  if (!argv.empty() && argv.front().find('/') != std::string::npos &&
      !argv.front().starts_with('/')) {
    argv.front() = fmt::format("{}/{}", current_directory(), argv.front());
  }
  if (request.multi_prog && !argv.empty()) {
    const auto file = prepared.around.files.find(request.argv.front());
    if (file != prepared.around.files.end()) {
      const auto commands = multi_prog_commands(file->second, facts.ntasks);
      for (std::uint32_t rank = 0; rank < commands.size(); ++rank) {
        wire::ProgramOf& one = *program.add_multi_prog();
        one.set_rank(rank);
        for (const std::string& word : commands[rank]) one.add_argv(word);
      }
    }
  }
  for (const std::string& word : argv) program.add_argv(word);
  put_variables(*program.mutable_environment(),
                variables_of(request, facts, environment, prepared.verbosity()));
  program.set_directory(directory);
  program.set_umask(current_umask());
  for (wire::Limit& limit : limits_of(request)) *program.add_limits() = std::move(limit);
  program.set_niceness(::getpriority(PRIO_PROCESS, 0));

  const Streams streams = streams_of(request, facts.ntasks);
  put_stream(*program.mutable_stdin(), streams.input);
  put_stream(*program.mutable_stdout(), streams.output);
  put_stream(*program.mutable_stderr(), streams.error);
  program.set_append(appends(request));
  program.set_label(request.given.has(Opt::label));
  program.set_unbuffered(request.given.has(Opt::unbuffered));
  program.set_pty(request.pty);
  if (const auto window = window_of(STDIN_FILENO); window && request.pty) {
    program.set_rows(window->rows);
    program.set_columns(window->columns);
  }
  program.set_task_prolog(text_of(request, Opt::task_prolog));
  program.set_task_epilog(text_of(request, Opt::task_epilog));
  program.set_kill_on_bad_exit(kills_on_bad_exit(request, facts.kill_on_bad_exit));
  if (facts.wait_seconds > 0) program.set_wait_seconds(facts.wait_seconds);
  if (const auto wait = text::parse_number(text_of(request, Opt::wait_tasks), UINT32_MAX)) {
    program.set_wait_seconds(static_cast<std::uint32_t>(*wait));
  }
  program.set_job_name(facts.job_name);
  if (const auto array = number_in(environment, "SLURM_ARRAY_JOB_ID")) {
    program.set_array_job_id(*array);
    if (const auto task = number_in(environment, "SLURM_ARRAY_TASK_ID")) {
      program.set_array_task_id(*task);
    }
  }
  if (request.cpu_bind && request.cpu_bind->verbose) program.set_cpu_bind_report("verbose");
  program.set_mpi(text_of(request, Opt::mpi));
  program.set_launcher(text_of(request, Opt::launcher));
  program.set_preserve_env(request.given.has(Opt::preserve_env));
  return program;
}

Result<RunOptions> run_options_of(const Prepared& prepared, const StepFacts& facts,
                                  const wire::StepGrant& grant, const Environment& environment) {
  const Request& request = prepared.first();
  RunOptions options;
  options.job_id = facts.job_id;
  options.step_id = facts.step_id;
  options.ntasks = facts.ntasks;
  options.label = request.given.has(Opt::label);
  options.unbuffered = request.given.has(Opt::unbuffered);
  options.pty = request.pty;
  options.kill_on_bad_exit = kills_on_bad_exit(request, grant.kill_on_bad_exit());
  options.no_kill = request.given.has(Opt::no_kill) && text_of(request, Opt::no_kill) != "off";
  options.disable_status = request.given.has(Opt::disable_status);
  options.quit_on_interrupt = request.given.has(Opt::quit_on_interrupt);
  options.quiet = prepared.quiet();
  options.verbosity = prepared.verbosity();
  options.reduce_exit_lines = environment.contains("SLURM_SRUN_REDUCE_TASK_EXIT_MSG");
  const std::string ignored = text_of(request, Opt::ignore_signals);
  for (const std::string_view name : text::split(ignored, ',')) {
    if (const auto signal = request::parse_signal(name)) options.ignored_signals.insert(*signal);
  }
  if (const auto given = text::parse_number(text_of(request, Opt::msg_timeout), 86400)) {
    options.patience = std::chrono::seconds(*given);
  }
  if (grant.wait_seconds() > 0) options.wait = std::chrono::seconds(grant.wait_seconds());
  const bool let_go_on =
      request.given.has(Opt::kill_on_bad_exit) && !is_on(request, Opt::kill_on_bad_exit);
  // Who has said how long to wait after the first end has said it for this one too.
  const bool waits = request.given.has(Opt::wait_tasks) || grant.wait_seconds() > 0;
  if (grant.failure_grace_seconds() > 0 && !let_go_on && !waits) {
    options.failure_grace = std::chrono::seconds(grant.failure_grace_seconds());
  }
  if (grant.kill_wait_seconds() > 0)
    options.kill_wait = std::chrono::seconds(grant.kill_wait_seconds());
  if (const auto wait = text::parse_number(text_of(request, Opt::wait_tasks), 1U << 30)) {
    options.wait = std::chrono::seconds(*wait);
  }
  const Streams streams = streams_of(request, facts.ntasks);
  if (request.output && request.output->starts_with("all") && *request.output != "all") {
    print_hint(
        fmt::format("--output={} begins with \"all\" and means all tasks here, as in Slurm; "
                    "for a file of that name write ./{}",
                    *request.output, *request.output));
  }
  options.input = streams.input.kind == Stream::client || streams.input.kind == Stream::own_file ||
                  streams.input.kind == Stream::task;
  if (streams.input.kind == Stream::task) options.input_rank = streams.input.rank;
  if (auto opened = open_files(options, streams, request, pattern_values(facts, environment));
      !opened) {
    return pass(std::move(opened.error()));
  }
  return options;
}

}  // namespace berth::command
