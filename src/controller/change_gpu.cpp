// scontrol update gpu=NODE:INDEX (berth's own): GPUs are taken out of service by hand.
#include <fmt/format.h>

#include <array>
#include <ctime>

#include "controller/change_update.h"
#include "job/ranges.h"
#include "text/words.h"

namespace berth::controller {
namespace {

std::string local_time(job::Time now) {
  const std::time_t seconds = now;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return text.data();
}

Result<void> add_key(job::GpuChange& change, bool& state_given, const wire::Variable& key) {
  if (is_key(key.name(), "State", 1)) {
    change.drain = is_key(key.value(), "DRAIN", 2);
    state_given = change.drain || is_key(key.value(), "RESUME", 1);
    if (state_given) return {};
    return fail(Code::bad_value, fmt::format("Invalid GPU state specified: {}", key.value()),
                "DRAIN and RESUME are known");
  }
  if (is_key(key.name(), "Reason", 1)) {
    change.reason = key.value();
    return {};
  }
  return fail(
      Code::bad_value,
      fmt::format("Update of this parameter is not supported: {}={}", key.name(), key.value()),
      "State and Reason of a GPU can be changed");
}

}  // namespace

Result<std::vector<Message>> change_gpus(job::State& state, const Caller& caller,
                                         const wire::Change& ask, const ChangeContext& context,
                                         job::Time now) {
  if (!caller.privileged) return pass(job::job_error(job::JobFault::not_yours));
  job::GpuChange change;
  change.caller = caller;
  change.by = fmt::format("{}@{}", context.users.name_of(caller.uid), local_time(now));
  bool state_given = false;
  for (const wire::Variable& key : ask.keys()) {
    if (is_key(key.name(), "gpu", 3)) continue;
    if (auto added = add_key(change, state_given, key); !added) return pass(added.error());
  }
  if (!state_given) {
    return fail(Code::bad_value, "No changes specified", "give State=DRAIN or State=RESUME");
  }
  if (change.drain && change.reason.empty()) {
    return fail(Code::bad_value, "You must specify a reason when DRAINING a GPU. Request denied",
                "add Reason=\"…\"");
  }
  const std::string what = selected(ask, "gpu", 3);
  const std::size_t colon = what.rfind(':');
  const auto gpus = colon == std::string::npos
                        ? std::nullopt
                        : job::parse_ranges(std::string_view(what).substr(colon + 1));
  if (!gpus || gpus->empty() || colon == 0) {
    return fail(Code::bad_value, fmt::format("Invalid GPU specified: {}", what),
                "write NODE:INDEX, like gpu=node1:2, node1:0-3 or node[1-4]:0,2");
  }
  change.gpus = *gpus;
  const auto names = nodes_meant(state, what.substr(0, colon));
  if (!names) return pass(names.error());
  return state.change_gpus(*names, change);
}

}  // namespace berth::controller
