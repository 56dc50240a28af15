// `squeue --json`, `scontrol show job --json`: jobs in the shape of data_parser v0.0.46.
#pragma once

#include <map>
#include <string>

#include "command/json_text.h"
#include "command/squeue_view.h"
#include "wire/info.pb.h"

namespace berth::command {

/// Nodes by name, for the sockets and cores of an allocation.
using NodesByName = std::map<std::string_view, const wire::NodeInfo*>;

std::string squeue_json(const SqueueOptions& options, const wire::JobsReply& reply,
                        const wire::NodesReply& nodes, const Shown& shown, const Viewer& viewer,
                        const JsonMeta& meta);

/// One element of "jobs". `job` has its detail.
void append_job_json(JsonText& json, const wire::JobInfo& job, const NodesByName& nodes,
                     std::string_view cluster);

/// {"status", "return_code", "signal"} of a wait(2) status.
void append_exit_json(JsonText& json, std::string_view key, std::int32_t status, bool pending);

}  // namespace berth::command
