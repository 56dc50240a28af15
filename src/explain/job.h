// The job behind a script, placed: one JobFacts for each component. Internal to the module.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "explain/explain.h"
#include "place/environment.h"
#include "place/step.h"

namespace berth::explain {

struct Job {
  std::vector<place::JobPlan> plans;   // one for each component
  std::vector<place::JobFacts> facts;  // likewise; empty when it is refused or cannot be shown
  bool assumes_idle = false;
};

/// Places every component on what the earlier ones left. When a component fits only an idle
/// cluster, the facts are those of an idle one and `assumes_idle` is set.
Job place(const Input& input, const std::vector<request::Request>& components);

/// The elements of an array placed in turn, as they start together on what is free now; unset where
/// an element has to wait (for room, or for the %most of the array). At most kMaxElements.
std::vector<std::optional<place::JobFacts>> place_array(const Input& input,
                                                        const request::Request& request);

/// The 4 of --array=1-8%4.
std::optional<std::uint64_t> array_most(const request::Request& request);

/// A refusal with its lines as `command` prints them.
Refusal refusal(const Error& error, request::Command command, std::string nearest_miss = {});
std::vector<std::string> rendered(const std::vector<Message>& messages, request::Command command);

std::vector<JobNode> job_nodes(const cluster::Cluster& cluster, const place::JobFacts& facts,
                               std::size_t component);

}  // namespace berth::explain
