// The command line of sstat.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "command/table_text.h"
#include "wire/info.pb.h"

namespace berth::command {

struct SstatOptions {
  bool help = false;
  bool usage = false;
  bool version = false;
  bool help_format = false;
  bool all_steps = false;   // -a
  bool pid_format = false;  // -i: a line for each node
  bool convert = true;
  bool verbose = false;
  TableStyle style;
  std::string fields;
  std::vector<wire::JobName> steps;
};

Result<SstatOptions> parse_sstat(std::span<const std::string> words);

std::string_view sstat_help();
std::string_view sstat_usage();

}  // namespace berth::command
