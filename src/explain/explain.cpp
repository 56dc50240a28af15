// From input to explanation: parse, place, read the script, follow it in time, lint.
#include "explain/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "explain/job.h"
#include "explain/processes.h"
#include "explain/tasks.h"
#include "explain/timeline.h"
#include "explain/words.h"
#include "lint/launch.h"
#include "place/environment.h"
#include "place/network_words.h"
#include "place/step_het.h"
#include "request/multi_prog.h"
#include "script/script.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::explain {
namespace {

using request::Command;
using script::Launcher;

/// The user's variables as a batch script finds them, by --export.
Environment exported(const Environment& mine, const std::optional<std::string>& option) {
  Environment out;
  const bool nested = mine.contains("SLURM_JOB_ID");
  const std::vector<std::string_view> items =
      text::split(option ? std::string_view(*option) : std::string_view("ALL"), ',');
  const bool all = std::ranges::any_of(
      items, [](std::string_view item) { return text::equal_ignoring_case(item, "ALL"); });
  for (const auto& [name, value] : mine) {
    // An enclosing job's own variables describe another job.
    if (nested && name.starts_with("SLURM")) continue;
    if (all || std::ranges::find(items, name) != items.end()) out[name] = value;
  }
  for (const std::string_view item : items) {
    const std::size_t eq = item.find('=');
    if (eq != std::string_view::npos && eq > 0) {
      out[std::string(item.substr(0, eq))] = item.substr(eq + 1);
    }
  }
  return out;
}

/// --help, --usage, --version.
bool only_prints(const request::Request& request) {
  return request.given.has(request::Opt::help) || request.given.has(request::Opt::usage) ||
         request.given.has(request::Opt::version);
}

/// First index of an array specification, for SLURM_ARRAY_TASK_ID.
std::string first_index(std::string_view array) {
  const std::size_t end = array.find_first_not_of("0123456789");
  return std::string(array.substr(0, end));
}

class Explainer {
 public:
  explicit Explainer(const Input& input)
      : input_(input), lister_(*input.cluster, input.with_environments) {}

  Explanation run() {
    out_.name = input_.name;
    out_.command = input_.command;
    auto parsed = request::parse(input_.command, input_.words, input_.script, input_.around);
    if (!parsed) {
      out_.error = refusal(parsed.error(), input_.command);
      if (parsed.error().exit_code == 0) return std::move(out_);  // an answer, as --mpi=list has
      parse_error_ = parsed.error();
      read_ = script::read_script(input_.script, input_.around.environment, {});
      lint({});
      return std::move(out_);
    }
    components_ = std::move(parsed->components);
    if (only_prints(components_.front())) {
      out_.error = Refusal{"it prints text and asks for nothing", 0, "", {}, ""};
      return std::move(out_);
    }
    out_.messages = rendered(parsed->warnings, input_.command);
    job_ = place(input_, components_);
    describe_job();
    note_unplanned();
    if (!job_.facts.empty()) {
      read_steps();
    } else {
      read_ = script::read_script(script_text(), input_.around.environment, script_arguments());
      lint({});
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string script_text() const {
    const auto& wrap = components_.front().wrap;
    return wrap ? "#!/bin/sh\n" + *wrap + "\n" : input_.script;
  }

  [[nodiscard]] std::vector<std::string> script_arguments() const {
    const auto& argv = components_.front().argv;
    if (argv.empty()) return {};
    return {argv.begin() + 1, argv.end()};
  }

  void describe_job() {
    out_.accepted = true;
    out_.verdict = place::Verdict::now;
    for (std::size_t i = 0; i < components_.size(); ++i) {
      const place::JobPlan& plan = job_.plans[i];
      place::JobPlan shown = plan;
      if (shown.allocation.nodes.empty() && i < job_.facts.size()) {
        shown.allocation = job_.facts[i].allocation;
      }
      out_.asks.push_back(in_words(components_[i], shown));
      for (std::string& line : rendered(plan.warnings, input_.command)) {
        out_.messages.push_back(std::move(line));
      }
      if (plan.verdict == place::Verdict::never) {
        out_.accepted = false;
        out_.verdict = plan.verdict;
        if (!out_.error) {
          out_.error = refusal(plan.error, input_.command, plan.reasons.nearest_miss);
        }
      } else if (plan.verdict != place::Verdict::now && out_.accepted &&
                 out_.verdict == place::Verdict::now) {
        out_.verdict = plan.verdict;
        out_.pending_reason = plan.pending_reason;
        out_.pending_text = plan.reasons.nearest_miss;
      }
    }
    out_.assumes_idle = job_.assumes_idle;
    for (std::size_t i = 0; i < job_.facts.size(); ++i) {
      note_switches(job_.facts[i].allocation);
      for (JobNode& node : job_nodes(*input_.cluster, job_.facts[i], i)) {
        out_.nodes.push_back(std::move(node));
      }
    }
    out_.array_size = components_.front().array_size;
    out_.array_most = array_most(components_.front());
  }

  /// "n[1-4]: one switch (leaf1)".
  void note_switches(const cluster::Allocation& allocation) {
    const std::string words = place::leaf_words(*input_.cluster, allocation);
    if (words.empty()) return;
    std::vector<std::string> names;
    for (const cluster::NodeShare& share : allocation.nodes) {
      names.push_back(input_.cluster->nodes[share.node].name);
    }
    out_.notes.push_back(fmt::format("{}: {}", text::compress_hostlist(names), words));
  }

  /// Options that would change the plan on a running cluster, by things a description of it lacks.
  void note_unplanned() {
    using request::Opt;
    static constexpr std::pair<Opt, std::string_view> kUnplanned[] = {
        {Opt::reservation, "--reservation: which nodes it holds is known to the controller only"},
        {Opt::licenses, "--licenses: whether they are free is known to the controller only"},
        {Opt::batch, "--batch: the script is shown on the first node, whatever its features"},
        {Opt::time_min, "--time-min: matters only where the scheduler fills gaps"},
    };
    for (const auto& [opt, text] : kUnplanned) {
      const bool given = std::ranges::any_of(
          components_, [&](const request::Request& r) { return r.given.has(opt); });
      if (given) out_.notes.push_back(fmt::format("not planned for: {}", text));
    }
    if (!input_.cluster->topology.flat()) return;
    for (const request::Request& request : components_) {
      if (request.switches) note_no_network("--switches");
      if (request.segment) note_no_network("--segment");
    }
  }

  void note_no_network(std::string_view option) {
    std::string note =
        fmt::format("not planned for: {}: the plan knows no network topology", option);
    if (std::ranges::find(out_.notes, note) == out_.notes.end()) {
      out_.notes.push_back(std::move(note));
    }
  }

  void read_steps() {
    const request::Request& request = components_.front();
    if (input_.command == Command::srun) return own_step();
    if (input_.command == Command::salloc) {
      out_.env = place::salloc_environment(*input_.cluster, job_.facts.front());
    } else {
      out_.env = place::het_batch_environment(*input_.cluster, job_.facts);
      add_array_variables(request);
      out_.batch = lister_.batch_task(job_.facts.front(), out_.env);
      add_elements(request);
    }
    Environment environment = input_.command == Command::salloc
                                  ? exported(input_.around.environment, std::nullopt)
                                  : exported(input_.around.environment, request.export_env);
    for (const auto& [name, value] : out_.env) environment[name] = value;
    read_ = input_.command == Command::salloc
                ? read_command(request.argv, environment)
                : script::read_script(script_text(), environment, script_arguments());
    if (input_.command == Command::salloc || request.wrap) forget_lines();
    for (const std::string& note : read_.notes) out_.notes.push_back(note);
    out_.script_truncated = read_.truncated || read_.syntax_error.has_value();
    if (input_.command == Command::salloc && read_.commands.empty()) {
      out_.notes.emplace_back(
          "salloc starts a shell on this machine, not in the job: what should use its GPUs needs "
          "srun");
    }
    const Timeline timeline = follow(input_, job_.facts, read_, environment);
    if (timeline.truncated) {
      out_.notes.push_back(
          fmt::format("only the first {} launcher lines are explained", kMaxSteps));
    }
    for (const Run& run : timeline.runs) add_step(run);
    lint(timeline.runs);
  }

  /// A command line has no lines that one could look up.
  void forget_lines() {
    for (script::Command& command : read_.commands) command.line = 0;
    for (script::Event& event : read_.events) event.line = 0;
  }

  void add_array_variables(const request::Request& request) {
    if (!request.array || !request.array_size) return;
    out_.env["SLURM_ARRAY_JOB_ID"] = out_.env["SLURM_JOB_ID"];
    out_.env["SLURM_ARRAY_TASK_ID"] = out_.env["SLURM_ARRAY_TASK_MIN"] =
        first_index(*request.array);
    out_.env["SLURM_ARRAY_TASK_COUNT"] = std::to_string(*request.array_size);
  }

  void add_elements(const request::Request& request) {
    if (!request.array || job_.assumes_idle) return;
    const auto placed = place_array(input_, request);
    std::size_t index = request.array_indices.next();
    for (const std::optional<place::JobFacts>& facts : placed) {
      Element element;
      element.index = static_cast<std::uint32_t>(index);
      index = request.array_indices.next(index + 1);
      element.starts = facts.has_value();
      if (facts) {
        element.nodes = job_nodes(*input_.cluster, *facts, 0);
        Environment env = place::batch_environment(*input_.cluster, *facts);
        for (const char* name :
             {"SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"}) {
          env[name] = out_.env[name];
        }
        env["SLURM_ARRAY_TASK_ID"] = std::to_string(element.index);
        element.batch = lister_.batch_task(*facts, env);
      }
      out_.elements.push_back(std::move(element));
    }
  }

  /// The command of salloc: it runs here, and may be a launcher.
  static script::Script read_command(const std::vector<std::string>& argv,
                                     const Environment& environment) {
    return script::read_script(shell_quoted(argv, true), environment, {});
  }

  /// srun outside a job: a job of its own with one step.
  void own_step() {
    std::vector<place::StepPlan> parts;
    std::vector<std::size_t> all;
    Step step;
    step.id = 0;
    step.command = "srun " + shell_quoted(input_.words);
    for (std::size_t i = 0; i < components_.size(); ++i) {
      parts.push_back(place::place_own_step(*input_.cluster, job_.facts[i], components_[i]));
      all.push_back(i);
      for (std::string& line : rendered(parts.back().warnings, Command::srun)) {
        step.messages.push_back(std::move(line));
      }
      if (parts.back().verdict != place::StepVerdict::starts) {
        step.start = StepStart::refused;
        step.id.reset();
        step.error = refusal(parts.back().error, Command::srun);
        if (!out_.error) launch_error_ = parts.back().error;
        refuse_own_step(step);
      }
    }
    check_multi_prog(step, parts);
    if (!step.error) {
      lister_.list_step(step, joined(all), parts, {}, components_.front().argv);
      count_processes(step, components_.front().argv);
    }
    out_.steps.push_back(std::move(step));
    lint_own_step(parts.front());
  }

  /// An srun whose only step fails has failed as a whole.
  void refuse_own_step(const Step& step) {
    if (!out_.error) out_.error = step.error;
    out_.accepted = false;
    out_.verdict = place::Verdict::never;
  }

  /// srun reads the configuration of --multi-prog before it starts anything.
  void check_multi_prog(Step& step, const std::vector<place::StepPlan>& parts) {
    for (std::size_t i = 0; i < components_.size() && !step.error; ++i) {
      const request::Request& request = components_[i];
      if (!request.multi_prog || request.argv.empty()) continue;
      const std::string& file = request.argv.front();
      const auto found = input_.around.files.find(file);
      std::optional<std::string_view> content;
      if (found != input_.around.files.end()) content = found->second;
      const auto checked = request::check_multi_prog(file, content, parts[i].ntasks);
      if (checked) continue;
      step.start = StepStart::refused;
      step.id.reset();
      step.error = refusal(checked.error(), Command::srun);
      launch_error_ = checked.error();
      refuse_own_step(step);
    }
  }

  void lint_own_step(const place::StepPlan& plan) {
    lint::StepSeen seen;
    seen.request = &components_.front();
    seen.plan = &plan;
    seen.error = launch_error_ ? &*launch_error_ : nullptr;
    run_lint({seen});
  }

  /// torchrun under srun: each task starts its own workers.
  void count_processes(Step& step, const std::vector<std::string>& argv) const {
    const std::vector<std::string> program = lint::bare_program(argv);
    const Launcher inner = script::recognise(program).launcher;
    if (step.tasks.empty()) return;
    if (inner == Launcher::accelerate && !accelerate_processes(program)) {
      step.notes.emplace_back(
          "how many processes accelerate starts in each task depends on its configuration file");
      return;
    }
    const auto each = [&](const Task& task) -> std::uint32_t {
      return inner == Launcher::accelerate ? *accelerate_processes(program)
                                           : local_processes(program, task.gpus.count());
    };
    if (inner != Launcher::accelerate && !lint::read_torch(argv)) return;
    std::uint64_t all = 0;
    for (const Task& task : step.tasks) all += each(task);
    step.processes = all;
    step.notes.push_back(fmt::format("{} start {} ({} in each)", counted(step.tasks.size(), "task"),
                                     counted(all, "process"), each(step.tasks.front())));
  }

  void add_step(const Run& run) {
    const script::Command& command = *run.command;
    if (command.launcher == Launcher::sbatch || command.launcher == Launcher::salloc) {
      out_.notes.push_back(
          fmt::format("line {}: {} asks for another job, which is not explained here", command.line,
                      script::launcher_name(command.launcher)));
      return;
    }
    Step step;
    step.launcher = command.launcher;
    step.line = command.line;
    step.command = shell_quoted(command.words);
    step.background = command.background;
    step.start = run.start;
    step.waits_for = run.waits_for;
    step.waits_why = run.waits_why;
    step.beside = run.beside;
    step.uncertain = command.conditional || run.start == StepStart::unknown;
    if (step.uncertain) step.why_uncertain = command.why_uncertain;
    step.messages = rendered(run.warnings, Command::srun);
    if (command.launcher == Launcher::srun) {
      add_srun(step, run);
    } else {
      add_foreign(step, run);
    }
    out_.steps.push_back(std::move(step));
  }

  /// The job as tasks over these components see it; its id is the leader's.
  [[nodiscard]] place::JobFacts joined(const std::vector<std::size_t>& components) const {
    std::vector<place::JobFacts> facts;
    for (const std::size_t component : components) {
      const bool again = facts.size() == 1 && job_.facts.size() == 1;  // parts of one ordinary job
      if (!again) facts.push_back(job_.facts[component]);
    }
    place::JobFacts all = place::join_jobs(facts);
    all.id = job_.facts.front().id;
    return all;
  }

  void add_srun(Step& step, const Run& run) {
    if (run.error) step.error = refusal(*run.error, Command::srun);
    if (!run.plan) return;
    for (std::string& line : rendered(run.plan->warnings, Command::srun)) {
      step.messages.push_back(std::move(line));
    }
    if (run.plan->verdict == place::StepVerdict::refused) {
      step.error = refusal(run.plan->error, Command::srun);
      return;
    }
    if (run.plan->verdict != place::StepVerdict::starts) return;
    step.id = run.plan->id;
    lister_.list_step(step, joined(run.components), run.parts, run.inherited,
                      run.requests.front().argv);
    count_processes(step, run.requests.front().argv);
  }

  void add_foreign(Step& step, const Run& run) {
    const script::Command& command = *run.command;
    const std::vector<std::string> words(
        command.words.begin() + static_cast<std::ptrdiff_t>(command.launcher_at),
        command.words.end());
    const place::JobFacts& job = job_.facts.front();
    if (command.launcher == Launcher::mpirun) {
      step.kind = StepKind::mpirun;
      if (run.plan) step.id = run.plan->id;
      return lister_.list_mpirun(step, job, words, run.plan);
    }
    step.kind = StepKind::local;
    Task like = lister_.batch_task(job, out_.env);
    if (input_.command == Command::salloc) {
      step.notes.emplace_back("it runs where salloc runs, not in the job");
      return;
    }
    lister_.list_local(step, like, local_processes(words, like.gpus.count()), words);
    const bool by_ssh =
        command.launcher == Launcher::deepspeed && lint::deepspeed_reaches_hosts(words);
    if (by_ssh) {
      step.notes.push_back(fmt::format(
          "deepspeed starts processes by ssh on every host it is told of; those of {} are listed",
          like.node));
    } else if (job.allocation.nodes.size() > 1) {
      step.notes.push_back(fmt::format("it runs on {} only, 1 of the {} nodes of the job",
                                       like.node, job.allocation.nodes.size()));
    }
  }

  void lint(const std::vector<Run>& runs) {
    std::vector<lint::StepSeen> steps;
    for (const Run& run : runs) {
      lint::StepSeen seen;
      seen.command = run.command;
      seen.request = run.requests.empty() ? nullptr : &run.requests.front();
      seen.plan = run.plan ? &*run.plan : nullptr;
      seen.error = run.error ? &*run.error : nullptr;
      steps.push_back(seen);
    }
    run_lint(std::move(steps));
  }

  void run_lint(std::vector<lint::StepSeen> steps) {
    lint::Input in;
    in.script = input_.script;
    in.script_name = input_.name;
    in.read = &read_;
    in.components = components_.empty() ? nullptr : &components_;
    in.parse_error = parse_error_ ? &*parse_error_ : nullptr;
    in.cluster = input_.cluster;
    in.plans = job_.plans.empty() ? nullptr : &job_.plans;
    in.steps = std::move(steps);
    in.arguments = input_.words;
    in.environment = input_.around.environment;
    in.directory_exists = input_.directory_exists;
    out_.findings = lint::check(in);
  }

  const Input& input_;
  TaskLister lister_;
  Explanation out_;
  std::optional<Error> parse_error_;
  std::optional<Error> launch_error_;  // of an srun's own step
  std::vector<request::Request> components_;
  Job job_;
  script::Script read_;
};

}  // namespace

bool Explanation::fine() const {
  if (!accepted || error) return false;
  for (const Step& step : steps) {
    if (step.error && !step.uncertain) return false;
    if (step.start == StepStart::never && !step.uncertain) return false;
  }
  return std::ranges::none_of(
      findings, [](const lint::Finding& finding) { return finding.level == lint::Level::error; });
}

Explanation explain(const Input& input) {
  return Explainer(input).run();
}

}  // namespace berth::explain
