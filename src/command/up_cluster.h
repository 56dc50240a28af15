// Talking to the controller of a cluster that `berth up` made.
#pragma once

#include <string>

#include "base/result.h"
#include "command/up_home.h"
#include "net/client.h"
#include "wire/info.pb.h"

namespace berth::command {

Result<net::Client> reach(const ClusterHome& home);
Result<wire::Pong> ping(const ClusterHome& home);
bool answers(const ClusterHome& home);

/// The controller and the agent, as far as their locks tell: one that is dying still has its own.
bool both_run(const ClusterHome& home);
/// Waits until every node has registered (FUTURE ones need not), at most half a minute and a bit
/// for many nodes, or until a daemon is gone. `missing` gets the host list of those that have not.
bool wait_for_nodes(const ClusterHome& home, std::size_t nodes, std::string& missing);

/// Jobs that hold something or wait: what `berth down` has to end.
struct JobCounts {
  std::size_t running = 0;
  std::size_t pending = 0;
  std::size_t completing = 0;
  [[nodiscard]] std::size_t all() const { return running + pending + completing; }
};
Result<JobCounts> count_jobs(const ClusterHome& home);
Result<void> cancel_all_jobs(const ClusterHome& home);

/// The slurm.conf that was copied and that names this cluster; "" when there is none.
std::string copied_from(const ClusterHome& home);
/// Whether a slurm.conf names another cluster that runs.
bool named_by_another(const ClusterHome& home, const std::string& other_conf);

/// Removes R and the link to it: only when nothing runs.
void remove_run_files(const ClusterHome& home);

}  // namespace berth::command
