// `scontrol show topology`: the switches or blocks of the network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command/scontrol_session.h"

namespace berth::command::scontrol {

/// The units that "leaf1", "n3", "switch=leaf1", "block=b1", "unit=b1" or "node=n3" names: itself,
/// or all that a node is below; all units where nothing is named. Empty: there is none.
std::vector<wire::NetworkUnit> named_units(const wire::Network& network,
                                           const std::optional<std::string>& named);
/// One line, as Slurm prints it.
std::string unit_text(const wire::Network& network, const wire::NetworkUnit& unit,
                      std::size_t index);

int show_topology(Session& session, const std::optional<std::string>& named);

}  // namespace berth::command::scontrol
