#include "command/scontrol_topology.h"

#include <fmt/format.h>

#include <algorithm>

#include "command/json_text.h"
#include "command/squeue_json.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::command::scontrol {
namespace {

bool holds_node(const wire::NetworkUnit& unit, const std::string& node) {
  const auto names = text::expand_hostlist(unit.nodes());
  return names && std::ranges::find(*names, node) != names->end();
}

int print_json(Session& session, const wire::Network& network,
               const std::vector<wire::NetworkUnit>& units) {
  JsonText json;
  json.begin_object();
  json.begin_array("topology");
  for (const wire::NetworkUnit& unit : units) {
    json.begin_object();
    json.text("topology", network.name());
    json.text("type", network.blocks() ? "block" : "switch");
    json.text("name", unit.name());
    json.unsigned_number("level", unit.level());
    json.text("nodes", unit.nodes());
    json.text("children", unit.children());
    if (network.blocks()) {
      json.unsigned_number("block_size", unit.size());
    } else {
      json.unsigned_number("link_speed", unit.link_speed());
    }
    json.end_object();
  }
  json.end_array();
  append_meta(json, json_meta("scontrol", session.argv, session.environment, ""));
  json.end_object();
  session.out += std::move(json).done();
  return 0;
}

}  // namespace

std::vector<wire::NetworkUnit> named_units(const wire::Network& network,
                                           const std::optional<std::string>& named) {
  std::vector<wire::NetworkUnit> out;
  if (!named) {
    out.assign(network.units().begin(), network.units().end());
    return out;
  }
  std::string kind;
  std::string name = *named;
  if (const std::size_t equals = name.find('='); equals != std::string::npos) {
    kind = text::to_lower(name.substr(0, equals));
    name.erase(0, equals + 1);
  }
  if (kind != "node") {
    for (const wire::NetworkUnit& unit : network.units()) {
      if (unit.name() == name) out.push_back(unit);
    }
  }
  if (!out.empty() || (!kind.empty() && kind != "node")) return out;
  for (const wire::NetworkUnit& unit : network.units()) {
    if (holds_node(unit, name)) out.push_back(unit);
  }
  return out;
}

std::string unit_text(const wire::Network& network, const wire::NetworkUnit& unit,
                      std::size_t index) {
  if (network.blocks()) {
    return fmt::format("{}={} BlockIndex={} Nodes={} BlockSize={}\n",
                       unit.level() == 0 ? "BlockName" : "AggregatedBlock", unit.name(), index,
                       unit.nodes(), unit.size());
  }
  std::string line = fmt::format("SwitchName={} Level={} LinkSpeed={} Nodes={}", unit.name(),
                                 unit.level(), unit.link_speed(), unit.nodes());
  if (!unit.children().empty()) line += fmt::format(" Switches={}", unit.children());
  return line + "\n";
}

int show_topology(Session& session, const std::optional<std::string>& named) {
  const Result<wire::ConfigReply> reply = session.ask<wire::ConfigReply>(wire::ShowConfig{});
  if (!reply) return session.complain("slurm_load_topo error", reply.error());
  const wire::Network& network = reply->network();
  const std::vector<wire::NetworkUnit> units = named_units(network, named);
  if (named && units.empty() && network.units_size() > 0) {
    return session.complain(
        fmt::format("Topology information contains no switch, block or node named {}", *named));
  }
  if (session.json) return print_json(session, network, units);
  if (units.empty()) session.out += "No topology information available\n";
  for (const wire::NetworkUnit& unit : units) {
    const auto at = std::ranges::find(network.units(), unit.name(), &wire::NetworkUnit::name);
    session.out += unit_text(network, unit,
                             static_cast<std::size_t>(std::distance(network.units().begin(), at)));
  }
  return 0;
}

}  // namespace berth::command::scontrol
