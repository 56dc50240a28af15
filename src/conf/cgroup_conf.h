// cgroup.conf as typed values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "conf/complaints.h"
#include "conf/source.h"

namespace berth::conf {

struct CgroupConf {
  std::string plugin = "autodetect";
  bool constrain_cores = false;
  bool constrain_devices = false;
  bool constrain_ram = false;
  bool constrain_swap = false;
};

/// Reads cgroup.conf; nullopt when there is none.
std::optional<CgroupConf> read_cgroup_conf(const FileSource& source, std::string_view cluster_name,
                                           Complaints& complaints,
                                           std::string_view name = "cgroup.conf");

}  // namespace berth::conf
