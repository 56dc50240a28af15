// sbatch: reads the script, sends it, says the number of the job.
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "auth/random.h"
#include "command/commands.h"
#include "command/files.h"
#include "command/messages.h"
#include "command/print.h"
#include "command/submit_asked.h"
#include "command/submit_environment.h"
#include "command/submit_link.h"
#include "command/why_text.h"
#include "request/directives.h"
#include "request/getopt.h"
#include "text/words.h"

namespace berth::command {
namespace {

using request::Command;
using request::Environment;
using request::Opt;

constexpr std::string_view kSbatchName = "sbatch";

/// Where a script is: as it is named, else in the directories of PATH.
std::string find_script(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos || ::access(name.c_str(), F_OK) == 0) return name;
  const auto path = environment.find("PATH");
  if (path == environment.end()) return name;
  for (const std::string_view directory : text::split(path->second, ':')) {
    std::string candidate = fmt::format("{}/{}", directory.empty() ? "." : directory, name);
    if (::access(candidate.c_str(), R_OK) == 0 && !is_directory(candidate)) return candidate;
  }
  return name;
}

/// Whether the words make a script needless: --wrap brings one, help and version need none.
bool needs_no_script(std::span<const std::string> words) {
  const auto scanned = request::scan_words(Command::sbatch, words);
  if (!scanned) return true;  // the mistake is told by the parser
  for (const request::Occurrence& option : scanned->options) {
    if (option.opt == Opt::wrap || option.opt == Opt::help || option.opt == Opt::usage ||
        option.opt == Opt::version) {
      return true;
    }
  }
  return false;
}

Result<std::string> read_script(std::span<const std::string> words,
                                const Environment& environment) {
  const std::size_t at = request::first_argument(Command::sbatch, words);
  if (needs_no_script(words)) return std::string();
  const bool named = at < words.size();
  auto text = read_file(named ? find_script(words[at], environment) : "-", request::kMostScript);
  if (text || !named) return text;
  if (text.error().code == Code::limit) return text;
  return fail(Code::io, fmt::format("Unable to open file {}", words[at]),
              std::string(text.error().what()));
}

int exit_code_of(const wire::JobEnded& ended) {
  const int status = ended.exit_status();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// --wait: until the job, or all elements of the array, ended.
int wait_for_end(ControllerLink& link, std::uint32_t job) {
  wire::WaitJob ask;
  ask.set_job_id(job);
  link.on_return([ask](net::Client& client) { client.queue(ask); });
  link.send(ask);
  while (true) {
    while (auto frame = link.next()) {
      if (frame->kind == wire::Kind::Notice) continue;
      const auto ended = net::Client::reply_in<wire::JobEnded>(*frame);
      if (!ended) return print_error(ended.error(), kSbatchName);
      return exit_code_of(*ended);
    }
    const auto retry = link.until_try();
    pollfd wait{link.fd(), link.events(), 0};
    ::poll(&wait, 1, retry ? static_cast<int>(retry->count()) + 1 : -1);
    if (link.connected()) {
      link.flush();
    } else {
      link.try_again();
    }
  }
}

/// --explain: "", or "json".
Result<bool> explain_as_json(const Prepared& prepared) {
  const request::Given* given = prepared.first().given.find(Opt::explain);
  if (given == nullptr || given->text.empty()) return false;
  if (given->text == "json") return true;
  return fail(Code::bad_value,
              fmt::format("--explain={}: give --explain or --explain=json", given->text));
}

int print_explained(const wire::SubmitReply& reply, bool as_json, const Environment& environment) {
  wire::JobExplained why;
  if (!why.ParseFromString(reply.explained())) {
    return print_error(fail(Code::protocol, "the controller did not explain the job").error(),
                       kSbatchName);
  }
  if (as_json) {
    JsonText json;
    why_json(why, json);
    return print_text(std::move(json).done());
  }
  Shown shown;
  shown.now = std::time(nullptr);
  shown.times = time_format(environment);
  return print_text(why_text(why, shown));
}

int submit(const Prepared& prepared, const Environment& environment) {
  const auto as_json = explain_as_json(prepared);
  if (!as_json) return print_error(as_json.error(), kSbatchName);
  wire::SubmitJob job;
  *job.mutable_asked() = asked_of(prepared, false);
  auto variables = job_environment(environment, prepared.first());
  if (!variables) return print_error(variables.error(), kSbatchName);
  put_variables(*job.mutable_asked()->mutable_environment(), variables->variables);
  for (const std::string& name : variables->hidden) job.mutable_asked()->add_hidden(name);
  job.set_token(auth::random_token());
  const bool explain = prepared.has(Opt::explain);
  job.set_test_only(explain || prepared.has(Opt::test_only));

  ControllerLink link(environment, std::string(kSbatchName));
  const auto reply = submit_job(link, environment, job, prepared.parsed.warnings);
  if (!reply) {
    return own_exit_code(
        environment,
        print_error(job.test_only() ? test_only_error(reply.error()) : reply.error(), kSbatchName));
  }
  if (explain) return print_explained(*reply, *as_json, environment);
  if (job.test_only()) {
    if (auto starts = check_test_only(*reply); !starts) {
      return own_exit_code(environment, print_error(starts.error(), kSbatchName));
    }
    print_info(test_only_text(*reply), kSbatchName);
    return 0;
  }
  if (prepared.has(Opt::parsable)) {
    fmt::print("{}\n", reply->job_id());
  } else if (!prepared.quiet()) {
    fmt::print("Submitted batch job {}\n", reply->job_id());
  }
  std::fflush(stdout);
  return prepared.has(Opt::wait_job) ? wait_for_end(link, reply->job_id()) : 0;
}

}  // namespace

int run_sbatch(std::span<const std::string> words, const Environment& environment) {
  auto script = read_script(words, environment);
  if (!script) return print_error(script.error(), kSbatchName);
  const auto prepared =
      prepare(Command::sbatch, words, std::move(*script), environment, /*inside_job=*/false);
  if (!prepared) return own_exit_code(environment, print_error(prepared.error(), kSbatchName));
  if (answered(*prepared)) return 0;
  return submit(*prepared, environment);
}

}  // namespace berth::command
