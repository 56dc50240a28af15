// cgroup.conf as typed values.
#pragma once

#include <cstdint>
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
  // Of the memory that a job or step was given: so much RAM, and so much swap on top of it.
  double allowed_ram_percent = 100;
  double allowed_swap_percent = 0;
  // Of the memory of the node: no limit is higher.
  double max_ram_percent = 100;
  double max_swap_percent = 100;
  std::uint64_t min_ram_mb = 30;  // no limit is lower
  std::string slice = "system.slice";

  [[nodiscard]] bool constrains() const {
    return constrain_cores || constrain_devices || constrain_ram || constrain_swap;
  }
};

/// Reads cgroup.conf; nullopt when there is none.
std::optional<CgroupConf> read_cgroup_conf(const FileSource& source, std::string_view cluster_name,
                                           Complaints& complaints,
                                           std::string_view name = "cgroup.conf");

}  // namespace berth::conf
