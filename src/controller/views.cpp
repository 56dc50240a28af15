// Brings what readers see up to date.
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "base/version.h"
#include "controller/engine.h"
#include "controller/info_config.h"
#include "controller/info_job.h"
#include "controller/info_node.h"
#include "wire/job_list.h"

namespace berth::controller {
namespace {

Bytes bytes_of(const google::protobuf::MessageLite& message) {
  return std::make_shared<const std::string>(message.SerializeAsString());
}

std::shared_ptr<const JobView> view_of(const InfoSite& site, const job::Job& job, job::Time now,
                                       const job::State& state) {
  const bool accrue_always = state.policy().priority.accrue_always;
  auto view = std::make_shared<JobView>();
  view->id = job.id;
  view->array_id = job.array_id();
  if (job.het) view->het_leader = job.het->leader;
  view->uid = job.uid;
  view->attempt = job.attempt;
  view->over = job::ended(job.base) && !job.flags.completing;
  view->states = job::flag_names(job.flags);
  view->states.emplace_back(job::base_name(job.base));
  view->partition = job.partition;
  view->info_priority = job.priority;
  view->priority = job.priority;
  if (job.pending() && job.priority > 0 && (job.accrue_since != 0 || accrue_always)) {
    view->waits = PriorityView{.what = job.what,
                               .minutes = job.time_limit_minutes,
                               .accrual = {job.submit_time, job.accrue_since, job.accrued},
                               .nice = job.nice,
                               .fixed = job.priority_fixed};
  }
  if (job.array) {
    view->array_task = job.array->task;
    if (!job.array->task) view->rest = std::make_shared<const Bits>(job.array->rest);
  }
  wire::JobInfo info = job_info(site, job, now);
  if (job.running && state.preempt_mode(job) != job::PreemptMode::off) {
    info.set_preemptable_time(job.start_time + state.policy().preempt.exempt);
  }
  if (info.detail_size() > 0) {
    wire::JobInfo detail;
    detail.mutable_detail()->Swap(info.mutable_detail());
    view->detail = bytes_of(detail);
  }
  // Parts of one message, one after the other, are that message: who may not see all of it is sent
  // its beginning.
  const wire::JobInfo secret = wire::take_private(info);
  std::string bytes = wire::take_brief(info).SerializeAsString();
  view->brief_bytes = bytes.size();
  info.AppendToString(&bytes);
  view->public_bytes = bytes.size();
  secret.AppendToString(&bytes);
  bytes.shrink_to_fit();
  view->info = std::make_shared<const std::string>(std::move(bytes));
  if (job.running) {
    for (const auto& [id, step] : job.running->open_steps) {
      wire::StepInfo shown = step_info(site, job, step);
      const wire::StepInfo hidden = wire::take_private(shown);
      std::string text = shown.SerializeAsString();
      const std::size_t size = text.size();
      hidden.AppendToString(&text);
      view->steps.push_back({std::make_shared<const std::string>(std::move(text)), size});
    }
  }
  return view;
}

/// Both are in order of ids.
void renew_priorities(const std::map<job::JobId, job::Job>& jobs, const Picture& picture) {
  auto view = picture.jobs.begin();
  for (const auto& [id, job] : jobs) {
    while (view != picture.jobs.end() && view->first < id) ++view;
    if (view == picture.jobs.end()) return;
    if (view->first == id) view->second->priority = job.priority;
  }
}

}  // namespace

void Engine::publish_jobs() {
  const job::Time now = clock_.seconds();
  const InfoSite site{state_->cluster(), setup_.keys().accounting_tres, users_,
                      setup_.policy.max_switch_wait};
  const bool all = std::exchange(all_jobs_changed_, false);
  const std::uint64_t round = state_->priority_round();
  const bool priorities = std::exchange(published_round_, round) != round;
  // All is made before the lock is taken: readers wait for the exchange alone.
  std::map<job::JobId, std::shared_ptr<const JobView>> jobs;
  if (all) {
    for (const auto& [id, job] : state_->jobs())
      jobs.emplace_hint(jobs.end(), id, view_of(site, job, now, *state_));
  } else {
    for (const job::JobId id : changed_jobs_) {
      const job::Job* job = state_->find(id);
      jobs.emplace_hint(jobs.end(), id,
                        job == nullptr ? nullptr : view_of(site, *job, now, *state_));
    }
  }
  parts_.published.change([&](Picture& picture) {
    if (all) {
      picture.jobs.swap(jobs);
    } else {
      for (auto& [id, view] : jobs) {
        if (view) {
          picture.jobs[id].swap(view);
        } else {
          picture.jobs.erase(id);
        }
      }
    }
    if (priorities && !all) renew_priorities(state_->jobs(), picture);
    picture.priorities_at = state_->priorities_at();
    picture.disclosure = setup_.disclosure;
    picture.last_backfill = figures_.pass_last_at;
  });
  changed_jobs_.clear();
  stale_jobs_ = false;
}

void Engine::publish() {
  const cluster::Cluster& cluster = state_->cluster();
  const InfoSite site{cluster, setup_.keys().accounting_tres, users_};
  const bool all = std::exchange(all_changed_, false);
  std::map<std::string, Bytes> nodes;
  std::map<std::string, std::optional<Peer>> agents;
  std::uint32_t up = 0;
  for (cluster::NodeIndex i = 0; i < cluster.nodes.size(); ++i) {
    const std::string& name = cluster.nodes[i].name;
    if (state_->node(i).responding && !state_->node(i).down) ++up;
    if (!all && !changed_nodes_.contains(name)) continue;
    nodes[name] = bytes_of(node_info(site, *state_, i));
    agents[name] = agents_.serving(name);
  }
  std::vector<std::pair<std::string, Bytes>> partitions;
  std::set<std::string, std::less<>> hidden;
  std::string config;
  std::shared_ptr<const HistorySite> history;
  std::shared_ptr<const PrioritySite> priorities;
  if (all) {
    history = std::make_shared<const HistorySite>(
        HistorySite{cluster, setup_.keys().accounting_tres, state_->policy().cluster_name,
                    state_->policy().mpi_types, state_->policy().job_requeue, setup_.disclosure});
    priorities = std::make_shared<const PrioritySite>(
        PrioritySite{history, state_->policy().priority, state_->priority_totals()});
    for (const cluster::Partition& partition : cluster.partitions) {
      const wire::PartitionInfo info = partition_info(site, *state_, partition, setup_);
      if (info.hidden()) hidden.insert(info.name());
      partitions.emplace_back(partition.name, bytes_of(info));
    }
    config = config_reply(setup_, parts_.host, users_, figures_.started).SerializeAsString();
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

  parts_.published.change([&](Picture& picture) {
    if (all) {
      picture.nodes = std::move(nodes);
      picture.partitions = std::move(partitions);
      picture.hidden_partitions = std::move(hidden);
      picture.node_order.clear();
      for (const cluster::Node& node : cluster.nodes) picture.node_order.push_back(node.name);
      picture.cluster_name = state_->policy().cluster_name;
      picture.config = std::move(config);
      picture.history = std::move(history);
      picture.priorities = std::move(priorities);
    } else {
      for (auto& [name, bytes] : nodes) picture.nodes[name] = std::move(bytes);
    }
    if (all) picture.agents.clear();
    for (const auto& [name, agent] : agents) {
      if (agent) {
        picture.agents[name] = *agent;
      } else {
        picture.agents.erase(name);
      }
    }
    picture.pong = std::move(pong);
  });
  changed_nodes_.clear();
  stale_ = false;
}

}  // namespace berth::controller
