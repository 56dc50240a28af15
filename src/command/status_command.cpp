// berth status: whether the cluster of `berth up` runs, and what it is doing.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "command/messages.h"
#include "command/up_cluster.h"
#include "command/up_conf.h"
#include "command/up_home.h"
#include "command/up_options.h"
#include "command/version.h"
#include "request/request.h"
#include "site/site.h"

namespace berth::command {
namespace {

constexpr std::string_view kStatusUsage = R"(usage: berth status [--state DIR]

Shows the cluster that berth up started. The exit code is 0 when it runs, else 3.

  --state DIR      where the cluster lives; default: the user's state directory
  -h, --help       this text
)";

constexpr int kNotRunning = 3;  // as of service scripts

int status(const std::string& state) {
  const ClusterHome home = find_home(state);
  const auto controller = home.controller();
  const auto agent = home.agent();
  if (!controller && !agent) {
    fmt::print("no cluster runs in {}\n", home.state);
    return kNotRunning;
  }
  const auto pong = ping(home);
  if (!pong) {
    fmt::print("cluster in {}: {}\n", home.state,
               controller ? "the controller does not answer" : "the controller does not run");
    print_hint("its log is " + home.controller_log());
    return kNotRunning;
  }
  fmt::print("cluster {} is up since {:%Y-%m-%dT%H:%M:%S}\n", pong->cluster_name(),
             fmt::localtime(static_cast<std::time_t>(pong->started())));
  fmt::print("  configuration  {}\n", home.conf());
  fmt::print("  controller     process {}, log {}\n", *controller, home.controller_log());
  if (agent) {
    fmt::print("  node agent     process {}, log {}\n", *agent, home.node_log());
  } else {
    fmt::print("  node agent     does not run; `berth up` starts it again\n");
  }
  fmt::print("  nodes          {} of {} are up\n", pong->nodes_up(), pong->nodes());
  if (const auto site = site::read_site(conf::DirectorySource(home.state))) {
    for (const std::string& line : describe_nodes(site->cluster))
      fmt::print("                 {}\n", line);
  }
  if (const auto jobs = count_jobs(home)) {
    fmt::print("  jobs           {} running, {} pending, {} completing\n", jobs->running,
               jobs->pending, jobs->completing);
  }
  for (const std::string& limit : pong->limits()) fmt::print("  not enforced   {}\n", limit);
  return agent ? 0 : kNotRunning;
}

}  // namespace

int run_status(std::span<const std::string> words, const request::Environment& /*environment*/) {
  return run_on_state("berth status", kStatusUsage, words, status);
}

}  // namespace berth::command
