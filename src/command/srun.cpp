// srun: a step in the job it is called in, or a job of its own with one step.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "auth/random.h"
#include "command/commands.h"
#include "command/controller_client.h"
#include "command/launch_multi_prog.h"
#include "command/launch_options.h"
#include "command/launch_run.h"
#include "command/messages.h"
#include "command/sbcast_send.h"
#include "command/srun_script.h"
#include "command/srun_step.h"
#include "command/submit_asked.h"
#include "command/submit_environment.h"
#include "command/submit_wait.h"
#include "request/getopt.h"
#include "request/multi_prog.h"
#include "text/number.h"

namespace berth::command {
namespace {

using request::Command;
using request::Environment;
using request::Opt;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::string_view kSrunName = "srun";
constexpr auto kSrunFinishPatience = seconds(20);

/// The job that the step is to run in: --jobid, else SLURM_JOB_ID; nullopt = srun makes its own.
std::optional<std::uint32_t> job_around(std::span<const std::string> words,
                                        const Environment& environment) {
  std::optional<std::uint32_t> job = number_in(environment, "SLURM_JOB_ID");
  if (!job) job = number_in(environment, "SLURM_JOBID");
  if (const auto scanned = request::scan_words(Command::srun, words)) {
    for (const request::Occurrence& option : scanned->options) {
      if (option.opt != Opt::jobid) continue;
      const auto number = text::parse_number(option.text, UINT32_MAX);
      job = static_cast<std::uint32_t>(number.value_or(0));
    }
  }
  return job;
}

/// Mistakes in the file of --multi-prog, for so many tasks.
Result<void> check_programs(const Prepared& prepared, const request::Request& request,
                            std::uint32_t ntasks) {
  if (!request.multi_prog || request.argv.empty()) return {};
  const auto file = prepared.around.files.find(request.argv.front());
  std::optional<std::string_view> content;
  if (file != prepared.around.files.end()) content = file->second;
  return request::check_multi_prog(request.argv.front(), content, ntasks);
}

/// Before anything is asked for, as far as the number of tasks is known.
Result<void> check_programs(const Prepared& prepared) {
  for (const request::Request& request : prepared.parsed.components) {
    const bool unreadable =
        !request.argv.empty() && !prepared.around.files.contains(request.argv.front());
    if (!request.ntasks && !unreadable) continue;
    if (auto sound = check_programs(prepared, request, request.ntasks.value_or(1)); !sound) {
      return sound;
    }
  }
  return {};
}

class Srun {
 public:
  Srun(const Prepared& prepared, const Environment& environment, std::optional<std::uint32_t> job,
       std::optional<SpawnOrder> spawned)
      : prepared_(prepared),
        environment_(environment),
        spawned_(std::move(spawned)),
        signals_({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH}),
        link_(environment, std::string(kSrunName)),
        own_job_(!job),
        job_(job.value_or(0)) {
    ::signal(SIGPIPE, SIG_IGN);
  }

  int run() {
    if (own_job_ || prepared_.has(Opt::test_only)) {
      if (const auto code = allocate()) return *code;
    } else if (auto opened = open_link(); !opened) {
      return refused(opened.error());
    }
    StepWait wait;
    wait.ask.set_job_id(job_);
    *wait.ask.mutable_asked() = asked_of(prepared_, true);
    wait.ask.set_own_job(own_job_);
    if (prepared_.first().external_launcher) wait.ask.set_kind("launcher");
    if (prepared_.has(Opt::interactive)) wait.ask.set_kind("interactive");
    wait.token = token_;
    wait.told = prepared_.parsed.warnings;
    wait.quiet = prepared_.quiet();
    wait.immediate = immediate_of(prepared_.first());
    auto grant = wait_for_step(link_, signals_, wait);
    if (!grant) {
      const int code = refused(grant.error());
      finish(1 << 8);
      return code;
    }
    return run_step(*grant);
  }

 private:
  int refused(const Error& error) const {
    const int code = print_error(error, kSrunName);
    return error.code == Code::nodes_busy ? immediate_exit_code(environment_)
                                          : own_exit_code(environment_, code);
  }

  /// In a job there is a controller; one that restarts just now is waited for.
  Result<void> open_link() {
    const Moment until = steady_clock::now() + seconds(60);
    bool told = false;
    while (true) {
      auto opened = link_.open();
      if (opened || steady_clock::now() >= until || !controller_expected(environment_)) {
        return opened;
      }
      if (!told) {
        print_hint("the controller does not answer; trying again for a minute (Ctrl-C gives up)");
      }
      told = true;
      pollfd wait{signals_.fd(), POLLIN, 0};
      ::poll(&wait, 1, 300);
      while (const auto signal = signals_.take()) {
        if (*signal != SIGCONT && *signal != SIGWINCH) return opened;
      }
    }
  }

  /// A job of its own; an exit code when srun is done with that.
  std::optional<int> allocate() {
    wire::SubmitJob job;
    *job.mutable_asked() = asked_of(prepared_, false);
    token_ = auth::random_token();
    job.set_token(token_);
    job.set_interactive(true);
    job.set_test_only(prepared_.has(Opt::test_only));
    const auto reply = submit_job(link_, environment_, job, prepared_.parsed.warnings, &signals_);
    if (!reply) return refused(job.test_only() ? test_only_error(reply.error()) : reply.error());
    if (job.test_only()) {
      if (auto starts = check_test_only(*reply); !starts) return refused(starts.error());
      print_info(test_only_text(*reply), kSrunName);
      return 0;
    }
    job_ = reply->job_id();
    JobWait wait;
    wait.program = kSrunName;
    wait.job_id = job_;
    wait.token = token_;
    wait.quiet = prepared_.quiet();
    wait.immediate = immediate_of(prepared_.first());
    auto grant = wait_for_job(link_, signals_, wait);
    if (!grant) return refused(grant.error());
    allocation_ = std::move(*grant);
    return std::nullopt;
  }

  /// Components of a heterogeneous step have programs of their own: which one a ticket is for.
  Result<void> learn_components() {
    if (prepared_.parsed.components.size() < 2 || allocation_) return {};
    wire::GetAllocation ask;
    ask.set_job_id(job_);
    auto grant = ask_controller<wire::JobGrant>(environment_, kSrunName, ask);
    if (!grant) return pass(std::move(grant.error()));
    allocation_ = std::move(*grant);
    return {};
  }

  [[nodiscard]] std::size_t component_of(const wire::StepSpec& spec) const {
    const auto& requests = prepared_.parsed.components;
    if (requests.size() < 2 || !allocation_) return 0;
    const auto component = [&](std::size_t i) -> const wire::Component* {
      std::size_t group = i;
      if (!requests[i].het_groups.empty()) group = requests[i].het_groups.front();
      const auto count = static_cast<std::size_t>(allocation_->components_size());
      return group < count ? &allocation_->components(static_cast<int>(group)) : nullptr;
    };
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const wire::Component* part = component(i);
      if (part != nullptr && i > 0 && part->job_id() == spec.job_id()) return i;
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const wire::Component* part = component(i);
      if (part != nullptr &&
          std::ranges::find(part->node_names(), spec.node()) != part->node_names().end()) {
        return i;
      }
    }
    return 0;
  }

  [[nodiscard]] StepFacts facts_of(const wire::StepGrant& grant) const {
    StepFacts facts;
    facts.job_id = job_;
    facts.step_id = grant.step_id();
    facts.ntasks = grant.ntasks();
    facts.user = grant.user();
    facts.own_job = own_job_;
    facts.kill_on_bad_exit = grant.kill_on_bad_exit();
    facts.wait_seconds = grant.wait_seconds();
    const auto name = environment_.find("SLURM_JOB_NAME");
    facts.job_name = own_job_ || name == environment_.end()
                         ? request::job_name_of(prepared_.first())
                         : name->second;
    return facts;
  }

  /// What users should know of programs that will not be found, or not be read as they think.
  void advise() const {
    if (prepared_.quiet()) return;
    for (const request::Request& request : prepared_.parsed.components) {
      std::string advice = advice_without_path(step_environment(environment_, request), request);
      if (advice.empty() && request.multi_prog && !request.argv.empty()) {
        const auto file = prepared_.around.files.find(request.argv.front());
        if (file != prepared_.around.files.end()) advice = multi_prog_advice(file->second);
      }
      if (!advice.empty()) print_hint(advice);
    }
  }

  /// Most agents to dial: --treewidth, else what the controller says; 0 = all of them.
  [[nodiscard]] std::uint32_t tree_width(const wire::StepGrant& grant) const {
    const request::Given* given = prepared_.first().given.find(Opt::treewidth);
    if (given == nullptr) return grant.tree_width();
    return static_cast<std::uint32_t>(text::parse_number(given->text, UINT16_MAX).value_or(0));
  }

  struct Start {
    std::vector<StepNode> nodes;
    std::vector<launch::Branch> branches;
  };
  Result<Start> start_of(wire::StepGrant& grant, const StepFacts& facts) {
    if (auto learned = learn_components(); !learned) return pass(std::move(learned.error()));
    wire::Relay plan;
    plan.set_width(tree_width(grant));
    for (std::size_t i = 0; i < prepared_.parsed.components.size(); ++i) {
      wire::Program& program = *plan.add_programs();
      program = program_of(prepared_, prepared_.parsed.components[i], facts, environment_);
      if (!sent_program_.empty() && i == 0) program.set_argv(0, sent_program_);
      if (spawned_) put_spawned(program, spawned_->tasks);
    }
    Start start;
    for (int i = 0; i < grant.tickets_size(); ++i) {
      const auto spec = wire::decode<wire::StepSpec>(grant.tickets(i).spec());
      if (!spec || i >= grant.addresses_size()) {
        return fail(Code::protocol, "the controller sent a ticket that cannot be read");
      }
      StepNode node{.name = grant.tickets(i).node(), .ranks = {}};
      for (const wire::TaskSpec& task : spec->tasks()) node.ranks.push_back(task.rank());
      wire::RelayNode& planned = *plan.add_nodes();
      planned.mutable_ticket()->Swap(grant.mutable_tickets(i));
      planned.mutable_address()->Swap(grant.mutable_addresses(i));
      planned.set_program(static_cast<std::uint32_t>(component_of(*spec)));
      planned.mutable_ranks()->Add(node.ranks.begin(), node.ranks.end());
      start.nodes.push_back(std::move(node));
    }
    start.branches = launch::client_branches(plan);
    if (prepared_.verbosity() > 0) {
      const auto nodes = static_cast<std::size_t>(plan.nodes_size());
      print_hint(fmt::format("{} nodes by {} connections, the farthest {} away", nodes,
                             start.branches.size(), launch::levels(nodes, plan.width())));
    }
    return start;
  }

  int run_step(wire::StepGrant& grant) {
    const StepFacts facts = facts_of(grant);
    advise();
    if (prepared_.parsed.components.size() == 1) {
      if (auto sound = check_programs(prepared_, prepared_.first(), facts.ntasks); !sound) {
        const int code = refused(sound.error());
        cancel();
        return code;
      }
    }
    auto options = run_options_of(prepared_, facts, grant, environment_);
    if (!options) {
      const int code = refused(options.error());
      cancel();
      return code;
    }
    if (!run_script(Opt::prolog, grant.srun_prolog(), "prolog_srun", facts)) {
      print_message({Severity::error, "the program before the step failed: nothing was started"},
                    kSrunName);
      cancel();
      return own_exit_code(environment_, 1);
    }
    if (auto sent = send_program(facts); !sent) {
      const int code = refused(sent.error());
      cancel();
      return code;
    }
    auto start = start_of(grant, facts);
    if (!start) {
      const int code = refused(start.error());
      cancel();
      return code;
    }
    reclaim_on_return(facts);
    options->spawns = spawn_template(prepared_.first(), job_, environment_);
    options->spawned = std::move(spawned_);
    StepRun step(std::move(*options), std::move(start->nodes), std::move(start->branches), &link_,
                 signals_);
    const int code = step.run();
    run_script(Opt::epilog, grant.srun_epilog(), "epilog_srun", facts);
    finish(step.wait_status());
    return code;
  }

  void reclaim_on_return(const StepFacts& facts) {
    link_.on_return([facts, token = token_](net::Client& client) {
      if (!token.empty()) {
        wire::ReclaimJob job;
        job.set_job_id(facts.job_id);
        job.set_token(token);
        client.queue(job);
      }
      wire::ReclaimStep step;
      step.set_job_id(facts.job_id);
      step.set_step_id(facts.step_id);
      client.queue(step);
    });
  }

  /// --prolog and --epilog, else what slurm.conf names; false when it failed.
  bool run_script(Opt opt, const std::string& configured, const std::string& context,
                  const StepFacts& facts) {
    const request::Given* given = prepared_.first().given.find(opt);
    const std::string path = given != nullptr ? given->text : configured;
    if (path.empty() || path == "none") return true;
    Environment variables = environment_;
    variables["SLURM_JOB_ID"] = variables["SLURM_JOBID"] = std::to_string(facts.job_id);
    variables["SLURM_STEP_ID"] = variables["SLURM_STEPID"] = std::to_string(facts.step_id);
    variables["SLURM_NTASKS"] = std::to_string(facts.ntasks);
    return run_srun_script(path, context, variables, signals_) == 0;
  }

  /// --bcast: the program goes to the nodes first and is run from there.
  Result<void> send_program(const StepFacts& facts) {
    const request::Given* given = prepared_.first().given.find(Opt::bcast);
    if (given == nullptr || prepared_.first().argv.empty()) return {};
    const std::string source = find_program(prepared_.first().argv.front(), environment_);
    std::string target = given->text;
    if (target.empty() || target.ends_with('/')) {
      target =
          fmt::format("{}slurm_bcast_{}.{}", target.empty() ? current_directory() + "/" : target,
                      facts.job_id, facts.step_id);
    }
    FileCopy copy;
    copy.source = source;
    copy.destination = target;
    copy.force = true;
    copy.preserve = true;
    copy.job_id = facts.job_id;
    copy.step_id = facts.step_id;
    if (auto sent = send_file(copy, environment_, kSrunName); !sent) return sent;
    sent_program_ = target;
    return {};
  }

  /// The job is not wanted any more.
  void cancel() {
    if (!own_job_) return;
    wire::CancelJobs ask;
    ask.add_jobs()->set_id(job_);
    link_.send(ask);
    wait_for_answer();
  }

  void finish(int status) {
    if (!own_job_ || job_ == 0) return;
    wire::FinishJob done;
    done.set_job_id(job_);
    done.set_exit_status(status);
    const bool sent = link_.connected();
    link_.send(done);
    if (sent && wait_for_answer()) return;
    // The controller went away: it hears of the end when it is back.
    link_.on_return([this, done](net::Client& client) {
      wire::ReclaimJob job;
      job.set_job_id(job_);
      job.set_token(token_);
      client.queue(job);
      client.queue(done);
    });
    wait_for_answer();
  }

  /// Whether Done or JobEnded came.
  bool wait_for_answer() {
    const Moment until = steady_clock::now() + kSrunFinishPatience;
    while (steady_clock::now() < until) {
      while (auto frame = link_.next()) {
        if (frame->kind == wire::Kind::Done || frame->kind == wire::Kind::JobEnded ||
            frame->kind == wire::Kind::Results) {
          return true;
        }
      }
      if (!link_.connected() && !link_.try_again() && !controller_expected(environment_)) {
        return false;
      }
      pollfd wait{link_.fd(), link_.events(), 0};
      ::poll(&wait, 1, link_.connected() ? 1000 : 100);
      link_.flush();
    }
    return false;
  }

  const Prepared& prepared_;
  const Environment& environment_;
  std::optional<SpawnOrder> spawned_;  // MPI_Comm_spawn in another step is what it is for
  SignalFd signals_;
  ControllerLink link_;
  bool own_job_;
  std::uint32_t job_;
  std::string token_;
  std::optional<wire::JobGrant> allocation_;
  std::string sent_program_;  // --bcast: where it is on the nodes
};

}  // namespace

int run_srun(std::span<const std::string> words, const Environment& around) {
  Environment environment = around;
  auto spawned = take_spawn_order(environment);
  if (!spawned) return own_exit_code(environment, print_error(spawned.error(), kSrunName));
  const std::optional<std::uint32_t> job = job_around(words, environment);
  const auto prepared = prepare(Command::srun, words, {}, environment, job.has_value());
  if (!prepared) return own_exit_code(environment, print_error(prepared.error(), kSrunName));
  if (answered(*prepared)) return 0;
  if (auto sound = check_programs(*prepared); !sound) {
    return own_exit_code(environment, print_error(sound.error(), kSrunName));
  }
  return Srun(*prepared, environment, job, std::move(*spawned)).run();
}

}  // namespace berth::command
