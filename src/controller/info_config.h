// `scontrol show config`: the configuration as it works, one key and value a line.
#pragma once

#include <string>

#include "controller/setup.h"
#include "controller/users.h"
#include "wire/info.pb.h"

namespace berth::controller {

/// The switches or blocks; nothing where the network is flat.
void put_network(wire::ConfigReply& reply, const cluster::Cluster& cluster);

wire::ConfigReply config_reply(const Setup& setup, const std::string& host, Users& users,
                               job::Time started);

}  // namespace berth::controller
