// What launches.h promises.
#include "node/launches.h"

#include <fmt/format.h>

namespace berth::node {

void UsedTickets::forget(const NodeJob& job) {
  const auto first = steps_.lower_bound({job.node, {job.job, job.attempt, 0}});
  auto last = first;
  while (last != steps_.end() && last->node == job.node && last->key.job == job.job &&
         last->key.attempt == job.attempt) {
    ++last;
  }
  steps_.erase(first, last);
}

Error launch_error(const wire::StepSpec& spec, const std::string& node, const std::string& why) {
  return fail(Code::no_credential,
              fmt::format("Task launch for StepId={}.{} failed on node {}: {}", spec.job_id(),
                          step::step_name(spec.step_id()), node, why))
      .error();
}

LaunchVerdict decide_launch(const wire::Ticket& ticket, const std::string& key, std::int64_t now,
                            const Bearer& bearer, bool last_chance, const LaunchBook& steps,
                            const Jobs& jobs) {
  if (key.empty() && !last_chance) return LaunchWaits{};  // not registered yet
  const auto spec = check_launch(ticket, key, now, bearer);
  if (!spec) {
    const auto claimed = wire::decode<wire::StepSpec>(ticket.spec()).value_or(wire::StepSpec());
    std::string fault(spec.error().what());
    return LaunchRefused{launch_error(claimed, ticket.node(), fault), std::move(fault)};
  }
  const NodeStep at{spec->node(), {spec->job_id(), spec->attempt(), spec->step_id()}};
  if (const Error* why = steps.unfit_for(at)) return LaunchRefused{*why, {}};
  const auto refused = [&](const std::string& why) {
    return LaunchRefused{launch_error(*spec, at.node, why), {}};
  };
  if (steps.used(at)) return refused("Job credential has been used before");
  switch (jobs.readiness({at.node, at.key.job, at.key.attempt})) {
    case Jobs::Readiness::unknown:
    case Jobs::Readiness::beginning:
      if (!last_chance) return LaunchWaits{};
      return refused("Invalid job id specified");
    case Jobs::Readiness::over:
      return refused("Job/step already completing or completed");
    case Jobs::Readiness::ready:
      break;
  }
  return LaunchStarts{at};
}

}  // namespace berth::node
