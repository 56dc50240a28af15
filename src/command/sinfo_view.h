// From a reply of the controller to the text of sinfo: filter, group, sort, format. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "command/show_text.h"
#include "command/sinfo_fields.h"
#include "command/sinfo_options.h"
#include "wire/info.pb.h"

namespace berth::command {

Result<std::string> sinfo_text(const SinfoOptions& options, const wire::NodesReply& reply,
                               const Shown& shown);

/// -R: what is wrong with nodes that are not out of service, one line each: GPUs that are, and
/// clocks.
std::vector<std::string> reasons_beside(const SinfoOptions& options, const wire::NodesReply& reply);

/// The nodes that pass the filters, by partition in its configured order, in groups of equal `key`.
/// `with_partition`: nodes of different partitions never share a group.
using GroupKey = void (*)(const NodeGroup& one, const void* context, std::string& key);
std::vector<NodeGroup> group_nodes(const SinfoOptions& options, const wire::NodesReply& reply,
                                   GroupKey key, const void* context);

}  // namespace berth::command
