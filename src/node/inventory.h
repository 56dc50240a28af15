// What the nodes of this agent have, and what the agent needs of slurm.conf.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "conf/config.h"
#include "device/machine.h"
#include "node/fencing.h"
#include "node/gres.h"
#include "node/options.h"
#include "wire/agent.pb.h"

namespace berth::node {

struct Inventory {
  std::vector<wire::NodeReport> nodes;  // without steps and jobs
  device::Machine machine;              // this one; the CPU numbers of a real node
  Gres gres;                            // of a real node, for whoever wants to see it
  conf::DaemonKeys keys;
  FenceConf fences;
  /// --emulate: those that are off until somebody switches them on (State=CLOUD).
  std::vector<std::string> off_at_first;
};

/// --emulate: the nodes of slurm.conf, and those that scontrol created (their NodeName lines).
/// Else: this machine.
Result<Inventory> take_inventory(const Options& options,
                                 const std::vector<std::string>& created = {});

/// This machine before it has a slurm.conf.
Result<Inventory> bare_inventory(const Options& options);

/// %h and %n of SlurmdSpoolDir and SlurmdLogFile.
std::string with_names(std::string text, const std::string& host, const std::string& node);
std::string spool_directory(const Options& options, const conf::DaemonKeys& keys,
                            const std::string& host, const std::string& node);
/// Where an agent keeps which GPUs its node had when all were there.
std::string known_gpus_file(const std::string& spool);

/// The files of GPUs as they were found, which gres.conf need not name.
void name_files(const Gres& found, FenceConf& fences);

/// What of the files matters to fences, read again. `name`: of the real node; "" = with --emulate.
Result<FenceConf> read_fence_conf(const Options& options, const std::string& name);

}  // namespace berth::node
