// The command line and the environment of sacct.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "command/show_states.h"
#include "command/table_text.h"
#include "request/request.h"
#include "wire/info.pb.h"

namespace berth::command {

struct SacctOptions {
  bool help = false;
  bool usage = false;
  bool version = false;
  bool help_format = false;
  bool json = false;
  bool allocations = false;   // -X
  bool each_element = false;  // --array
  bool duplicates = false;    // -D
  bool truncate = false;      // -T
  bool scripts = false;       // -B
  bool environments = false;  // --env-vars
  bool convert = true;
  bool expand_patterns = false;
  char unit = 0;  // --units
  TableStyle style;
  std::string fields;
  bool all_users = false;
  std::vector<wire::JobName> jobs;
  std::vector<std::string> users, accounts, names, partitions, nodes, qos, groups, wckeys;
  StateFilter states;
  std::optional<std::int64_t> from, until;
  std::optional<std::string> clusters;
  std::optional<std::uint64_t> least_minutes, most_minutes;                        // -k, -K
  std::optional<std::pair<std::uint64_t, std::uint64_t>> node_counts, cpu_counts;  // -i, -I
};

Result<SacctOptions> parse_sacct(std::span<const std::string> words,
                                 const request::Environment& environment, std::int64_t now,
                                 std::uint32_t uid);
wire::ListHistory sacct_request(const SacctOptions& options, std::int64_t now);

std::string_view sacct_help();
std::string_view sacct_usage();

}  // namespace berth::command
