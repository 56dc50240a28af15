// Reading input variables.
#include "request/environment.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "request/table.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::request {
namespace {

/// Options whose variables describe one component of a heterogeneous job.
constexpr Opt kPerComponent[] = {Opt::nodes,
                                 Opt::ntasks,
                                 Opt::ntasks_per_node,
                                 Opt::ntasks_per_core,
                                 Opt::ntasks_per_socket,
                                 Opt::ntasks_per_gpu,
                                 Opt::ntasks_per_tres,
                                 Opt::cpus_per_task,
                                 Opt::mem,
                                 Opt::mem_per_cpu,
                                 Opt::mem_per_gpu,
                                 Opt::gpus,
                                 Opt::gpus_per_node,
                                 Opt::gpus_per_socket,
                                 Opt::gpus_per_task,
                                 Opt::tres_per_task,
                                 Opt::tres_bind,
                                 Opt::gpu_bind,
                                 Opt::cpus_per_gpu,
                                 Opt::threads_per_core,
                                 Opt::hint,
                                 Opt::overcommit,
                                 Opt::distribution};

struct Found {
  std::string variable;
  const std::string* value;
};

std::optional<Found> look_up(const Environment& environment, const std::string& name) {
  const auto at = environment.find(name);
  if (at == environment.end()) return std::nullopt;
  return Found{name, &at->second};
}

/// The variables of an option, by Opt. Every submission asks for all of them.
const std::vector<std::string>& known_variables(const OptionRow& row, Command command) {
  using Table = std::vector<std::vector<std::string>>;
  static const std::array<Table, 3> kTables = [] {
    std::array<Table, 3> tables;
    for (const Command each : {Command::sbatch, Command::srun, Command::salloc}) {
      Table& table = tables[static_cast<std::size_t>(each)];
      for (const OptionRow& option : option_rows()) table.push_back(variables_of(option, each));
    }
    return tables;
  }();
  return kTables[static_cast<std::size_t>(command)][static_cast<std::size_t>(row.opt)];
}

class Reader {
 public:
  Reader(Command command, const Environment& environment, bool step,
         std::optional<std::uint32_t> group)
      : command_(command), environment_(&environment), step_(step), group_(group) {}

  std::vector<VariableOption> read() const {
    std::vector<VariableOption> out;
    for (const OptionRow& row : option_rows()) {
      if ((row.commands & bit_of(command_)) == 0 || !wanted(row.opt)) continue;
      const std::optional<Found> found = find(row);
      if (found) add(row, *found, out);
    }
    return out;
  }

 private:
  [[nodiscard]] bool wanted(Opt opt) const { return opt != Opt::job_name || !step_; }

  [[nodiscard]] std::optional<Found> find(const OptionRow& row) const {
    for (const std::string& name : known_variables(row, command_)) {
      if (name == "SLURM_STEP_GRES" && !step_) continue;
      if (group_) {
        if (auto found = look_up(*environment_, fmt::format("{}_HET_GROUP_{}", name, *group_))) {
          return found;
        }
        const bool own = std::ranges::find(kPerComponent, row.opt) != std::end(kPerComponent);
        if (own && *group_ > 0) continue;  // the plain one is that of component 0
      }
      if (auto found = look_up(*environment_, name)) return found;
    }
    return std::nullopt;
  }

  /// A variable of a flag may say no; one of an optional argument may say only yes.
  void add(const OptionRow& row, const Found& found, std::vector<VariableOption>& out) const {
    std::string value = *found.value;
    if (row.opt == Opt::switches && value.find('@') == std::string::npos) {
      // The time to wait has a variable of its own: SBATCH_REQ_SWITCH, SBATCH_WAIT4SWITCH.
      const std::string prefix = found.variable.substr(0, found.variable.find('_') + 1);
      if (const auto wait = look_up(*environment_, prefix + "WAIT4SWITCH")) {
        value += "@" + *wait->value;
      }
    }
    if (row.opt == Opt::verbose) {
      const auto times = text::parse_number(value, 16);
      if (!times || *times == 0) return;
    } else if (row.argument == Argument::none) {
      if (!means_yes(value)) return;
      value.clear();
    } else if (row.argument == Argument::optional) {
      const bool number = text::parse_number(value).has_value();
      const bool takes_number = row.opt == Opt::immediate || row.opt == Opt::kill_on_bad_exit ||
                                row.opt == Opt::oom_kill_step || row.opt == Opt::resv_ports ||
                                row.opt == Opt::kill_command;
      if (means_yes(value) && !(takes_number && number)) value.clear();
    }
    out.push_back({Occurrence{row.opt, std::move(value), 0}, found.variable});
  }

  Command command_;
  const Environment* environment_;
  bool step_;
  std::optional<std::uint32_t> group_;
};

}  // namespace

bool means_yes(std::string_view value) {
  if (value.empty() || text::equal_ignoring_case(value, "yes")) return true;
  const auto number = text::parse_number(value);
  return number && *number != 0;
}

bool is_input_variable(std::string_view name) {
  return name.starts_with('S') && (name.starts_with("SLURM_") || name.starts_with("SBATCH_") ||
                                   name.starts_with("SALLOC_") || name.starts_with("SRUN_"));
}

std::vector<VariableOption> environment_options(Command command, const Environment& environment,
                                                bool step, std::optional<std::uint32_t> group) {
  return Reader(command, environment, step, group).read();
}

}  // namespace berth::request
