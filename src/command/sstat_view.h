// From what the controller tells of running steps to the text of sstat. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "command/sstat_options.h"
#include "command/table_text.h"
#include "command/usage_text.h"
#include "wire/info.pb.h"

namespace berth::command {

/// A line: a step, or what one of its nodes has of it (-i).
struct SstatRow {
  const wire::MeasuredStep* step = nullptr;
  const wire::NodePids* node = nullptr;
};
struct SstatField {
  std::string_view name;
  int width = 10;  // negative: left-justified
  void (*show)(const SstatRow& row, const UsageStyle& style, std::string& out) = nullptr;
};
std::span<const SstatField> sstat_fields();
inline std::string_view title_of(const SstatField& field) {
  return field.name;
}
using SstatColumn = TableColumn<SstatField>;
Result<std::vector<SstatColumn>> parse_sstat_format(std::string_view text);

wire::MeasureSteps sstat_request(const SstatOptions& options,
                                 const std::vector<SstatColumn>& columns);

/// What is printed: the table, then lines for the user. Hints are ours.
struct SstatText {
  std::string table;
  std::vector<Message> messages;
  std::vector<std::string> hints;
};
/// `reply` has one entry for each step of the options.
SstatText sstat_text(const SstatOptions& options, const std::vector<SstatColumn>& columns,
                     const wire::StepsMeasured& reply);

}  // namespace berth::command
