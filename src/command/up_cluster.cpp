#include "command/up_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "command/files.h"
#include "command/up_conf.h"
#include "command/up_processes.h"
#include "net/paths.h"
#include "net/pid_file.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::command {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

template <class Reply, class Ask>
Result<Reply> ask(const ClusterHome& home, const Ask& message) {
  auto client = reach(home);
  if (!client) return pass(std::move(client.error()));
  return client->ask<Reply>(message, kPatience);
}

bool has_flag(const auto& flags, std::string_view flag) {
  return std::ranges::any_of(flags, [&](const std::string& f) { return f == flag; });
}

}  // namespace

Result<net::Client> reach(const ClusterHome& home) {
  return net::Client::connect(net::Address::unix_socket(net::controller_socket(home.run)),
                              kPatience);
}

Result<wire::Pong> ping(const ClusterHome& home) {
  return ask<wire::Pong>(home, wire::Ping());
}

bool answers(const ClusterHome& home) {
  return ping(home).has_value();
}

bool both_run(const ClusterHome& home) {
  return home.controller() && home.agent();
}

bool wait_for_nodes(const ClusterHome& home, std::size_t nodes, std::string& missing) {
  const auto longest = std::chrono::seconds(30) + std::chrono::milliseconds(50) * nodes;
  const bool waited = wait_until(duration_cast<std::chrono::milliseconds>(longest), [&] {
    if (!both_run(home)) return true;  // there is nothing to wait for
    const auto reply = ask<wire::NodesReply>(home, wire::ListNodes());
    std::vector<std::string> absent;
    if (!reply) {
      missing = fmt::format("(the controller does not say: {})", reply.error().what());
      return false;
    }
    for (const wire::NodeInfo& node : reply->nodes()) {
      if (node.state() == "FUTURE") continue;
      if (node.state() == "UNKNOWN" || has_flag(node.flags(), "NOT_RESPONDING")) {
        absent.push_back(node.name());
      }
    }
    missing = text::compress_hostlist(absent);
    return absent.empty();
  });
  return waited && both_run(home);
}

Result<JobCounts> count_jobs(const ClusterHome& home) {
  const auto reply = ask<wire::JobsReply>(home, wire::ListJobs());
  if (!reply) return pass(reply.error());
  JobCounts counts;
  for (const wire::JobInfo& job : reply->jobs()) {
    if (has_flag(job.flags(), "COMPLETING")) {
      ++counts.completing;
    } else if (job.state() == "PENDING") {
      ++counts.pending;
    } else if (job.state() == "RUNNING" || job.state() == "SUSPENDED") {
      ++counts.running;
    }
  }
  return counts;
}

Result<void> cancel_all_jobs(const ClusterHome& home) {
  wire::CancelJobs cancel;
  for (const char* state : {"PENDING", "RUNNING", "SUSPENDED"}) cancel.add_states(state);
  cancel.set_filters_given(true);
  const auto reply = ask<wire::Results>(home, cancel);
  if (!reply) return pass(reply.error());
  return {};
}

std::string copied_from(const ClusterHome& home) {
  const auto text = read_file(home.copied_from_file(), 65536);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

bool named_by_another(const ClusterHome& home, const std::string& other_conf) {
  std::error_code failed;
  const std::string there =
      std::filesystem::canonical(net::run_directory(other_conf), failed).string();
  return !failed && there != home.run && net::PidFile::holder(net::controller_pid_file(there));
}

void remove_run_files(const ClusterHome& home) {
  std::error_code failed;
  if (const std::string from = copied_from(home); !from.empty() && !named_by_another(home, from)) {
    (void)net::unlink_run_directory(from);
  }
  std::filesystem::remove_all(home.run, failed);
  // The directory of all clusters of this user goes with the last one.
  std::filesystem::remove(std::filesystem::path(home.run).parent_path(), failed);
}

}  // namespace berth::command
