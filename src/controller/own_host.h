// Whether this machine is the controller's: slurm.conf says on which one berthctld serves. Two
// controllers of one cluster would hand out the same job ids and the same nodes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "conf/daemon_keys.h"

namespace berth::controller {

/// What a machine is called, and where it is reached.
struct OwnHost {
  std::string name;                    // as `hostname` says, short or with its domain
  std::vector<std::string> addresses;  // as numbers
  /// The address of a name, as a number; nullopt when nobody knows it.
  std::function<std::optional<std::string>(const std::string&)> look_up;
};

/// This machine.
OwnHost this_host();

/// "h0" and "h0.example.org" are one host; two full names are compared as a whole.
bool same_host_name(std::string_view one, std::string_view other);

/// Nothing when berthctld may serve on this host, else why not and what to do. A slurm.conf without
/// SlurmctldHost names no host: no other machine finds its controller.
Result<void> check_controller_host(const std::vector<conf::ControllerHost>& named,
                                   const OwnHost& own);

}  // namespace berth::controller
