// Where sockets and state of a cluster are: docs/design/processes.md "Files and addresses", in code
// once.
//
//   daemon:   auto run = net::make_run_directory(conf_path);        // R, created and checked
//             auto sock = net::controller_socket(*run);             // R/controller.sock
//   command:  for (auto& path : net::controller_sockets(conf_path)) // root's, then the user's own
//   berth up: auto dir = net::default_state_directory();            // D
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::net {

/// What the paths depend on.
struct Surroundings {
  uid_t uid = 0;
  std::string runtime_directory = {};  // XDG_RUNTIME_DIR
  std::string state_home = {};         // XDG_STATE_HOME
  std::string home = {};               // HOME
  /// Of this process.
  static Surroundings here();
};

/// KEY: 16 hex digits of FNV-1a of the real path (of the path as given when there is no such file).
std::string run_key(const std::string& conf_path);
/// BASE of this user.
std::string run_base(const Surroundings& who = Surroundings::here());
/// R = BASE/KEY; nothing is created.
std::string run_directory(const std::string& conf_path,
                          const Surroundings& who = Surroundings::here());
/// R, created: root's are 0755 (all users reach the sockets), others 0700. An existing BASE or R of
/// another owner, or one that others may write to, is an error.
Result<std::string> make_run_directory(const std::string& conf_path,
                                       const Surroundings& who = Surroundings::here());
/// Checks and creates any directory R given by --run likewise.
Result<void> make_private_directory(const std::string& path, mode_t mode, uid_t owner);
/// `berth up --emulate DIR`: BASE/KEY(other_conf) becomes a link to R of conf_path, or goes away.
Result<void> link_run_directory(const std::string& conf_path, const std::string& other_conf,
                                const Surroundings& who = Surroundings::here());
Result<void> unlink_run_directory(const std::string& other_conf,
                                  const Surroundings& who = Surroundings::here());

/// Sockets that exist, to be tried in order: root's, then the user's own. Directories owned by
/// neither are left out.
std::vector<std::string> controller_sockets(const std::string& conf_path,
                                            const Surroundings& who = Surroundings::here());
std::vector<std::string> node_sockets(const std::string& conf_path,
                                      const Surroundings& who = Surroundings::here());

/// D of `berth up`.
std::string default_state_directory(const Surroundings& who = Surroundings::here());
inline constexpr std::string_view kRootStateDirectory = "/var/lib/berth/default";

inline std::string controller_socket(const std::string& run) {
  return run + "/controller.sock";
}
/// The certificate of the cluster's authority, by which a command knows the controller of another
/// machine: beside slurm.conf, which every machine has.
std::string authority_file(const std::string& conf_path);
inline std::string node_socket(const std::string& run) {
  return run + "/node.sock";
}
inline std::string controller_pid_file(const std::string& run) {
  return run + "/controller.pid";
}
inline std::string node_pid_file(const std::string& run) {
  return run + "/node.pid";
}

/// The slurm.conf a command uses: SLURM_CONF, BERTH_CLUSTER/slurm.conf, the user's own `berth up`,
/// root's, /etc/slurm/slurm.conf; "" when there is none of them. The first two are returned even
/// if the file is missing, so that the error names what the user set.
std::string find_conf(const Surroundings& who = Surroundings::here());

}  // namespace berth::net
