// Reading the files with one list of complaints.
#include "conf/config.h"

#include <algorithm>

namespace berth::conf {

Result<Config> read_config(const FileSource& source) {
  Complaints complaints;
  Config out;
  out.slurm = read_slurm_conf(source, complaints);
  const std::string cluster = out.slurm.cluster_name ? out.slurm.cluster_name->value : "";
  out.gres = read_gres_conf(source, cluster, complaints);
  out.cgroup = read_cgroup_conf(source, cluster, complaints);
  const Maybe<std::string>& plugin = out.slurm.topology_plugin;
  const NetworkPlugin network = !plugin || plugin->value == "topology/flat" ? NetworkPlugin::flat
                                : plugin->value == "topology/tree"          ? NetworkPlugin::tree
                                                                            : NetworkPlugin::block;
  out.topology = read_topology(source, network, plugin ? plugin->at : Location{out.slurm.file, 0},
                               cluster, complaints);
  if (complaints.failed()) return std::unexpected(complaints.as_error());
  out.warnings = complaints.warnings();
  out.unused = complaints.unused_keys();
  return out;
}

const CgroupConf* Config::fence() const {
  if (!cgroup || !cgroup->constrains() || !slurm.task_plugins) return nullptr;
  const std::vector<std::string>& plugins = slurm.task_plugins->value;
  return std::ranges::find(plugins, "task/cgroup") == plugins.end() ? nullptr : &*cgroup;
}

}  // namespace berth::conf
