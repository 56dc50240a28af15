// scontrol show: which entity, one request, its records.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "command/scontrol_job_text.h"
#include "command/scontrol_licenses.h"
#include "command/scontrol_node_text.h"
#include "command/scontrol_reservation.h"
#include "command/scontrol_session.h"
#include "command/scontrol_topology.h"
#include "text/hostlist.h"
#include "text/words.h"
#include "wire/job_names.h"

namespace berth::command::scontrol {
namespace {

using Value = std::optional<std::string>;

constexpr std::string_view kLoadJobs = "slurm_load_jobs error";
constexpr std::string_view kNoSuchJob = "slurm_load_jobs error: Invalid job id specified";

/// The names of a list in ids; the offending word when one is not a job's name.
std::optional<std::string> add_ids(wire::ListJobs& ask, const Value& value) {
  if (!value) return std::nullopt;
  for (const std::string_view word : wire::split_job_list(*value)) {
    const auto name = wire::parse_job_name(word);
    if (!name) return std::string(word);
    *ask.add_ids() = *name;
  }
  return std::nullopt;
}

int show_jobs(Session& session, const Value& value) {
  wire::ListJobs ask;
  ask.set_with_ended(true);
  ask.set_with_detail(true);
  if (const auto bad = add_ids(ask, value)) {
    return session.complain(fmt::format("Invalid job id specified: {}", *bad));
  }
  const Result<wire::JobsReply> reply = session.ask<wire::JobsReply>(ask);
  if (!reply) return session.complain(kLoadJobs, reply.error());
  if (reply->jobs().empty()) {
    if (value) return session.complain(kNoSuchJob);
    session.out += "No jobs in the system\n";
    return 0;
  }
  session.style.now = reply->now();
  for (const wire::JobInfo& job : reply->jobs()) session.out += job_text(job, session.style);
  return 0;
}

bool is_asked_for(const wire::StepInfo& step, const wire::ListJobs& ask) {
  if (ask.ids().empty()) return true;
  return std::any_of(ask.ids().begin(), ask.ids().end(), [&](const wire::JobName& name) {
    return (!name.has_step() || name.step() == step.step_id()) &&
           (!name.has_array_task() || name.array_task() == step.array_task_id());
  });
}

int show_steps(Session& session, const Value& value) {
  wire::ListJobs ask;
  ask.set_with_steps(true);
  if (const auto bad = add_ids(ask, value)) {
    return session.complain(fmt::format("Invalid job step id specified: {}", *bad));
  }
  const Result<wire::JobsReply> reply = session.ask<wire::JobsReply>(ask);
  if (!reply) return session.complain("slurm_get_job_steps error", reply.error());
  session.style.now = reply->now();
  for (const wire::StepInfo& step : reply->steps()) {
    if (is_asked_for(step, ask)) session.out += step_text(step, session.style);
  }
  if (!session.out.empty()) return 0;
  if (value) return session.complain(fmt::format("Job step {} not found", *value));
  session.out += "No job steps in the system\n";
  return 0;
}

int show_nodes(Session& session, const Value& value) {
  wire::ListNodes ask;
  std::vector<std::string> names;
  if (value && !text::equal_ignoring_case(*value, "all")) {
    Result<std::vector<std::string>> expanded = text::expand_hostlist(*value);
    if (!expanded) return session.complain(fmt::format("Invalid hostlist: {}", *value));
    names = std::move(*expanded);
  }
  for (const std::string& name : names) ask.add_names(name);
  const Result<wire::NodesReply> reply = session.ask<wire::NodesReply>(ask);
  if (!reply) return session.complain("slurm_load_node error", reply.error());
  session.style.now = reply->now();
  int code = 0;
  if (names.empty()) {
    for (const wire::NodeInfo& node : reply->nodes()) {
      if (node.state() == "FUTURE" && !session.future) continue;
      session.out += node_text(node, session.style);
    }
    if (session.out.empty()) session.out += "No nodes in the system\n";
    return 0;
  }
  for (const std::string& name : names) {
    const auto found =
        std::find_if(reply->nodes().begin(), reply->nodes().end(),
                     [&](const wire::NodeInfo& node) { return node.name() == name; });
    if (found == reply->nodes().end()) {
      session.out += fmt::format("Node {} not found\n", name);
      code = 1;
    } else {
      session.out += node_text(*found, session.style);
    }
  }
  return code;
}

int show_partitions(Session& session, const Value& value) {
  wire::ListNodes ask;
  ask.set_with_partitions(true);
  const Result<wire::NodesReply> reply = session.ask<wire::NodesReply>(ask);
  if (!reply) return session.complain("slurm_load_partitions error", reply.error());
  session.style.now = reply->now();
  for (const wire::PartitionInfo& partition : reply->partitions()) {
    const bool wanted = value ? partition.name() == *value : session.all || !partition.hidden();
    if (wanted) session.out += partition_text(partition, session.style);
  }
  if (!session.out.empty()) return 0;
  if (value) return session.complain(fmt::format("Partition {} not found", *value));
  session.out += "No partitions in the system\n";
  return 0;
}

int show_config(Session& session, const Value&) {
  const Result<wire::ConfigReply> reply = session.ask<wire::ConfigReply>(wire::ShowConfig{});
  if (!reply) return session.complain("slurm_load_ctl_conf error", reply.error());
  session.out += config_text(*reply, session.style);
  session.out += fmt::format("\nSlurmctld(primary) at {} is UP\n", reply->controller_host());
  return 0;
}

int show_licenses(Session& session, const Value& value) {
  const Result<std::vector<License>> all = licenses_of(session);
  if (!all) return session.complain("slurm_load_licenses error", all.error());
  for (const License& license : *all) {
    if (!value || license.name == *value) session.out += license_text(license, session.style);
  }
  if (!session.out.empty()) return 0;
  if (value) return session.complain(fmt::format("License name {} not found.", *value));
  session.out += "No licenses configured in Slurm.\n";
  return 0;
}

int show_reservations(Session& session, const Value& value) {
  const auto reply = session.ask<wire::ReservationsReply>(wire::ListReservations{});
  if (!reply) return session.complain("slurm_load_reservations error", reply.error());
  for (const wire::ReservationInfo& one : reply->reservations()) {
    if (!value || one.name() == *value) session.out += reservation_text(one, session.style);
  }
  if (!session.out.empty()) return 0;
  if (value) return session.complain(fmt::format("Reservation {} not found", *value));
  session.out += "No reservations in the system\n";
  return 0;
}

/// Which daemons belong on this machine.
int show_daemons(Session& session, const Value&) {
  std::array<char, 256> buffer{};
  gethostname(buffer.data(), buffer.size() - 1);
  std::string host = buffer.data();
  host = host.substr(0, host.find('.'));
  const Result<wire::Pong> controller = session.ask<wire::Pong>(wire::Ping{});
  if (!controller) return session.complain("slurm_load_ctl_conf error", controller.error());
  const Result<wire::NodesReply> nodes = session.ask<wire::NodesReply>(wire::ListNodes{});
  if (!nodes) return session.complain("slurm_load_node error", nodes.error());
  std::string line;
  if (controller->host() == host) line = "slurmctld ";
  for (const wire::NodeInfo& node : nodes->nodes()) {
    if (node.name() != host && node.host() != host) continue;
    line += "slurmd ";
    break;
  }
  session.out += line + "\n";
  return 0;
}

template <HostListForm Form>
int show_host_form(Session& session, const Value& value) {
  return show_hosts(session, Form, value);
}

struct Entity {
  std::string_view name;
  std::size_t letters;  // that are enough
  int (*run)(Session&, const Value&);
  std::optional<JsonKind> json = std::nullopt;
};
constexpr std::array kEntities = {
    Entity{"jobs", 1, show_jobs, JsonKind::jobs},
    Entity{"jobid", 3, show_jobs, JsonKind::jobs},
    Entity{"steps", 2, show_steps},
    Entity{"stepid", 2, show_steps},
    Entity{"nodes", 1, show_nodes, JsonKind::nodes},
    Entity{"nodename", 4, show_nodes, JsonKind::nodes},
    Entity{"partitions", 1, show_partitions, JsonKind::partitions},
    Entity{"partitionname", 9, show_partitions, JsonKind::partitions},
    Entity{"config", 1, show_config},
    Entity{"hostnames", 5, show_host_form<HostListForm::names>},
    Entity{"hostlist", 5, show_host_form<HostListForm::list>},
    Entity{"hostlistsorted", 9, show_host_form<HostListForm::sorted>},
    Entity{"licenses", 2, show_licenses, JsonKind::licenses},
    Entity{"topology", 1, show_topology, JsonKind::topology},
    Entity{"daemons", 2, show_daemons},
    Entity{"reservations", 1, show_reservations, JsonKind::reservations},
    Entity{"reservationname", 11, show_reservations, JsonKind::reservations},
};

const Entity* find_entity(std::string_view word) {
  for (const Entity& entity : kEntities) {
    if (entity.name == word) return &entity;
  }
  for (const Entity& entity : kEntities) {
    if (word.size() >= entity.letters && entity.name.starts_with(word)) return &entity;
  }
  return nullptr;
}

}  // namespace

int show(Session& session, Words words) {
  std::string name = words.front();
  Value value;
  if (const std::size_t eq = name.find('='); eq != std::string::npos) {
    value = name.substr(eq + 1);
    name.resize(eq);
  }
  std::size_t used = 1;
  if (!value && words.size() > 1) value = words[used++];
  if (words.size() > used) return session.complain("too many arguments for keyword:show");
  const std::string lower = text::to_lower(name);
  const Entity* entity = find_entity(lower);
  if (entity == nullptr) {
    if (const std::string_view instead = instead_of("show", lower); !instead.empty()) {
      return session.refuse(fmt::format("show {} is not supported by berth", lower), instead);
    }
    return session.complain(fmt::format("invalid entity:{} for keyword:show", name));
  }
  if (!session.json) return entity->run(session, value);
  if (!entity->json) {
    return session.refuse(fmt::format("show {} has no JSON form", entity->name),
                          "leave out --json");
  }
  return show_json(session, *entity->json, value);
}

}  // namespace berth::command::scontrol
