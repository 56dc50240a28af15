// `sacct --json`: jobs in the accounting shape of data_parser v0.0.46.
#pragma once

#include <string>

#include "command/json_text.h"
#include "command/sacct_options.h"
#include "wire/info.pb.h"

namespace berth::command {

void append_history_json(JsonText& json, const wire::HistoryJob& job, std::string_view cluster,
                         std::int64_t now);

}  // namespace berth::command
