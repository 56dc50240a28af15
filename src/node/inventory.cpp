// What inventory.h promises.
#include "node/inventory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "conf/process_parameters.h"
#include "conf/slurm_lines.h"
#include "node/missing_gpus.h"
#include "site/site.h"
#include "step/spool.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::node {
namespace {

/// The file named by -f takes the place of slurm.conf whatever it is called.
class ConfSource : public conf::DirectorySource {
 public:
  explicit ConfSource(const std::filesystem::path& file)
      : DirectorySource(file.parent_path()), file_(file.filename()) {}
  Result<std::optional<std::string>> read(std::string_view name) const override {
    return DirectorySource::read(name == "slurm.conf" ? std::string_view(file_) : name);
  }

 private:
  std::string file_;
};

wire::NodeReport report_of(const device::Machine& machine, std::string name) {
  wire::NodeReport report;
  report.set_name(std::move(name));
  report.set_sockets(machine.sockets);
  report.set_cores_per_socket(machine.cores_per_socket);
  report.set_threads_per_core(machine.threads_per_core);
  report.set_memory_mb(machine.memory_mb);
  report.set_tmp_disk_mb(machine.tmp_disk_mb);
  report.set_boot_time(machine.boot_time);
  report.set_arch(machine.arch);
  report.set_os(machine.os);
  report.set_host(machine.host);
  return report;
}

void add_gres(wire::NodeReport& report, const std::string& name, const std::string& type,
              std::uint64_t count) {
  wire::GresFound& found = *report.add_gres();
  found.set_name(name);
  found.set_type(type);
  found.set_count(count);
}

wire::NodeReport pretended_report(const cluster::Node& node, const device::Machine& host) {
  device::Machine machine = device::pretended(node);
  wire::NodeReport report = report_of(machine, node.name);
  if (report.boot_time() == 0) report.set_boot_time(host.boot_time);
  if (report.arch().empty()) report.set_arch(host.arch);
  if (report.os().empty()) report.set_os(host.os);
  if (report.host().empty()) report.set_host(node.name);
  for (const cluster::Gres& gres : node.gres) {
    std::map<std::string, std::uint64_t> types;
    for (const cluster::Device& device : gres.devices) types[device.type] += device.units;
    for (const auto& [type, count] : types) add_gres(report, gres.name, type, count);
  }
  return report;
}

/// "NodeName=n1 CPUs=4 …" as the controller keeps it; it has been read there before.
std::optional<conf::NodeLine> created_line(const std::string& text) {
  conf::NodeLine line;
  conf::Complaints complaints;
  for (const std::string_view word : text::split(text, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) continue;
    const conf::Pair pair{
        std::string(word.substr(0, equals)), std::string(word.substr(equals + 1)), {"scontrol", 0}};
    if (text::equal_ignoring_case(pair.key, "NodeName")) {
      line.names = {pair.value};
    } else {
      conf::apply_node_pair(pair, line, complaints);
    }
  }
  if (line.names.empty() || complaints.failed()) return std::nullopt;
  return line;
}

/// `name`: of the real node; "" = all nodes are this agent's.
FenceConf fence_conf(const conf::Config& config, const cluster::Cluster& cluster,
                     const std::string& name) {
  FenceConf out;
  if (const conf::CgroupConf* limits = config.fence()) out.limits = *limits;
  // A value that cannot be read was refused with the file.
  out.step_pids = conf::process_parameters(config.slurm.daemon.node)
                      .value_or(conf::ProcessParameters())
                      .max_step_pids;
  for (const cluster::Node& node : cluster.nodes) {
    if (name.empty() || node.name == name) out.nodes.push_back(node);
  }
  return out;
}

}  // namespace

std::string with_names(std::string text, const std::string& host, const std::string& node) {
  for (const auto& [word, value] : {std::pair{"%h", host}, std::pair{"%n", node}}) {
    for (std::size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, 2, value);
  }
  return text;
}

std::string known_gpus_file(const std::string& spool) {
  return spool + "/gpus";
}

void name_files(const Gres& found, FenceConf& fences) {
  std::vector<const GresItem*> gpus;
  for (const GresItem& item : found.items) {
    if (item.name == "gpu") gpus.push_back(&item);
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!gpus[i]->missing.empty()) fences.missing_gpus.set(i);
  }
  for (cluster::Node& node : fences.nodes) {
    for (cluster::Gres& gres : node.gres) {
      if (gres.name != "gpu" || gres.devices.size() != gpus.size()) continue;
      for (std::size_t i = 0; i < gpus.size(); ++i) {
        const std::vector<std::string>& files = gpus[i]->files;
        if (files.empty()) continue;
        gres.devices[i].file = files.front();
        gres.devices[i].other_files.assign(files.begin() + 1, files.end());
      }
    }
  }
}

std::string spool_directory(const Options& options, const conf::DaemonKeys& keys,
                            const std::string& host, const std::string& node) {
  return options.spool.empty() ? with_names(keys.spool_dir, host, node) : options.spool;
}

Result<FenceConf> read_fence_conf(const Options& options, const std::string& name) {
  const ConfSource source{std::filesystem::path(options.conf)};
  auto config = conf::read_config(source);
  if (!config) return pass(std::move(config.error()));
  auto site = site::from_config(*config);
  if (!site) return pass(std::move(site.error()));
  return fence_conf(*config, site->cluster, name);
}

namespace {

Result<Inventory> inventory_of_machine(const Options& options, const conf::Config& config) {
  Inventory inventory;
  inventory.keys = config.slurm.daemon;
  device::Search search;
  const std::string name = options.name.empty() ? device::host_name() : options.name;
  auto detect = detect_of(config.gres, name);
  if (!detect) return pass(std::move(detect.error()));
  search.detect = *detect;
  inventory.machine = device::this_machine(search);
  const std::string spool = spool_directory(options, inventory.keys, device::host_name(), name);
  const auto known = step::read_file(known_gpus_file(spool));
  inventory.gres =
      resolve_gres(inventory.machine, config, name, read_known_gpus(known.value_or(std::string())));
  inventory.nodes.push_back(report_of(inventory.machine, name));
  inventory.gres.tell(inventory.nodes.back());
  if (const auto site = site::from_config(config)) {
    inventory.fences = fence_conf(config, site->cluster, name);
    name_files(inventory.gres, inventory.fences);
  }
  return inventory;
}

}  // namespace

Result<Inventory> bare_inventory(const Options& options) {
  return inventory_of_machine(options, conf::Config());
}

Result<Inventory> take_inventory(const Options& options, const std::vector<std::string>& created) {
  const ConfSource source{std::filesystem::path(options.conf)};
  auto config = conf::read_config(source);
  if (!config) return pass(std::move(config.error()));
  if (!options.emulate) return inventory_of_machine(options, *config);
  Inventory inventory;
  inventory.keys = config->slurm.daemon;
  device::Search search;
  search.detect = device::Detect::off;
  inventory.machine = device::this_machine(search);
  for (const std::string& text : created) {
    if (auto line = created_line(text); line && options.nodes.empty()) {
      config->slurm.nodes.push_back(std::move(*line));
    }
  }
  auto site = site::from_config(*config);
  if (!site) return pass(std::move(site.error()));
  inventory.fences = fence_conf(*config, site->cluster, "");
  std::vector<std::string> wanted;
  if (!options.nodes.empty()) {
    auto names = text::expand_hostlist(options.nodes);
    if (!names) return pass(std::move(names.error()));
    wanted = std::move(*names);
  }
  for (const cluster::Node& node : site->cluster.nodes) {
    if (!wanted.empty() && std::ranges::find(wanted, node.name) == wanted.end()) continue;
    if (node.state_reason.starts_with("FUTURE")) continue;  // there is no such machine yet
    inventory.nodes.push_back(pretended_report(node, inventory.machine));
    if (node.cloud && inventory.keys.power.enabled()) inventory.off_at_first.push_back(node.name);
    std::erase(wanted, node.name);
  }
  if (!wanted.empty()) {
    return fail(Code::invalid_node_name,
                fmt::format("{} is not a node of {}", wanted.front(), options.conf));
  }
  return inventory;
}

}  // namespace berth::node
