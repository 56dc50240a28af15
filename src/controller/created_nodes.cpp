// What created_nodes.h promises.
#include "controller/created_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "conf/slurm_lines.h"
#include "site/site.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::controller {
namespace {

/// Lines of slurm.conf never have this file.
constexpr std::string_view kOrigin = "scontrol";

/// Text is as conf/lines reads it: words without blanks in them.
Result<conf::NodeLine> read_line(const CreatedNode& node) {
  conf::NodeLine line;
  line.at = {std::string(kOrigin), 0};
  conf::Complaints complaints;
  for (const std::string_view word : text::split(node.line, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) continue;
    const conf::Pair pair{std::string(word.substr(0, equals)),
                          std::string(word.substr(equals + 1)),
                          {std::string(kOrigin), 0}};
    if (text::equal_ignoring_case(pair.key, "NodeName")) continue;
    conf::apply_node_pair(pair, line, complaints);
  }
  if (complaints.failed()) return std::unexpected(complaints.as_error());
  for (const conf::UnusedKeys& unused : complaints.unused_keys()) {
    return fail(Code::unsupported, fmt::format("{} of a node is not supported by berth",
                                               unused.keys.empty() ? "" : unused.keys.front()));
  }
  line.names = {node.name};
  return line;
}

/// Of host names and of names of GRES: what no grammar reads as anything else.
bool is_plain(std::string_view text) {
  constexpr std::size_t kMostName = 64;
  return !text.empty() && text.size() <= kMostName && text.front() != '-' &&
         std::ranges::all_of(text, [](unsigned char letter) {
           return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.';
         });
}

bool is_known(const conf::SlurmConf& conf, const std::string& name) {
  return std::ranges::any_of(conf.nodes, [&](const conf::NodeLine& line) {
    return std::ranges::find(line.names, name) != line.names.end();
  });
}

}  // namespace

Result<void> check_node_name(const std::string& name) {
  if (is_plain(name)) return {};
  return fail(Code::invalid_node_name, fmt::format("{} cannot be the name of a node", name),
              "letters, digits, '-', '_' and '.', at most 64");
}

Result<CreatedNode> node_of_machine(const std::string& name, const wire::Hardware& hardware) {
  constexpr std::uint32_t kMostOfEach = 1 << 16;
  if (auto good = check_node_name(name); !good) return pass(std::move(good.error()));
  const auto in_bounds = [](std::uint32_t count) { return count >= 1 && count <= kMostOfEach; };
  if (!in_bounds(hardware.sockets()) || !in_bounds(hardware.cores_per_socket()) ||
      !in_bounds(hardware.threads_per_core()) || hardware.memory_mb() == 0) {
    return fail(Code::bad_value, fmt::format("what {} says of its hardware cannot be", name));
  }
  CreatedNode node{.name = name, .line = {}};
  node.line =
      fmt::format("NodeName={} Sockets={} CoresPerSocket={} ThreadsPerCore={} RealMemory={}", name,
                  hardware.sockets(), hardware.cores_per_socket(), hardware.threads_per_core(),
                  hardware.memory_mb());
  std::string gres;
  for (const wire::GresFound& one : hardware.gres()) {
    if (!is_plain(one.name()) || (!one.type().empty() && !is_plain(one.type()))) {
      return fail(Code::bad_value, fmt::format("{} has a GRES whose name cannot be read", name));
    }
    gres += gres.empty() ? "" : ",";
    gres += one.type().empty() ? fmt::format("{}:{}", one.name(), one.count())
                               : fmt::format("{}:{}:{}", one.name(), one.type(), one.count());
  }
  if (!gres.empty()) node.line += " Gres=" + gres;
  return node;
}

std::vector<CreatedNode> created_nodes(const job::State& state) {
  std::vector<CreatedNode> out;
  for (cluster::NodeIndex i = 0; i < state.cluster().nodes.size(); ++i) {
    const job::NodeState& node = state.node(i);
    if (!node.line.empty()) out.push_back({state.cluster().nodes[i].name, node.line});
  }
  return out;
}

std::vector<CreatedNode> created_nodes(const std::vector<wire::NodeRecord>& records) {
  std::vector<CreatedNode> out;
  for (const wire::NodeRecord& record : records) {
    if (!record.line().empty()) out.push_back({record.name(), record.line()});
  }
  return out;
}

Result<Setup> with_nodes(Setup setup, const std::vector<CreatedNode>& nodes) {
  conf::SlurmConf& conf = setup.config.slurm;
  std::erase_if(conf.nodes, [](const conf::NodeLine& line) { return line.at.file == kOrigin; });
  setup.node_config.clear_created_nodes();
  for (const CreatedNode& node : nodes) {
    if (is_known(conf, node.name)) {
      return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)),
                  fmt::format("{} is there already", node.name));
    }
    auto line = read_line(node);
    if (!line) return pass(std::move(line.error()));
    conf.nodes.push_back(std::move(*line));
    setup.node_config.add_created_nodes(node.line);
  }
  auto site = site::from_config(setup.config);
  if (!site) return pass(std::move(site.error()));
  setup.cluster = std::move(site->cluster);
  return setup;
}

Setup with_fitting_nodes(Setup setup, const std::vector<CreatedNode>& nodes,
                         std::vector<std::string>& troubles) {
  const bool had_some = setup.node_config.created_nodes_size() > 0;
  if (nodes.empty() && !had_some) return setup;
  if (auto all = with_nodes(setup, nodes)) return std::move(*all);
  std::vector<CreatedNode> fitting;
  Setup out = setup;
  for (const CreatedNode& node : nodes) {
    fitting.push_back(node);
    auto tried = with_nodes(setup, fitting);
    if (tried) {
      out = std::move(*tried);
      continue;
    }
    const std::string& why = tried.error().hint;
    troubles.push_back(fmt::format("node {}, made by scontrol, is left out: {}", node.name,
                                   why.empty() ? tried.error().what() : why));
    fitting.pop_back();
  }
  return out;
}

}  // namespace berth::controller
