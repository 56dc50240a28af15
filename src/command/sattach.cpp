// sattach: the streams of a step that runs already.
#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <cstdio>
#include <map>

#include "command/commands.h"
#include "command/controller_client.h"
#include "command/launch_run.h"
#include "command/messages.h"
#include "command/option_words.h"
#include "command/version.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "wire/step_ids.h"

namespace berth::command {
namespace {

constexpr std::string_view kSattachName = "sattach";

constexpr std::array kSattachOptions = {
    OptionRow{"input-filter", 0, Takes::value}, OptionRow{"output-filter", 0, Takes::value},
    OptionRow{"error-filter", 0, Takes::value}, OptionRow{"label", 'l', Takes::nothing},
    OptionRow{"layout", 0, Takes::nothing},     OptionRow{"pty", 0, Takes::nothing},
    OptionRow{"quiet", 'Q', Takes::nothing},    OptionRow{"unbuffered", 'u', Takes::nothing},
    OptionRow{"verbose", 'v', Takes::nothing},  OptionRow{"version", 'V', Takes::nothing},
    OptionRow{"help", 'h', Takes::nothing},     OptionRow{"usage", 0, Takes::nothing},
};

constexpr std::string_view kSattachHelp =
    R"(Usage: sattach [OPTIONS…] JOB.STEP

Shows the output of a running step from now on, and sends it what is typed. Ctrl-C leaves it running.

Options:
      --input-filter=RANK     send input to this task only
      --output-filter=RANK    show the standard output of this task only
      --error-filter=RANK     show the standard error of this task only
  -l, --label                 task number before each line
      --layout                which task runs on which node, and no more
      --pty                   task 0 has a terminal: every key goes to it
  -u, --unbuffered            no line buffering
  -Q, --quiet                 no informational messages
  -v, --verbose               more messages
  -h, --help                  this text
  -V, --version               print the version
)";

struct Arguments {
  std::uint32_t job = 0;
  std::uint32_t step = 0;
  bool layout = false;
  RunOptions run;
};

std::unexpected<Error> wrong_sattach(std::string text) {
  return fail(Code::option_syntax, std::move(text), "sattach 12.0 attaches to step 0 of job 12");
}

Result<std::uint32_t> rank_of(const GivenOption& option) {
  const auto rank = text::parse_number(option.value.value_or(""), UINT32_MAX);
  if (!rank) {
    return wrong_sattach(
        fmt::format("--{}={} is no task number", option.row->name, option.value.value_or("")));
  }
  return static_cast<std::uint32_t>(*rank);
}

Result<void> read_step(const std::vector<std::string>& operands, Arguments& arguments) {
  if (operands.size() != 1) return wrong_sattach("Requires one argument: the step to attach to");
  const std::string& name = operands.front();
  const std::size_t dot = name.find('.');
  const auto job = text::parse_number(std::string_view(name).substr(0, dot), UINT32_MAX);
  if (!job || dot == std::string::npos)
    return wrong_sattach(fmt::format("Invalid step name: {}", name));
  const std::string_view step = std::string_view(name).substr(dot + 1);
  arguments.job = static_cast<std::uint32_t>(*job);
  if (step == "interactive") {
    arguments.step = wire::kInteractiveStep;
  } else if (step == "batch" || step == "extern") {
    return wrong_sattach(fmt::format("{} writes to files; there is nothing to attach to", name));
  } else if (const auto number = text::parse_number(step, UINT32_MAX)) {
    arguments.step = static_cast<std::uint32_t>(*number);
  } else {
    return wrong_sattach(fmt::format("Invalid step name: {}", name));
  }
  return {};
}

Result<void> read_option(const GivenOption& option, Arguments& arguments) {
  RunOptions& run = arguments.run;
  const std::string_view name = option.row->name;
  if (name.ends_with("-filter")) {
    const auto rank = rank_of(option);
    if (!rank) return pass(rank.error());
    if (name == "input-filter") run.input_rank = *rank;
    if (name == "output-filter") run.only_output = *rank;
    if (name == "error-filter") run.only_error = *rank;
  }
  if (name == "label") run.label = true;
  if (name == "layout") arguments.layout = true;
  if (name == "pty") run.pty = true;
  if (name == "quiet") run.quiet = true;
  if (name == "unbuffered") run.unbuffered = true;
  if (name == "verbose") ++run.verbosity;
  return {};
}

void print_layout(const wire::AccessGrant& access) {
  std::vector<std::string> nodes;
  std::map<std::string, std::vector<int>> tasks;
  for (int rank = 0; rank < access.task_nodes_size(); ++rank) {
    const std::string& node = access.task_nodes(rank);
    if (!tasks.contains(node)) nodes.push_back(node);
    tasks[node].push_back(rank);
  }
  fmt::print("Job step layout:\n  {} tasks, {} nodes ({})\n\n", access.ntasks(), nodes.size(),
             text::compress_hostlist(nodes));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    fmt::print("  Node {} ({}), {} task(s): {}\n", i, nodes[i], tasks[nodes[i]].size(),
               fmt::join(tasks[nodes[i]], " "));
  }
}

int attach(Arguments arguments, const request::Environment& environment) {
  wire::GetAccess ask;
  ask.set_job_id(arguments.job);
  ask.set_step_id(arguments.step);
  ask.set_purpose("attach");
  const auto access = ask_controller<wire::AccessGrant>(environment, kSattachName, ask);
  if (!access) return print_error(access.error(), kSattachName);
  if (arguments.layout) {
    print_layout(*access);
    return 0;
  }
  RunOptions& run = arguments.run;
  run.program = kSattachName;
  run.job_id = arguments.job;
  run.step_id = arguments.step;
  run.ntasks = access->ntasks();
  run.attached = true;
  run.input = true;
  if (run.pty) run.input_rank = 0;
  std::vector<StepNode> nodes;
  std::vector<launch::Branch> branches;
  for (int i = 0; i < access->tickets_size() && i < access->addresses_size(); ++i) {
    wire::Attach first;
    *first.mutable_ticket() = launch::shown(access->tickets(i));
    StepNode node;
    node.name = access->tickets(i).node();
    for (int rank = 0; rank < access->task_nodes_size(); ++rank) {
      if (access->task_nodes(rank) == node.name) {
        node.ranks.push_back(static_cast<std::uint32_t>(rank));
      }
    }
    branches.push_back({.nodes = {nodes.size(), 1},
                        .address = net::Address::from(access->addresses(i)),
                        .request = wire::framed(first),
                        .session = launch::session_of(access->tickets(i))});
    nodes.push_back(std::move(node));
  }
  ::signal(SIGPIPE, SIG_IGN);
  SignalFd signals({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCONT, SIGWINCH});
  return StepRun(std::move(run), std::move(nodes), std::move(branches), nullptr, signals).run();
}

}  // namespace

int run_sattach(std::span<const std::string> words, const request::Environment& environment) {
  const auto read = read_options(kSattachName, kSattachOptions, words);
  if (!read) return print_error(read.error(), kSattachName);
  Arguments arguments;
  for (const GivenOption& option : read->options) {
    if (option.row->name == "help" || option.row->name == "usage") {
      fmt::print("{}", kSattachHelp);
      return 0;
    }
    if (option.row->name == "version") {
      fmt::print("{}\n", kSlurmVersion);
      return 0;
    }
    if (auto taken = read_option(option, arguments); !taken)
      return print_error(taken.error(), kSattachName);
  }
  if (auto taken = read_step(read->operands, arguments); !taken) {
    return print_error(taken.error(), kSattachName);
  }
  return attach(std::move(arguments), environment);
}

}  // namespace berth::command
