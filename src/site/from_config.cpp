// The cluster that slurm.conf, gres.conf and cgroup.conf describe.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "conf/gpu_parameters.h"
#include "site/devices.h"
#include "site/hardware.h"
#include "site/limits.h"
#include "site/network.h"
#include "site/partitions.h"
#include "site/site.h"
#include "text/hostlist.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::site {
namespace {

bool has(const conf::Maybe<std::vector<std::string>>& list, std::string_view word) {
  return list && std::ranges::find(list->value, word) != list->value.end();
}

/// Which lines of gres.conf apply to which node.
class GresLines {
 public:
  explicit GresLines(const std::optional<conf::GresConf>& conf) {
    if (!conf) return;
    for (std::uint32_t i = 0; i < conf->lines.size(); ++i) {
      const conf::GresLine& line = conf->lines[i];
      lines_.push_back(&line);
      if (!line.nodes) {
        everywhere_.push_back(i);
      } else {
        for (const std::string& node : *line.nodes) by_node_[node].push_back(i);
      }
    }
  }

  [[nodiscard]] std::vector<std::uint32_t> of(const std::string& node) const {
    std::vector<std::uint32_t> out = everywhere_;
    if (const auto at = by_node_.find(node); at != by_node_.end()) {
      out.insert(out.end(), at->second.begin(), at->second.end());
      std::ranges::sort(out);
      out.erase(std::unique(out.begin(), out.end()), out.end());
    }
    return out;
  }

  [[nodiscard]] std::vector<const conf::GresLine*> at(
      const std::vector<std::uint32_t>& which) const {
    std::vector<const conf::GresLine*> out;
    for (const std::uint32_t i : which) out.push_back(lines_[i]);
    return out;
  }

  /// Nodes that gres.conf names; for finding names that slurm.conf does not know.
  [[nodiscard]] const std::unordered_map<std::string, std::vector<std::uint32_t>>& by_node() const {
    return by_node_;
  }
  [[nodiscard]] const conf::GresLine& line(std::uint32_t i) const { return *lines_[i]; }

 private:
  std::vector<const conf::GresLine*> lines_;
  std::vector<std::uint32_t> everywhere_;
  std::unordered_map<std::string, std::vector<std::uint32_t>> by_node_;
};

class Builder {
 public:
  Builder(const conf::Config& config, Site& site)
      : config_(config), site_(site), gres_lines_(config.gres) {}

  Result<void> build() {
    cluster::Cluster& cluster = site_.cluster;
    if (config_.slurm.cluster_name) cluster.name = config_.slurm.cluster_name->value;
    settings();
    for (const conf::NodeLine& line : config_.slurm.nodes) {
      nodes_of(line);
      if (complaints_.full() || too_large_) break;
    }
    if (config_.slurm.nodes.empty()) {
      complaints_.error({config_.slurm.file, 0}, "no NodeName line: the cluster has no nodes");
    }
    if (complaints_.failed()) return std::unexpected(complaints_.as_error());
    cluster.index_nodes();
    mark_down();
    warn_of_strangers();
    add_network(config_, cluster, complaints_);
    add_partitions(config_.slurm, cluster, complaints_);
    if (cluster.partitions.empty()) {
      complaints_.error({config_.slurm.file, 0},
                        "no PartitionName line: no job could be submitted");
    }
    if (complaints_.failed()) return std::unexpected(complaints_.as_error());
    add_notes();
    site_.unused = config_.unused;
    site_.warnings = config_.warnings;
    for (std::string& warning : complaints_.warnings())
      site_.warnings.push_back(std::move(warning));
    return {};
  }

 private:
  void settings() {
    const conf::SlurmConf& conf = config_.slurm;
    cluster::Settings& s = site_.cluster.settings;
    if (conf.gres_types) s.gres_types = conf.gres_types->value;
    set_limits(conf.limits, s);
    if (conf.max_tasks_per_node) s.max_tasks_per_node = conf.max_tasks_per_node->value;
    if (conf.max_array_size) s.max_array_size = conf.max_array_size->value;
    if (conf.mpi_default) s.mpi_default = conf.mpi_default->value;
    s.hydra_bootstrap = conf.daemon.hydra_bootstrap;
    if (conf.enforce_part_limits) {
      const std::string& value = conf.enforce_part_limits->value;
      s.enforce_part_limits = value == "ANY"                     ? cluster::EnforcePartLimits::any
                              : value == "ALL" || value == "YES" ? cluster::EnforcePartLimits::all
                                                                 : cluster::EnforcePartLimits::no;
    }
    s.task_affinity = has(conf.task_plugins, "task/affinity");
    s.constrain_devices = config_.fence() != nullptr && config_.fence()->constrain_devices;
    if (const auto gpus = conf::gpu_parameters(conf.daemon.node)) s.step_fence = gpus->step_fence;
    if (config_.cgroup && config_.cgroup->constrains() && config_.fence() == nullptr) {
      complaints_.warn(
          {config_.slurm.file, 0},
          "the limits of cgroup.conf are not set: TaskPlugin does not name task/cgroup");
    }
    select_parameters();
  }

  void select_parameters() {
    const auto& given = config_.slurm.select_parameters;
    cluster::Settings& s = site_.cluster.settings;
    if (config_.slurm.select_type && config_.slurm.select_type->value == "select/linear") {
      complaints_.warn(
          config_.slurm.select_type->at,
          "SelectType=select/linear is not planned for: cores and GPUs are given out one "
          "by one, as by select/cons_tres");
    }
    if (!given) return;
    s.enforce_binding_gres = has(given, "ENFORCE_BINDING_GRES");
    s.multiple_sharing_gres = has(given, "MULTIPLE_SHARING_GRES_PJ");
    s.one_task_per_sharing = has(given, "ONE_TASK_PER_SHARING_GRES");
    s.least_loaded_shares = has(given, "LL_SHARED_GRES");
    s.core_default_dist_block = has(given, "CR_CORE_DEFAULT_DIST_BLOCK");
    s.one_task_per_core = has(given, "CR_ONE_TASK_PER_CORE");
    if (has(given, "BERTH_KEEP_GPUS_WHOLE")) s.placement = cluster::Placement::keep_whole;
    for (const std::string& word : given->value) {
      const bool memory = word.ends_with("_Memory");
      const bool resource = memory || word == "CR_CPU" || word == "CR_Core" || word == "CR_Socket";
      if (resource) s.memory_is_consumed = memory;
      if (word.starts_with("CR_Socket") || word.starts_with("CR_CPU") || word == "CR_Pack_Nodes") {
        complaints_.warn(
            given->at, fmt::format("{} is not planned for: {}", word,
                                   word == "CR_Pack_Nodes" ? "tasks are spread as without it"
                                                           : "cores are given out, as by CR_Core"));
      }
      if (word == "ONE_TASK_PER_SHARING_GRES") {
        complaints_.warn(given->at,
                         "ONE_TASK_PER_SHARING_GRES is not planned for: tasks of a job may share "
                         "the GPU that holds their shards");
      }
    }
  }

  void nodes_of(const conf::NodeLine& line) {
    const cluster::Node shape = node_hardware(line, complaints_);
    if (!known_gres(line)) return;
    for (const std::string& name : line.names) {
      const Devices& devices = devices_of(line, shape, name);
      for (const cluster::Gres& gres : devices.gres) {
        for (const cluster::Device& device : gres.devices) devices_ += 1 + device.links.size() / 16;
      }
      if (devices_ > kMaxDevices) {
        complaints_.error(line.at,
                          fmt::format("the cluster has more than {} devices", kMaxDevices));
        too_large_ = true;
        return;
      }
      cluster::Node node = shape;
      node.name = name;
      node.gres = devices.gres;
      if (has(config_.slurm.gres_types, text::kGpuMemory)) cluster::add_gpu_memory(node);
      if (line.restricted_cores_per_gpu) {
        node.restricted_cores_per_gpu = line.restricted_cores_per_gpu->value;
        node.gpu_cores = gpu_cores(node, node.restricted_cores_per_gpu);
      }
      if (devices.unknown != Unknown::nothing) {
        unknown_[{devices.unknown, devices.autodetect}].push_back(name);
      }
      site_.cluster.nodes.push_back(std::move(node));
    }
  }

  /// The devices of a node. Nodes of the same line, and lines that say the same, are looked at
  /// once, unless that gave a complaint that names the line.
  const Devices& devices_of(const conf::NodeLine& line, const cluster::Node& shape,
                            const std::string& name) {
    const std::vector<std::uint32_t> which = gres_lines_.of(name);
    std::string key = fmt::format("{} {} ", shape.sockets, shape.cores_per_socket);
    if (line.gres) {
      for (const text::TresItem& item : line.gres->value) {
        key += fmt::format("{}:{}:{}:{},", item.name, item.type, item.count, item.no_consume);
      }
    }
    key.append(reinterpret_cast<const char*>(which.data()), which.size() * sizeof which[0]);
    const auto found = classes_.find(key);
    if (found != classes_.end()) {
      const bool repeat = found->second.complained && found->second.line != &line &&
                          complaints_.count() < conf::Complaints::kMaxWarnings;
      if (!repeat) return found->second.devices;
    }
    const std::size_t before = complaints_.count();
    const auto lines = gres_lines_.at(which);
    Class made;
    made.devices = node_devices(line, shape, lines, config_.gres.has_value(), name, complaints_);
    made.line = &line;
    made.complained = complaints_.count() != before;
    return classes_.insert_or_assign(std::move(key), std::move(made)).first->second.devices;
  }

  /// Every resource of Gres= must be in GresTypes=.
  bool known_gres(const conf::NodeLine& line) {
    if (!line.gres) return true;
    for (const text::TresItem& item : line.gres->value) {
      if (item.name == text::kGpuMemory) {
        complaints_.error(
            line.gres->at,
            "Gres=gpumem: the memory of GPUs is not counted here, their nodes tell it; "
            "name it in GresTypes= alone");
        return false;
      }
      if (has(config_.slurm.gres_types, item.name)) continue;
      std::string types;
      if (config_.slurm.gres_types) {
        for (const std::string& type : config_.slurm.gres_types->value) types += type + ",";
      }
      complaints_.error(line.gres->at, fmt::format("Gres={} but GresTypes= does not name it; write "
                                                   "GresTypes={}{}",
                                                   item.name, types, item.name));
      return false;
    }
    return true;
  }

  void mark_down() {
    for (const conf::DownNodesLine& line : config_.slurm.down_nodes) {
      for (const std::string& name : line.names) {
        const auto index = site_.cluster.find_node(name);
        if (!index) {
          complaints_.error(line.at,
                            fmt::format("DownNodes names {}, which no NodeName line describes",
                                        conf::shown(name)));
          break;
        }
        cluster::Node& node = site_.cluster.nodes[*index];
        const std::string state = line.state ? line.state->value : "DOWN";
        node.usable = false;
        node.state_reason = line.reason ? fmt::format("{} ({})", state, line.reason->value) : state;
      }
    }
  }

  /// Nodes of gres.conf that slurm.conf does not have, once for each line.
  void warn_of_strangers() {
    std::map<std::uint32_t, std::vector<std::string>> strangers;
    for (const auto& [name, lines] : gres_lines_.by_node()) {
      if (site_.cluster.find_node(name)) continue;
      for (const std::uint32_t line : lines) strangers[line].push_back(name);
    }
    for (const auto& [line, names] : strangers) {
      complaints_.warn(
          gres_lines_.line(line).at,
          fmt::format("{} is not in slurm.conf", conf::shown(text::compress_hostlist(names))));
    }
  }

  void add_notes() {
    for (const auto& [why, names] : unknown_) {
      const auto& [unknown, autodetect] = why;
      const std::string nodes = text::compress_hostlist(names);
      std::string reason;
      switch (unknown) {
        case Unknown::autodetect:
          reason = fmt::format("gres.conf uses AutoDetect={}", autodetect);
          break;
        case Unknown::no_gres_conf:
          reason = "there is no gres.conf";
          break;
        case Unknown::no_line:
          reason = "gres.conf has no line for them";
          break;
        case Unknown::nothing:
          continue;
      }
      site_.notes.push_back(
          fmt::format("GPU sockets and links of {} are not known: {}; the GPUs of "
                      "slurm.conf are taken as usable from any socket",
                      nodes, reason));
    }
  }

  const conf::Config& config_;
  Site& site_;
  GresLines gres_lines_;
  conf::Complaints complaints_;
  std::map<std::pair<Unknown, std::string>, std::vector<std::string>> unknown_;
  struct Class {
    Devices devices;
    const conf::NodeLine* line = nullptr;
    bool complained = false;
  };
  std::unordered_map<std::string, Class> classes_;
  std::size_t devices_ = 0;
  bool too_large_ = false;
};

}  // namespace

Result<Site> from_config(const conf::Config& config) {
  Site site;
  if (auto built = Builder(config, site).build(); !built) return pass(std::move(built.error()));
  return site;
}

Result<Site> read_site(const conf::FileSource& source) {
  auto config = conf::read_config(source);
  if (!config) return pass(std::move(config.error()));
  return from_config(*config);
}

}  // namespace berth::site
