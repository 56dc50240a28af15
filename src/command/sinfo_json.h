// `sinfo --json`, in the shape of data_parser v0.0.46.
#pragma once

#include <string>

#include "command/json_text.h"
#include "command/sinfo_view.h"

namespace berth::command {

std::string sinfo_json(const SinfoOptions& options, const wire::NodesReply& reply,
                       const JsonMeta& meta);

/// The object of a partition, as in sinfo and `scontrol show partition --json`.
void append_partition_json(JsonText& json, std::string_view key,
                           const wire::PartitionInfo& partition);

}  // namespace berth::command
