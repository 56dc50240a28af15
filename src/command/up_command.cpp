// berth up: a cluster on this machine, real or pretended.
#include <fmt/format.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "command/files.h"
#include "command/messages.h"
#include "command/option_words.h"
#include "command/up_cluster.h"
#include "command/up_conf.h"
#include "command/up_home.h"
#include "command/up_plan.h"
#include "command/up_processes.h"
#include "command/version.h"
#include "net/paths.h"
#include "request/request.h"
#include "text/hostlist.h"
#include "text/words.h"
#include "wire/identity.pb.h"

namespace berth::command {
namespace {

constexpr std::string_view kUpUsage =
    R"(usage: berth up [--emulate SPEC|DIR | --listen NODES] [--state DIR]

Makes this machine a cluster of one node, and starts it. Needs no root and no configuration.

  --emulate SPEC   a pretended cluster instead: 4x4:a100 is 4 nodes with 4 A100 each;
                   'gpu[1-4]:cpus=16:mem=64G:gpus=a100x4,cpu[1-2]:cpus=32' says more
  --emulate DIR    the same of the slurm.conf and gres.conf in a directory
  --listen NODES   a cluster of this machine and others, which get the names NODES (n2,n3): listens
                   on the network (TLS), and prints for each what to run on it. At each start
  --state DIR      where the cluster lives; default: the user's state directory
  -h, --help       this text

berth status shows it, berth down ends it. A cluster that root starts is open to all local users.
)";

constexpr auto kUpTable = std::to_array<OptionRow>({
    {"emulate", 0, Takes::value},
    {"listen", 0, Takes::value},
    {"state", 0, Takes::value},
    {"help", 'h', Takes::nothing},
});

/// Lines that explain a daemon that did not come up.
Error with_log(Error error, const std::string& log) {
  for (const std::string& line : tail(log, 12)) {
    error.messages.push_back({Severity::bare, "  " + line});
  }
  if (error.hint.empty()) error.hint = "the whole log is " + log;
  return error;
}

std::unexpected<Error> did_not_start(std::string_view program, int status, const std::string& log) {
  const std::string how = WIFSIGNALED(status)
                              ? fmt::format("was killed by signal {}", WTERMSIG(status))
                              : fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return pass(with_log(fail(Code::io, fmt::format("{} {}", program, how)).error(), log));
}

class Starter {
 public:
  Starter(ClusterHome home, const UpPlan& plan) : home_(std::move(home)), plan_(plan) {}

  /// Starts what does not run yet. What it started is ended again when something fails.
  Result<void> start() {
    auto done = start_both();
    if (!done) {
      for (const pid_t pid : started_) end_process(pid, std::chrono::seconds(5));
    }
    return done;
  }

 private:
  Result<void> start_both() {
    auto controller = program_beside("berthctld");
    if (!controller) return pass(std::move(controller.error()));
    auto agent = program_beside("berthd");
    if (!agent) return pass(std::move(agent.error()));
    if (auto supervisor = program_beside("berth-stepd"); !supervisor) {
      return pass(std::move(supervisor.error()));
    }
    if (!home_.controller()) {
      std::vector<std::string> words{*controller,   "-f",    home_.conf(), "--state",
                                     home_.store(), "--run", home_.run,    "--foreground"};
      if (plan_.emulated) words.emplace_back("--emulate");
      auto up =
          start_one("berthctld", words, home_.controller_log(), [&] { return answers(home_); });
      if (!up) return up;
    }
    if (!home_.agent()) {
      std::vector<std::string> words{*agent,        "-f",    home_.conf(), "--spool",
                                     home_.spool(), "--run", home_.run,    "--foreground"};
      if (plan_.emulated) words.emplace_back("--emulate");
      auto up =
          start_one("berthd", words, home_.node_log(), [&] { return home_.agent().has_value(); });
      if (!up) return up;
    }
    return {};
  }

  Result<void> start_one(std::string_view program, const std::vector<std::string>& words,
                         const std::string& log, const std::function<bool()>& is_up) {
    auto child = start_daemon(words, log);
    if (!child) return pass(std::move(child.error()));
    std::optional<int> status;
    const bool done = wait_until(std::chrono::seconds(30), [&] {
      if (!status) status = ended(*child);
      return is_up() || (status && *status != 0);
    });
    if (!status) started_.push_back(*child);
    if (status && *status != 0) return did_not_start(program, *status, log);
    if (!done) {
      return pass(with_log(
          fail(Code::timed_out, fmt::format("{} did not come up within 30 s", program)).error(),
          log));
    }
    return {};
  }

  ClusterHome home_;
  const UpPlan& plan_;
  std::vector<pid_t> started_;
};

/// The variables a shell needs before the commands find this cluster; "" when it needs none.
std::string exports_needed(const ClusterHome& home) {
  namespace fs = std::filesystem;
  std::string out;
  std::error_code failed;
  const auto own = program_beside("sinfo");
  const char* path = std::getenv("PATH");
  std::string first;
  for (const std::string_view part : text::split(path == nullptr ? "" : path, ':')) {
    const std::string candidate = fmt::format("{}/sinfo", part);
    if (!part.empty() && ::access(candidate.c_str(), X_OK) == 0) {
      first = candidate;
      break;
    }
  }
  if (own && (first.empty() || !fs::equivalent(first, *own, failed))) {
    out += fmt::format(" PATH={}:$PATH", own->substr(0, own->rfind('/')));
  }
  const std::string found = net::find_conf();
  if (found.empty() || !fs::equivalent(found, home.conf(), failed)) {
    out += " SLURM_CONF=" + home.conf();
  }
  return out;
}

void print_next(const ClusterHome& home, const cluster::Cluster& cluster) {
  bool gpus = false;
  for (const cluster::Node& node : cluster.nodes) gpus = gpus || node.find_gres("gpu") != nullptr;
  fmt::print("try:\n");
  if (const std::string exports = exports_needed(home); !exports.empty()) {
    fmt::print("  export{}\n", exports);
  }
  const std::string nodes = cluster.nodes.size() > 1 ? "-N2 -n2" : "-n1";
  fmt::print("  sinfo\n");
  if (gpus) {
    fmt::print("  srun -l {} --gpus-per-task=1 printenv SLURMD_NODENAME CUDA_VISIBLE_DEVICES\n",
               nodes);
  } else {
    fmt::print("  srun -l {} printenv SLURMD_NODENAME SLURM_PROCID\n", nodes);
  }
  fmt::print("  sbatch --wrap 'sleep 60'; squeue\n");
}

void print_found(const ClusterHome& home, const UpPlan& plan, const wire::Pong& pong) {
  for (const std::string& line : describe_nodes(plan.cluster)) {
    fmt::print("  {}{}\n", line, plan.emulated ? " (pretended)" : "");
  }
  for (const std::string& note : plan.notes) fmt::print("  note: {}\n", note);
  if (pong.limits_size() > 0) fmt::print("cannot be enforced here:\n");
  for (const std::string& limit : pong.limits()) fmt::print("  {}\n", limit);
  print_next(home, plan.cluster);
  std::fflush(stdout);
}

int already_running(const ClusterHome& home, const UpPlan& plan, const wire::Pong& pong) {
  if (plan.asked_for_emulation && !same_conf(home, plan)) {
    const Error error =
        fail(Code::conflict,
             fmt::format("a cluster with another configuration runs in {}", home.state),
             "berth down ends it; --state DIR puts another one beside it")
            .error();
    return print_error(error, "berth up");
  }
  fmt::print("cluster {} runs already in {}: {} of {} nodes are up\n", pong.cluster_name(),
             home.state, pong.nodes_up(), pong.nodes());
  if (!pong.version().empty() && pong.version() != kBerthVersion) {
    print_hint(
        fmt::format("the running controller is {}, this is {}; `berth down` and `berth up` "
                    "change that, and end the jobs",
                    pong.version(), kBerthVersion));
  }
  print_next(home, plan.cluster);
  return 0;
}

/// The slurm.conf that was copied names the cluster too, and is the one that jobs are told, unless
/// it names another one already.
Result<void> name_copy(const ClusterHome& home, UpPlan& plan) {
  if (plan.copied_from.empty()) {
    ::unlink(home.copied_from_file().c_str());
    return {};
  }
  if (named_by_another(home, plan.copied_from)) {
    ::unlink(home.copied_from_file().c_str());
    plan.notes.push_back(fmt::format("{} names another cluster that runs; this one is {}",
                                     plan.copied_from, home.conf()));
    return {};
  }
  if (auto put = replace_file(home.copied_from_file(), plan.copied_from + "\n"); !put) return put;
  return net::link_run_directory(home.conf(), plan.copied_from);
}

/// What to run on the machines that are to join; those that have are left out.
Result<void> print_invitations(const ClusterHome& home, const std::string& nodes) {
  auto client = reach(home);
  if (!client) return pass(std::move(client.error()));
  auto names = text::expand_hostlist(nodes);
  if (!names) return pass(std::move(names.error()));
  wire::ListNodes list;
  const auto known = client->ask<wire::NodesReply>(list, std::chrono::seconds(10));
  if (!known) return pass(known.error());
  for (const wire::NodeInfo& node : known->nodes()) std::erase(*names, node.name());
  if (names->empty()) return {};
  wire::MakeTokens ask;
  ask.set_nodes(text::compress_hostlist(*names));
  ask.set_new_nodes(true);
  const auto made = client->ask<wire::TokensMade>(ask, std::chrono::seconds(10));
  if (!made) return pass(made.error());
  fmt::print(
      "on the other machines, where berth is installed (each line is good once, for an hour):\n");
  for (int i = 0; i < made->tokens_size(); ++i) {
    fmt::print("  {}:  echo {} | berth join -\n", made->names(i), made->tokens(i));
  }
  return {};
}

Result<int> up(const std::string& emulate, bool emulated, const std::string& listen,
               const std::string& state) {
  auto plan = emulated ? plan_emulated(emulate) : plan_machine(!listen.empty());
  if (!plan) return pass(std::move(plan.error()));
  auto home = make_home(state);
  if (!home) return pass(std::move(home.error()));
  const auto lock = lock_home(*home);
  if (!lock) return pass(lock.error());
  if (both_run(*home)) {
    if (auto pong = ping(*home)) {
      const int done = already_running(*home, *plan, *pong);
      if (done != 0 || listen.empty()) return done;
      if (auto told = print_invitations(*home, listen); !told) return pass(std::move(told.error()));
      return 0;
    }
  }
  if (!home->controller()) {
    if (auto put = put_conf(*home, *plan); !put) return pass(std::move(put.error()));
  }
  if (auto made = net::make_run_directory(home->conf()); !made)
    return pass(std::move(made.error()));
  if (auto named = name_copy(*home, *plan); !named) return pass(std::move(named.error()));
  // One that was on its way out when it was looked for has gone meanwhile, and is started anew.
  constexpr int kMostTries = 3;
  for (int tries = 1;; ++tries) {
    if (auto started = Starter(*home, *plan).start(); !started) {
      if (!home->controller() && !home->agent()) remove_run_files(*home);
      return pass(std::move(started.error()));
    }
    std::string missing = "(berthctld or berthd has ended)";
    if (wait_for_nodes(*home, plan->cluster.nodes.size(), missing)) break;
    if (!both_run(*home) && tries < kMostTries) continue;
    auto error = fail(Code::timed_out, fmt::format("these nodes have not registered: {}", missing),
                      "the cluster is left running: `berth status` shows it, `berth down` ends it")
                     .error();
    return pass(with_log(std::move(error), home->node_log()));
  }
  const auto pong = ping(*home);
  if (!pong) return pass(pong.error());
  fmt::print("cluster {} is up; its state is in {}\n", pong->cluster_name(), home->state);
  print_found(*home, *plan, *pong);
  if (!listen.empty()) {
    if (auto done = print_invitations(*home, listen); !done) return pass(std::move(done.error()));
  }
  return 0;
}

}  // namespace

int run_up(std::span<const std::string> words, const request::Environment& /*environment*/) {
  const auto read = read_options("berth up", kUpTable, words);
  if (!read) return print_error(read.error(), "berth up");
  if (!read->operands.empty()) {
    return print_error(fail(Code::option_syntax, fmt::format("what is {}?", read->operands.front()),
                            "berth up --help shows the options")
                           .error(),
                       "berth up");
  }
  std::string emulate;
  std::string state;
  std::string listen;
  bool emulated = false;
  for (const GivenOption& option : read->options) {
    if (option.row->name == "help") {
      fmt::print("{}", kUpUsage);
      return 0;
    }
    if (option.row->name == "emulate") emulate = *option.value;
    if (option.row->name == "emulate") emulated = true;
    if (option.row->name == "listen") listen = *option.value;
    if (option.row->name == "state") state = *option.value;
    if (option.value && option.value->empty()) {
      return print_error(
          fail(Code::bad_value, fmt::format("--{} needs a value", option.row->name)).error(),
          "berth up");
    }
  }
  if (emulated && !listen.empty()) {
    return print_error(fail(Code::conflict, "a pretended cluster has no other machines",
                            "--listen makes a cluster of this machine and others as they are")
                           .error(),
                       "berth up");
  }
  const auto done = up(emulate, emulated, listen, state);
  return done ? *done : print_error(done.error(), "berth up");
}

}  // namespace berth::command
