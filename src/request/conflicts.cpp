// The table of conflicts, one function a group.
#include "request/conflicts.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "request/table.h"
#include "request/values.h"
#include "text/number.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::request {
namespace {

/// "--mem (line 3 of the script)", "--mem (from SBATCH_MEM_PER_NODE)", "--mem".
std::string where(const OptionSet& options, Opt opt) {
  const Given* given = options.find(opt);
  if (given == nullptr || given->level == Level::command_line) return dashed(opt);
  if (given->level == Level::directive) {
    return fmt::format("{} (line {} of the script)", dashed(opt), given->line);
  }
  return fmt::format("{} (from {})", dashed(opt), given->variable);
}

std::string both(const OptionSet& options, Opt a, Opt b) {
  return fmt::format("given: {} and {}; drop one", where(options, a), where(options, b));
}

class Resolver {
 public:
  Resolver(Command command, bool step, OptionSet& options)
      : command_(command), step_(step), o_(&options) {}

  Result<void> run() {
    using Rule = Result<void> (Resolver::*)();
    for (const Rule rule :
         {&Resolver::memory, &Resolver::cpus, &Resolver::gpus_per_task, &Resolver::hint,
          &Resolver::gpus, &Resolver::tasks_per_gpu, &Resolver::launcher, &Resolver::sharing,
          &Resolver::layout, &Resolver::files, &Resolver::small_pairs}) {
      if (Result<void> done = (this->*rule)(); !done) return done;
    }
    return {};
  }

 private:
  [[nodiscard]] bool chosen(Opt opt) const { return o_->has(opt) && !o_->from_environment(opt); }
  [[nodiscard]] bool inherited(Opt opt) const { return o_->from_environment(opt); }

  std::unexpected<Error> fatal(std::string text, Opt a, Opt b) const {
    return fail_fatal(Code::conflict, std::move(text), both(*o_, a, b));
  }
  std::unexpected<Error> error(std::string text, Opt a, Opt b) const {
    return fail(Code::conflict, std::move(text), both(*o_, a, b));
  }

  Result<void> memory() {
    constexpr Opt kAll[] = {Opt::mem, Opt::mem_per_cpu, Opt::mem_per_gpu};
    std::vector<Opt> now;
    std::vector<Opt> before;
    for (const Opt opt : kAll) {
      if (chosen(opt)) now.push_back(opt);
      if (inherited(opt)) before.push_back(opt);
    }
    if (now.size() > 1) {
      return fatal("--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.", now[0],
                   now[1]);
    }
    if (now.empty() && before.size() > 1) {
      return fatal(
          "SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive.",
          before[0], before[1]);
    }
    if (!now.empty()) {
      for (const Opt opt : before) o_->erase(opt);
    }
    return {};
  }

  /// The "cpu" part of --tres-per-task, as written.
  [[nodiscard]] std::optional<std::string> tres_cpus() const {
    const Given* given = o_->find(Opt::tres_per_task);
    if (given == nullptr) return std::nullopt;
    for (const std::string_view item : text::split(given->text, ',')) {
      if (item.starts_with("cpu=") || item.starts_with("cpu:")) {
        return std::string(item.substr(4));
      }
    }
    return std::nullopt;
  }

  Result<void> cpus() {
    const bool tres_cpu = tres_cpus().has_value();
    if (tres_cpu && o_->has(Opt::cpus_per_task)) {
      if (Result<void> done = cpus_twice(); !done) return done;
    }
    if (!o_->has(Opt::cpus_per_gpu)) return {};
    const Opt other =
        tres_cpus() && !o_->has(Opt::cpus_per_task) ? Opt::tres_per_task : Opt::cpus_per_task;
    if (!o_->has(other)) return {};
    if (inherited(other) == inherited(Opt::cpus_per_gpu)) {
      return fatal(
          "--cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually exclusive",
          other, Opt::cpus_per_gpu);
    }
    if (inherited(Opt::cpus_per_gpu)) {
      o_->erase(Opt::cpus_per_gpu);
    } else if (other == Opt::cpus_per_task) {
      o_->erase(other);
      drop_tres("cpu");
    } else {
      drop_tres("cpu");
    }
    return {};
  }

  /// -c and --tres-per-task=cpu:n together.
  Result<void> cpus_twice() {
    const bool task_inherited = inherited(Opt::cpus_per_task);
    const bool tres_inherited = inherited(Opt::tres_per_task);
    if (!task_inherited && !tres_inherited) {
      return fatal(
          "You can not have --tres-per-task=cpu= and --cpus-per-task please use one or the other",
          Opt::tres_per_task, Opt::cpus_per_task);
    }
    if (task_inherited && !tres_inherited) {
      o_->erase(Opt::cpus_per_task);
    } else if (task_inherited && *tres_cpus() != o_->find(Opt::cpus_per_task)->text) {
      return fatal(
          fmt::format("cpus-per-task set by two different environment variables {}={} != {}=cpu={}",
                      o_->find(Opt::cpus_per_task)->variable, o_->find(Opt::cpus_per_task)->text,
                      o_->find(Opt::tres_per_task)->variable, *tres_cpus()),
          Opt::cpus_per_task, Opt::tres_per_task);
    } else if (!task_inherited) {
      drop_tres("cpu");  // -c replaces the inherited number
    }
    return {};
  }

  /// Takes one resource out of --tres-per-task.
  void drop_tres(std::string_view name) {
    const Given* given = o_->find(Opt::tres_per_task);
    if (given == nullptr) return;
    std::vector<std::string> kept;
    for (const std::string_view item : text::split(given->text, ',')) {
      const std::string_view head = item.substr(0, item.find_first_of("=:"));
      if (head != name) kept.emplace_back(item);
    }
    if (kept.empty()) {
      o_->erase(Opt::tres_per_task);
      return;
    }
    Given changed = *given;
    changed.text = fmt::format("{}", fmt::join(kept, ","));
    o_->put(Opt::tres_per_task, std::move(changed));
  }

  [[nodiscard]] bool tres_names_gpu() const {
    const Given* given = o_->find(Opt::tres_per_task);
    return given != nullptr && given->text.find("gres/gpu") != std::string::npos &&
           names_gpu(given->text);
  }

  Result<void> gpus_per_task() {
    if (!tres_names_gpu() || !o_->has(Opt::gpus_per_task)) return {};
    if (inherited(Opt::gpus_per_task) && !inherited(Opt::tres_per_task)) {
      o_->erase(Opt::gpus_per_task);
    } else if (chosen(Opt::gpus_per_task) && chosen(Opt::tres_per_task)) {
      return fatal(
          "You can not have --tres-per-task=gres/gpu: and --gpus-per-task please use one or the "
          "other",
          Opt::tres_per_task, Opt::gpus_per_task);
    } else {
      drop_tres("gres/gpu");
    }
    return {};
  }

  Result<void> hint() {
    if (!o_->has(Opt::hint)) return {};
    constexpr Opt kOthers[] = {Opt::extra_node_info,  Opt::threads_per_core, Opt::ntasks_per_core,
                               Opt::cores_per_socket, Opt::sockets_per_node, Opt::cpu_bind};
    const bool other_chosen = std::ranges::any_of(kOthers, [&](Opt opt) { return chosen(opt); });
    if (other_chosen) {
      o_->erase(Opt::hint);
    } else if (chosen(Opt::hint)) {
      for (const Opt opt : kOthers) o_->erase(opt);
    }
    return {};
  }

  Result<void> gpus() {
    if (command_ == Command::srun && chosen(Opt::gpus) && inherited(Opt::gpus_per_node)) {
      o_->erase(Opt::gpus_per_node);
    }
    const Given* gres = o_->find(Opt::gres);
    if (gres != nullptr && names_gpu(gres->text) && o_->has(Opt::gpus_per_node)) {
      return fatal("--gpus-per-node and --gres=gpu are mutually exclusive.", Opt::gpus_per_node,
                   Opt::gres);
    }
    return {};
  }

  Result<void> tasks_per_gpu() {
    const Opt tasks = o_->has(Opt::ntasks_per_gpu) ? Opt::ntasks_per_gpu : Opt::ntasks_per_tres;
    if (!o_->has(tasks)) return {};
    for (const Opt opt : {Opt::gpus_per_task, Opt::gpus_per_socket, Opt::ntasks_per_node}) {
      if (o_->has(opt)) return with_tasks_per_gpu(dashed(opt), opt, tasks);
    }
    if (tres_names_gpu())
      return with_tasks_per_gpu("--tres-per-task=gres/gpu", Opt::tres_per_task, tasks);
    return {};
  }

  Result<void> with_tasks_per_gpu(std::string_view name, Opt other, Opt tasks) const {
    return fatal(fmt::format("{} is mutually exclusive with --ntasks-per-gpu and "
                             "SLURM_NTASKS_PER_GPU",
                             name),
                 other, tasks);
  }

  /// --launcher=torch, jax and mpi say which GPUs a task sees. A binding that the job has merely
  /// handed on, as after --gpus-per-task (SLURM_TRES_BIND), gives way to that.
  Result<void> launcher() {
    const Given* preset = o_->find(Opt::launcher);
    if (preset == nullptr || preset->text == "none") return {};
    for (const Opt bind : {Opt::gpu_bind, Opt::tres_bind, Opt::accel_bind}) {
      if (chosen(bind) && inherited(Opt::launcher)) {
        o_->erase(Opt::launcher);
        return {};
      }
      if (chosen(bind)) {
        return error(fmt::format("--launcher={} and {} both say which GPUs a task sees",
                                 preset->text, dashed(bind)),
                     Opt::launcher, bind);
      }
      o_->erase(bind);
    }
    return {};
  }

  Result<void> sharing() {
    if (o_->has(Opt::exclusive) && o_->has(Opt::oversubscribe)) {
      return fatal("--exclusive and --oversubscribe options are mutually exclusive", Opt::exclusive,
                   Opt::oversubscribe);
    }
    if (o_->has(Opt::exclusive) && o_->has(Opt::overlap)) {
      return either(Opt::exclusive, Opt::overlap,
                    "--exclusive and --overlap are mutually exclusive");
    }
    if (o_->has(Opt::exact) && o_->has(Opt::whole)) {
      return either(Opt::exact, Opt::whole, "--exact and --whole are mutually exclusive");
    }
    return {};
  }

  /// An inherited one gives way; two of the same kind are an error.
  Result<void> either(Opt a, Opt b, std::string text) {
    if (inherited(a) == inherited(b)) return error(std::move(text), a, b);
    o_->erase(inherited(a) ? a : b);
    return {};
  }

  Result<void> layout() {
    for (const Opt opt : {Opt::nodelist, Opt::nodefile, Opt::exclude}) {
      if (o_->has(Opt::relative) && o_->has(opt)) {
        return error("-r,--relative not allowed with -w,--nodelist or -x,--exclude.", Opt::relative,
                     opt);
      }
    }
    if (o_->has(Opt::relative) && !step_) {
      return fail_fatal(Code::conflict, "--relative option invalid for job allocation request",
                        "--relative counts the nodes of a job: use it with srun inside one");
    }
    const Given* dist = o_->find(Opt::distribution);
    if (dist != nullptr && chosen(Opt::nodes) &&
        text::to_lower(dist->text).starts_with("arbitrary")) {
      return error("--nodes is incompatible with --distribution=arbitrary", Opt::nodes,
                   Opt::distribution);
    }
    return {};
  }

  Result<void> files() {
    for (const Opt opt : {Opt::output, Opt::error, Opt::input}) {
      if (o_->has(Opt::pty) && chosen(opt)) {
        return error(fmt::format("{} is incompatible with --pty", dashed(opt)), opt, Opt::pty);
      }
      if (o_->has(Opt::pty)) o_->erase(opt);
    }
    return {};
  }

  Result<void> small_pairs() {
    if (o_->has(Opt::core_spec) && o_->has(Opt::thread_spec)) {
      return fatal("--core-spec and --thread-spec are mutually exclusive", Opt::core_spec,
                   Opt::thread_spec);
    }
    if (chosen(Opt::quiet) && chosen(Opt::verbose)) {
      return error("don't specify both --verbose (-v) and --quiet (-Q)", Opt::verbose, Opt::quiet);
    }
    return {};
  }

  Command command_;
  bool step_;
  OptionSet* o_;
};

/// Seconds from now of "now" and "now+n[unit]"; nullopt for other forms.
std::optional<std::uint64_t> seconds_from_now(std::string_view written) {
  const std::string lower = text::to_lower(text::trim(written));
  std::string_view rest = lower;
  if (!rest.starts_with("now")) return std::nullopt;
  rest = text::trim(rest.substr(3));
  if (rest.empty()) return 0;
  if (rest[0] != '+') return std::nullopt;
  rest = text::trim(rest.substr(1));
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const auto number = text::parse_number(rest.substr(0, digits), UINT32_MAX);
  if (!number) return std::nullopt;
  const std::string_view unit = text::trim(rest.substr(digits));
  constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}, {"week", 604800}};
  if (unit.empty()) return *number;
  for (const auto& [name, seconds] : kUnits) {
    if (name.starts_with(unit) || (unit.starts_with(name) && unit.size() == name.size() + 1)) {
      return *number * seconds;
    }
  }
  return std::nullopt;
}

bool is_date(std::string_view written) {
  return written.size() >= 10 && written[4] == '-' && written[7] == '-';
}

/// True when both are of a form that can be compared without a clock, and end comes first.
bool ends_before(std::string_view begin, std::string_view end) {
  const auto a = seconds_from_now(begin);
  const auto b = seconds_from_now(end);
  if (a && b) return *b < *a;
  return is_date(begin) && is_date(end) && end < begin;
}

Result<void> check_times(const Request& request) {
  const Given* deadline = request.given.find(Opt::deadline);
  if (deadline == nullptr) return {};
  const Given* begin = request.given.find(Opt::begin);
  if (begin != nullptr && ends_before(begin->text, deadline->text)) {
    return fail(Code::conflict, "Incompatible begin and deadline time specification",
                both(request.given, Opt::begin, Opt::deadline));
  }
  const std::optional<std::uint64_t> left = seconds_from_now(deadline->text);
  std::optional<std::uint32_t> least = request.time_min;
  if (!least && request.time_limit) least = *request.time_limit;
  if (left && least && *left < std::uint64_t{*least} * 60) {
    return submission_failed(request.command, Code::invalid_time_limit,
                             std::string(slurm_text(Code::invalid_time_limit)),
                             fmt::format("the job may run {} min, but --deadline={} leaves {} s",
                                         *least, deadline->text, *left));
  }
  return {};
}

Result<void> check_segment(const Request& request) {
  const Given* segment = request.given.find(Opt::segment);
  if (segment == nullptr || !request.nodes || request.nodes->min != request.nodes->max) return {};
  const auto size = text::parse_number(segment->text, UINT16_MAX);
  const std::uint32_t nodes = request.nodes->min;
  if (!size || *size == 0 || nodes <= *size || nodes % *size == 0) return {};
  return fail_fatal(Code::conflict, "Invalid --segment specification",
                    fmt::format("{} nodes are not a whole number of segments of {}", nodes, *size));
}

}  // namespace

Result<void> resolve_conflicts(Command command, bool step, OptionSet& options) {
  return Resolver(command, step, options).run();
}

Result<void> check_request(const Request& request, bool step) {
  if (Result<void> done = check_times(request); !done) return done;
  if (step) return {};
  return check_segment(request);
}

}  // namespace berth::request
