// Brings what readers see up to date.
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "base/version.h"
#include "controller/engine.h"
#include "controller/interim.h"

namespace berth::controller {
namespace {

Bytes bytes_of(const google::protobuf::MessageLite& message) {
  return std::make_shared<const std::string>(message.SerializeAsString());
}

std::shared_ptr<const JobView> view_of(const job::State& state, const job::Job& job, Users& users,
                                       job::Time now) {
  auto view = std::make_shared<JobView>();
  view->id = job.id;
  view->array_id = job.array_id();
  if (job.het) view->het_leader = job.het->leader;
  view->uid = job.uid;
  view->over = job::ended(job.base) && !job.flags.completing;
  view->states = job::flag_names(job.flags);
  view->states.emplace_back(job::base_name(job.base));
  view->partition = job.partition;
  if (job.array) {
    view->array_task = job.array->task;
    if (!job.array->task) view->rest = std::make_shared<const Bits>(job.array->rest);
  }
  wire::JobInfo info = job_info(state, job, users, now);
  if (info.detail_size() > 0) {
    wire::JobInfo detail;
    detail.mutable_detail()->Swap(info.mutable_detail());
    view->detail = bytes_of(detail);
  }
  view->info = bytes_of(info);
  if (job.running) {
    for (const auto& [id, step] : job.running->open_steps) {
      view->steps.push_back(bytes_of(step_info(state, job, step, users)));
    }
  }
  return view;
}

}  // namespace

void Engine::publish() {
  if (changed_jobs_.empty() && changed_nodes_.empty() && !all_changed_) {
    stale_ = false;
    return;
  }
  const job::Time now = std::time(nullptr);
  const bool all = std::exchange(all_changed_, false);
  const cluster::Cluster& cluster = state_->cluster();
  // All is made before the lock is taken: readers wait for the exchange alone.
  std::map<job::JobId, std::shared_ptr<const JobView>> jobs;
  if (all) {
    for (const auto& [id, job] : state_->jobs()) jobs[id] = view_of(*state_, job, users_, now);
  } else {
    for (const job::JobId id : changed_jobs_) {
      const job::Job* job = state_->find(id);
      jobs[id] = job == nullptr ? nullptr : view_of(*state_, *job, users_, now);
    }
  }
  std::map<std::string, Bytes> nodes;
  std::uint32_t up = 0;
  for (cluster::NodeIndex i = 0; i < cluster.nodes.size(); ++i) {
    const std::string& name = cluster.nodes[i].name;
    if (state_->node(i).responding && !state_->node(i).down) ++up;
    if (all || changed_nodes_.contains(name))
      nodes[name] = bytes_of(node_info(*state_, i, users_, now));
  }
  std::vector<std::pair<std::string, Bytes>> partitions;
  if (all) {
    for (const cluster::Partition& partition : cluster.partitions) {
      partitions.emplace_back(partition.name, bytes_of(partition_info(*state_, partition, setup_)));
    }
  }
  wire::Pong pong;
  pong.set_host(parts_.host);
  pong.set_epoch(tickets_.epoch());
  pong.set_started(figures_.started);
  pong.set_cluster_name(state_->policy().cluster_name);
  pong.set_nodes(static_cast<std::uint32_t>(cluster.nodes.size()));
  pong.set_nodes_up(up);
  pong.set_version(std::string(kBerthVersion));
  pong.set_pid(static_cast<std::uint32_t>(::getpid()));
  for (const std::string& limit : agents_.limits()) pong.add_limits(limit);
  std::string config;
  if (all) config = config_reply(setup_, parts_.host).SerializeAsString();

  parts_.published.change([&](Picture& picture) {
    if (all) {
      picture.jobs = std::move(jobs);
      picture.nodes = std::move(nodes);
      picture.partitions = std::move(partitions);
      picture.node_order.clear();
      for (const cluster::Node& node : cluster.nodes) picture.node_order.push_back(node.name);
      picture.cluster_name = state_->policy().cluster_name;
      picture.private_jobs = setup_.private_jobs;
      picture.config = std::move(config);
    } else {
      for (auto& [id, view] : jobs) {
        if (view) {
          picture.jobs[id] = std::move(view);
        } else {
          picture.jobs.erase(id);
        }
      }
      for (auto& [name, bytes] : nodes) picture.nodes[name] = std::move(bytes);
    }
    picture.last_backfill = figures_.pass_last_at;
    picture.pong = std::move(pong);
  });
  changed_jobs_.clear();
  changed_nodes_.clear();
  stale_ = false;
}

}  // namespace berth::controller
