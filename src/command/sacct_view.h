// From the history the controller sends to the text of sacct. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "command/sacct_fields.h"
#include "command/sacct_options.h"
#include "command/table_text.h"

namespace berth::command {

/// A column of --format.
using SacctColumn = TableColumn<SacctField>;
Result<std::vector<SacctColumn>> parse_sacct_format(std::string_view text);

SacctShown sacct_shown(const SacctOptions& options, const Shown& shown, std::int64_t from);

/// The header, in columns with a line of dashes below.
std::string sacct_header(const SacctOptions& options, const std::vector<SacctColumn>& columns);
/// The lines of one reply (a long history comes in several).
void append_history(const SacctOptions& options, const std::vector<SacctColumn>& columns,
                    const wire::HistoryReply& reply, const SacctShown& shown, std::string& out);
/// -B, --env-vars.
void append_scripts(const SacctOptions& options, const wire::HistoryReply& reply, std::string& out);
/// --helpformat.
std::string sacct_field_names();

/// The job passes those filters that the controller does not know.
bool wanted_history(const SacctOptions& options, const wire::HistoryJob& job);

}  // namespace berth::command
