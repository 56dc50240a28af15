// What changes jobs that exist, the configuration, and the controller itself.
#include <fmt/format.h>

#include "controller/change_cancel.h"
#include "controller/change_conf.h"
#include "controller/change_jobs.h"
#include "controller/change_update.h"
#include "controller/created_nodes.h"
#include "controller/engine.h"
#include "controller/info_diagnose.h"

namespace berth::controller {
namespace {

/// Advice is about what is configured: a node that is drained today says nothing about a script.
std::shared_ptr<const cluster::Cluster> with_all_nodes(const cluster::Cluster& now,
                                                       const cluster::Cluster& configured) {
  auto copy = std::make_shared<cluster::Cluster>(now);
  for (cluster::Node& node : copy->nodes) {
    const auto known = configured.find_node(node.name);
    node.usable = !known || configured.nodes[*known].usable;
  }
  return copy;
}

}  // namespace

void Engine::act_on_jobs(Turn& turn, const Request& request) {
  auto ask = decoded<wire::ActOnJobs>(request);
  if (!ask) return;
  answer_when_stored(turn, request.peer,
                     controller::act_on_jobs(*state_, request.caller, *ask, turn.now));
}

void Engine::cancel_jobs(Turn& turn, const Request& request) {
  auto ask = decoded<wire::CancelJobs>(request);
  if (!ask) return;
  answer_when_stored(turn, request.peer,
                     controller::cancel_jobs(*state_, request.caller, *ask, users_, turn.now));
}

void Engine::change(Turn& turn, const Request& request) {
  auto ask = decoded<wire::Change>(request);
  if (!ask) return;
  ChangeContext context = change_context();
  answer_when_stored(turn, request.peer,
                     controller::change(*state_, request.caller, *ask, context, turn.now));
  if (ask->what() == "node" || ask->what() == "partition" || ask->what() == "gpu") {
    nodes_changed();
  }
  if (context.nodes_changed) configure_agents(turn);
}

ChangeContext Engine::change_context() {
  return {.setup = setup_,
          .users = users_,
          .fetch = [this](std::uint64_t key) -> std::optional<wire::Asked> {
            auto asked = store_.asked(key);
            if (!asked) return std::nullopt;
            return std::move(*asked);
          }};
}

void Engine::nodes_changed() {
  all_changed_ = trust_changed_ = true;
  advised_cluster_ = with_all_nodes(state_->cluster(), setup_.cluster);
  adviser_.forget();
}

void Engine::diagnose(Turn& turn, const Request& request) {
  auto ask = decoded<wire::Diagnose>(request);
  if (!ask) return;
  if (ask->reset()) {
    if (!request.caller.privileged) {
      return refuse(request.peer, fail(Code::access_denied, "Access/permission denied").error());
    }
    figures_.reset(state_->backfilled(), turn.now);
    parts_.requests.reset();
    return outbox_.answer(request.peer, wire::DiagnoseReply());
  }
  figures_.connected_agents = agents_.count();
  outbox_.answer(request.peer,
                 diagnose_reply(*state_, figures_, parts_.requests.counts(), users_,
                                {.commits = store_.memory().commits,
                                 .verified_at = store_.verified_at(),
                                 .damage = store_.damage()},
                                {.ahead = clock_.ahead().value_or(std::chrono::seconds(0)),
                                 .adopts_in = clock_.adopts_in().value_or(std::chrono::seconds(0)),
                                 .adoptions = figures_.clock_adoptions,
                                 .adopted = clock_.adopted()},
                                turn.now));
}

Result<void> Engine::read_setup_again(Turn& turn) {
  auto setup = read_setup(setup_.conf_path, parts_.emulate);
  if (!setup) return pass(std::move(setup.error()));
  for (const std::string& note : setup->notes) log_.info("{}", note);
  std::vector<std::string> left_out;
  *setup = with_fitting_nodes(std::move(*setup), created_nodes(*state_), left_out);
  for (const std::string& trouble : left_out) log_.error("{}", trouble);
  cluster::Cluster cluster = setup->cluster;
  job::Policy policy = setup->policy;
  std::vector<wire::PartitionRecord> records;
  for (const auto& [name, record] : state_->partition_records()) records.push_back(record);
  for (const std::string& trouble : apply_partition_records(records, *setup, cluster, policy)) {
    log_.error("{}", trouble);
  }
  advised_cluster_ = std::make_shared<const cluster::Cluster>(cluster);
  adviser_.forget();
  adopt_clock_if_set(turn, "the configuration is read again");
  state_->reconfigure(std::move(cluster), std::move(policy), turn.now);
  setup_ = std::move(*setup);
  parts_.limit_scripts(setup_.policy.max_script);
  trust_changed_ = true;
  all_changed_ = all_jobs_changed_ = true;
  configure_agents(turn);
  // They may beat faster from now on, and have not heard of it yet.
  agents_.all_heard(turn.moment);
  next_silence_check_ = turn.moment;
  return {};
}

void Engine::reconfigure(Turn& turn, const Request& request) {
  if (auto done = read_setup_again(turn); !done) return refuse(request.peer, done.error());
  log_.info("read the configuration again, as uid {} asked", request.caller.uid);
  answer_when_stored(turn, request.peer, wire::Done());
}

void Engine::shutdown(Turn& /*turn*/, const Request& request) {
  log_.info("shutdown, as uid {} asked", request.caller.uid);
  outbox_.answer(request.peer, wire::Done());
  flush();
  parts_.shut();
}

void Engine::set_debug(Turn& /*turn*/, const Request& request) {
  auto ask = decoded<wire::SetDebug>(request);
  if (!ask) return;
  const auto level = log_level(ask->level());
  if (!level) return refuse(request.peer, level.error());
  log_.set_level(*level);
  log_.info("log level {}", ask->level());
  outbox_.answer(request.peer, wire::Done());
}

}  // namespace berth::controller
