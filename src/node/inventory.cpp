// What inventory.h promises.
#include "node/inventory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "conf/slurm_lines.h"
#include "site/site.h"
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

wire::NodeReport real_report(const device::Machine& machine, std::string name) {
  wire::NodeReport report = report_of(machine, std::move(name));
  std::map<std::string, std::uint64_t> gpus;
  for (const device::Gpu& gpu : machine.gpus) ++gpus[gpu.type];
  for (const auto& [type, count] : gpus) add_gres(report, "gpu", type, count);
  return report;
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

/// How much of a gres is there: what has a device file counts when the file exists.
std::uint64_t units_there(const cluster::Node& node, const cluster::Gres& gres, std::size_t index) {
  const cluster::Gres* gpus = gres.shares_gpu ? node.find_gres("gpu") : nullptr;
  const bool of_gpu = gpus != nullptr && index < gpus->devices.size();
  const std::string& file = of_gpu ? gpus->devices[index].file : gres.devices[index].file;
  const bool there = file.empty() || ::access(file.c_str(), F_OK) == 0;
  return there ? gres.devices[index].units : 0;
}

/// What gres.conf describes of this node. GPUs of which it names no file are found by looking.
void count_described(const cluster::Node& node, wire::NodeReport& report) {
  for (const cluster::Gres& gres : node.gres) {
    const bool has_files = std::ranges::any_of(
        gres.devices, [](const cluster::Device& device) { return !device.file.empty(); });
    if (gres.name == "gpu" && !has_files) continue;
    for (int i = report.gres_size() - 1; i >= 0; --i) {
      if (report.gres(i).name() == gres.name) report.mutable_gres()->DeleteSubrange(i, 1);
    }
    std::map<std::string, std::uint64_t> types;
    for (std::size_t i = 0; i < gres.devices.size(); ++i) {
      types[gres.devices[i].type] += units_there(node, gres, i);
    }
    for (const auto& [type, count] : types) add_gres(report, gres.name, type, count);
  }
}

/// `name`: of the real node; "" = all nodes are this agent's.
FenceConf fence_conf(const conf::Config& config, const cluster::Cluster& cluster,
                     const std::string& name) {
  FenceConf out;
  if (const conf::CgroupConf* limits = config.fence()) out.limits = *limits;
  for (const cluster::Node& node : cluster.nodes) {
    if (name.empty() || node.name == name) out.nodes.push_back(node);
  }
  return out;
}

}  // namespace

Result<FenceConf> read_fence_conf(const Options& options, const std::string& name) {
  const ConfSource source{std::filesystem::path(options.conf)};
  auto config = conf::read_config(source);
  if (!config) return pass(std::move(config.error()));
  if (config->fence() == nullptr) return FenceConf();
  auto site = site::from_config(*config);
  if (!site) return pass(std::move(site.error()));
  return fence_conf(*config, site->cluster, name);
}

Result<Inventory> take_inventory(const Options& options, const std::vector<std::string>& created) {
  const ConfSource source{std::filesystem::path(options.conf)};
  auto config = conf::read_config(source);
  if (!config) return pass(std::move(config.error()));
  Inventory inventory;
  inventory.keys = config->slurm.daemon;
  inventory.machine = device::this_machine();
  if (!options.emulate) {
    const std::string name = options.name.empty() ? inventory.machine.host : options.name;
    inventory.nodes.push_back(real_report(inventory.machine, name));
    if (const auto site = site::from_config(*config)) {
      inventory.fences = fence_conf(*config, site->cluster, name);
      if (const auto at = site->cluster.find_node(name)) {
        count_described(site->cluster.nodes[*at], inventory.nodes.back());
      }
    }
    return inventory;
  }
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
