// `scontrol show node`, `show partition`, `show config`: records as text.
#pragma once

#include <string>

#include "command/scontrol_values.h"

namespace berth::command::scontrol {

std::string node_text(const wire::NodeInfo& node, const Style& style);
std::string partition_text(const wire::PartitionInfo& partition, const Style& style);
/// All of `scontrol show config`, without the line about the controller.
std::string config_text(const wire::ConfigReply& config, const Style& style);

}  // namespace berth::command::scontrol
