// What a step and its program need: job and component ids, MPI, names, files, environment.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "request/signals.h"
#include "request/values.h"
#include "text/cpumask.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::request {
namespace {

template <auto Field>
Applied words(const Value& value, Request& request) {
  request.*Field = std::string(value.text);
  return {};
}

/// 12, and 12+1 or 12_3 for parts of a job, which belong to the same allocation.
Applied jobid(const Value& value, Request& request) {
  const std::string_view id = value.text.substr(0, value.text.find_first_of("+_"));
  const auto number = text::parse_number(id, INT32_MAX);
  if (!number || *number == 0) return invalid_number(value, "the number of a job");
  request.jobid = static_cast<std::uint32_t>(*number);
  return {};
}

Applied het_group(const Value& value, Request& request) {
  constexpr std::size_t kMost = 128;  // components that Slurm allows in one job
  const std::optional<Bits> groups = text::parse_id_set(value.text);
  if (!groups || groups->empty() || groups->last() >= kMost) {
    return invalid_value(value, "numbers of components from 0, e.g. 0,1 or 0-2");
  }
  request.het_groups.clear();
  groups->each([&](std::size_t i) { request.het_groups.push_back(static_cast<std::uint32_t>(i)); });
  return {};
}

Applied immediate(const Value& value, Request& request) {
  if (!value.text.empty()) {
    const Result<std::uint32_t> seconds = number_value(value, 0);
    if (!seconds) return pass(seconds.error());
    request.immediate = *seconds > 0;
    return {};
  }
  request.immediate = true;
  return {};
}

/// "pmix_v4" is a version of pmix.
bool known_mpi(std::string_view name, const std::vector<std::string>& known) {
  const std::size_t version = name.find("_v");
  const std::string_view base =
      version != std::string_view::npos && text::parse_number(name.substr(version + 2), UINT16_MAX)
          ? name.substr(0, version)
          : name;
  return std::ranges::find(known, base) != known.end();
}

Applied mpi(const Value& value, Request&) {
  const std::vector<std::string>& known = value.around->mpi_types;
  if (value.text == "list") {
    std::vector<std::string> lines = {"MPI plugin types are..."};
    for (const std::string& name : known) lines.push_back("\t" + name);
    return answer(std::move(lines));
  }
  if (known_mpi(value.text, known)) return {};
  Error error;
  error.code = Code::bad_value;
  error.messages = {
      {Severity::error,
       fmt::format("Invalid MPI type '{}', --mpi=list for acceptable types", value.text)},
      {Severity::error, fmt::format("MPI: Cannot create context for mpi/{}", value.text)},
      {Severity::error, "MPI: Unable to load any plugin"}};
  error.hint = fmt::format("--mpi={}: one of {}", value.text, fmt::join(known, ", "));
  return std::unexpected(std::move(error));
}

Applied launcher(const Value& value, Request& request) {
  constexpr std::array kWords = {std::pair{"none", Launcher::none},
                                 std::pair{"torch", Launcher::torch},
                                 std::pair{"jax", Launcher::jax}, std::pair{"mpi", Launcher::mpi}};
  for (const auto& [word, meant] : kWords) {
    if (value.text != word) continue;
    request.launcher = meant;
    return {};
  }
  return invalid_argument(value, "none, torch, jax or mpi");
}

Applied signals(const Value& value, Request&) {
  for (const std::string_view name : text::split(value.text, ',')) {
    if (!parse_signal(name)) return invalid_value(value, "names or numbers of signals");
  }
  return {};
}

Applied kill_command(const Value& value, Request&) {
  if (value.text.empty() || parse_signal(value.text)) return {};
  return invalid_value(value, "a signal, e.g. TERM");
}

Applied compress(const Value& value, Request&) {
  const std::string word = text::to_lower(value.text);
  if (word.empty() || word == "lz4" || word == "none") return {};
  return invalid_value(value, "lz4 or none");
}

Applied send_libs(const Value& value, Request&) {
  const std::string word = text::to_lower(value.text);
  if (word.empty() || word == "yes" || word == "no") return {};
  return invalid_value(value, "yes or no");
}

Applied treewidth(const Value& value, Request&) {
  if (text::equal_ignoring_case(value.text, "off") || text::parse_number(value.text, UINT16_MAX)) {
    return {};
  }
  return invalid_value(value, "a number, or off");
}

Applied slurmd_debug(const Value& value, Request&) {
  constexpr std::string_view kLevels[] = {"quiet",   "fatal", "error",  "info",
                                          "verbose", "debug", "debug2", "debug3"};
  if (text::parse_number(value.text, 9) ||
      std::ranges::find(kLevels, text::to_lower(value.text)) != std::end(kLevels)) {
    return {};
  }
  return invalid_value(value, fmt::format("one of {}", fmt::join(kLevels, ", ")));
}

}  // namespace

Applied count_from_zero(const Value& value, Request&) {
  if (value.text.empty() && row_of(value.opt).argument == Argument::optional) return {};
  const Result<std::uint32_t> number = number_value(value, 0);
  return number ? Applied{} : pass(number.error());
}

Apply step_value(Opt opt) {
  switch (opt) {
    case Opt::exact:
      return flag<&Request::exact>;
    case Opt::overlap:
      return flag<&Request::overlap>;
    case Opt::external_launcher:
      return flag<&Request::external_launcher>;
    case Opt::multi_prog:
      return flag<&Request::multi_prog>;
    case Opt::pty:
      return flag<&Request::pty>;
    case Opt::jobid:
      return jobid;
    case Opt::het_group:
      return het_group;
    case Opt::immediate:
      return immediate;
    case Opt::mpi:
      return mpi;
    case Opt::launcher:
      return launcher;
    case Opt::wait_tasks:
    case Opt::resv_ports:
    case Opt::msg_timeout:
    case Opt::threads:
      return count_from_zero;
    case Opt::ignore_signals:
      return signals;
    case Opt::kill_command:
      return kill_command;
    case Opt::compress:
      return compress;
    case Opt::send_libs:
      return send_libs;
    case Opt::treewidth:
      return treewidth;
    case Opt::slurmd_debug:
      return slurmd_debug;
    case Opt::job_name:
      return words<&Request::job_name>;
    case Opt::output:
      return words<&Request::output>;
    case Opt::error:
      return words<&Request::error>;
    case Opt::input:
      return words<&Request::input>;
    case Opt::chdir:
      return words<&Request::chdir>;
    case Opt::export_env:
      return words<&Request::export_env>;
    case Opt::wrap:
      return words<&Request::wrap>;
    default:
      return nullptr;
  }
}

}  // namespace berth::request
