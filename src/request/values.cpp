// What all option values have in common: dispatch, refused options, the common error texts.
#include "request/values.h"

#include <fmt/format.h>

#include "request/sizes.h"
#include "text/number.h"

namespace berth::request {
namespace {

Error value_error(const Value& value, std::string text, std::string allowed, int exit_code) {
  Error error;
  error.code = Code::bad_value;
  error.messages = {{Severity::error, std::move(text)}};
  error.hint = fmt::format("{}={}: {}", dashed(value.opt), value.text, allowed);
  error.exit_code = exit_code;
  return error;
}

/// Slurm's words for a cluster that is not there; ours for everything else.
Applied refuse(const Value& value) {
  const OptionRow& row = row_of(value.opt);
  if (value.opt == Opt::clusters) {
    if (!value.around->cluster_name.empty() && value.text == value.around->cluster_name) return {};
    Error error;
    error.code = Code::unsupported;
    error.messages = {
        {Severity::error,
         fmt::format("'{}' can't be reached now, or it is an invalid entry for --cluster.  Use "
                     "'sacctmgr list clusters' to see available clusters.",
                     value.text)},
        {Severity::error, "Problem talking to database"}};
    error.hint = std::string(row.note);
    return std::unexpected(std::move(error));
  }
  return fail(Code::unsupported, fmt::format("--{} is not supported by berth", row.name),
              std::string(row.note));
}

}  // namespace

std::unexpected<Error> invalid_value(const Value& value, std::string allowed) {
  return std::unexpected(value_error(
      value, fmt::format("Invalid {} specification", dashed(value.opt)), std::move(allowed), 255));
}

std::unexpected<Error> invalid_number(const Value& value, std::string allowed) {
  return std::unexpected(value_error(
      value, fmt::format("Invalid numeric value \"{}\" for {}.", value.text, dashed(value.opt)),
      std::move(allowed), 1));
}

std::unexpected<Error> invalid_argument(const Value& value, std::string allowed) {
  return std::unexpected(
      value_error(value, fmt::format("Invalid {} argument: {}", dashed(value.opt), value.text),
                  std::move(allowed), 255));
}

std::unexpected<Error> answer(std::vector<std::string> lines) {
  Error error;
  error.code = Code::ok;
  for (std::string& line : lines) error.messages.push_back({Severity::bare, std::move(line)});
  error.exit_code = 0;
  return std::unexpected(std::move(error));
}

std::unexpected<Error> submission_failed(Command command, Code code, std::string text,
                                         std::string hint) {
  std::string_view before;
  switch (command) {
    case Command::sbatch:
      before = "Batch job submission failed";
      break;
    case Command::srun:
      before = "Unable to allocate resources";
      break;
    case Command::salloc:
      before = "Job submit/allocate failed";
      break;
  }
  return fail(code, fmt::format("{}: {}", before, text), std::move(hint));
}

Result<std::uint32_t> number_value(const Value& value, std::uint32_t least) {
  const std::optional<std::uint64_t> number = text::parse_number(value.text, INT32_MAX);
  if (!number || *number < least) {
    return invalid_number(
        value, fmt::format("give a whole number from {} ({})", least, row_of(value.opt).note));
  }
  return static_cast<std::uint32_t>(*number);
}

Applied apply_value(const Value& value, Request& request) {
  if (const std::size_t most = most_bytes(value.opt);
      value.text.size() > most && !value.around->stored) {
    return too_long(dashed(value.opt), value.text.size(), most);
  }
  const bool refused = row_of(value.opt).status == Status::refused;
  for (const auto group : {size_value, resource_value, place_value, queue_value, step_value}) {
    const Apply apply = group(value.opt);
    if (apply == nullptr) continue;
    Applied applied = apply(value, request);
    if (!applied || !refused) return applied;
  }
  if (refused) return refuse(value);
  return {};  // flags and free text that only `given` keeps
}

}  // namespace berth::request
