// The command line and the environment of sinfo.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "command/show_states.h"
#include "request/request.h"

namespace berth::command {

struct SinfoOptions {
  bool help = false;
  bool usage = false;
  bool version = false;
  bool json = false;
  bool header = true;
  bool hidden_too = false;    // -a
  bool dead = false;          // -d: only nodes that do not respond
  bool responding = false;    // -r: only those that do
  bool exact = false;         // -e
  bool future_too = false;    // -F
  bool long_format = false;   // -l
  bool by_node = false;       // -N
  bool reasons = false;       // -R
  bool summary = false;       // -s
  bool reservations = false;  // -T
  bool verbose = false;
  std::uint32_t iterate_seconds = 0;  // -i; 0 = once
  std::optional<std::string> format;
  std::optional<std::string> long_fields;  // -O
  std::optional<std::string> sort;
  std::optional<std::string> clusters;
  std::vector<std::string> partitions;
  std::vector<std::string> nodes;
  bool filters_nodes = false;
  NodeStateFilter states;
};

Result<SinfoOptions> parse_sinfo(std::span<const std::string> words,
                                 const request::Environment& environment);

std::string_view sinfo_help();
std::string_view sinfo_usage();

}  // namespace berth::command
