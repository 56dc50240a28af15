// sprio: options and columns.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "command/show_text.h"
#include "wire/info.pb.h"

namespace berth::command {

struct SprioOptions {
  bool help = false;
  bool usage = false;
  bool version = false;
  bool header = true;
  bool long_format = false;
  bool normalized = false;
  bool weights = false;
  std::optional<std::string> format;
  std::optional<std::string> sort;
  std::optional<std::string> clusters;
  std::vector<wire::JobName> jobs;
  std::vector<std::string> users;
  std::vector<std::string> partitions;
};

Result<SprioOptions> parse_sprio(std::span<const std::string> words);
wire::ListPriorities sprio_request(const SprioOptions& options);
/// The table; the error is a format or a sort order that cannot be read.
Result<std::string> sprio_text(const SprioOptions& options, const wire::PrioritiesReply& reply);
std::string_view sprio_help();

}  // namespace berth::command
